from .analysis import analyze as analyze
from .analysis import stem as stem
from .analysis import tokens as tokens
from .positional import PositionalIndex as PositionalIndex

__all__ = ["PositionalIndex", "analyze", "stem", "tokens"]
