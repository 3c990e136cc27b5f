from .analysis import QueryForm as QueryForm
from .analysis import analyze as analyze
from .analysis import read_stop_words as read_stop_words
from .analysis import shorten_query as shorten_query
from .analysis import stem as stem
from .analysis import tokens as tokens
from .positional import PositionalIndex as PositionalIndex
from .rm3 import RM3Search as RM3Search
