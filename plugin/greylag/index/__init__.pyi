from .analysis import stem as stem
from .analysis import tokens as tokens
from .positional import PositionalIndex as PositionalIndex
from .rm3 import RM3Search as RM3Search
