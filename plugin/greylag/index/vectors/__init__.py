"""Vectors of documents and queries: of an index, or embeddings in an array, from a function, or of FAISS."""
