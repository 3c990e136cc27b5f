from .dense import ArrayVectors as ArrayVectors
from .dense import FunctionVectors as FunctionVectors
from .faiss_index import FaissVectors as FaissVectors
from .latent import LatentVectors as LatentVectors
from .nearest import VectorSearch as VectorSearch
from .protocol import TfidfVectors as TfidfVectors
from .protocol import Vectors as Vectors
from .vector_files import read_vectors as read_vectors
