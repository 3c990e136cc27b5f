from .analysis import stem as stem
from .analysis import tokens as tokens
from .expansion import RM3Search as RM3Search
from .positional import PositionalIndex as PositionalIndex
