from .dense import ArrayVectors as ArrayVectors
from .dense import FunctionVectors as FunctionVectors
from .dense import QueryVectors as QueryVectors
from .faiss_index import FaissVectors as FaissVectors
from .protocol import Matrix as Matrix
from .protocol import Vectors as Vectors
from .protocol import unit_rows as unit_rows
from .protocol import vectors_of as vectors_of
from .tfidf import TfidfVectors as TfidfVectors
from .vector_files import read_vectors as read_vectors

__all__ = [
    "ArrayVectors",
    "FaissVectors",
    "FunctionVectors",
    "Matrix",
    "QueryVectors",
    "TfidfVectors",
    "Vectors",
    "read_vectors",
    "unit_rows",
    "vectors_of",
]
