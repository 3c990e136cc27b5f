from .analysis import stem as stem
from .analysis import tokens as tokens
from .expansion import RM3Search as RM3Search
from .expansion import RocchioSearch as RocchioSearch
from .positional import PositionalIndex as PositionalIndex
