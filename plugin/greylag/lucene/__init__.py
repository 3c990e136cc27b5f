"""Lucene, through Java: search, indexing, and what the export reads."""
