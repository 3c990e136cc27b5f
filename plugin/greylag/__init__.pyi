from .diversity import MMR as MMR
from .diversity import choose_diversifier as choose_diversifier
from .errors import FormatError as FormatError
from .errors import GreylagError as GreylagError
from .errors import ParameterError as ParameterError
from .evaluation import evaluate as evaluate
from .fusion import fuse_runs as fuse_runs
from .index import PositionalIndex as PositionalIndex
from .index.lucene import LuceneIndex as LuceneIndex
from .index.lucene import build_index as build_index
from .learning import ListwiseRegression as ListwiseRegression
from .passages import Reranker as Reranker
from .passages import rerank as rerank
from .pipeline import Stage as Stage
from .rankers import ModelRanker as ModelRanker
from .ranking import Query as Query
from .ranking import Ranking as Ranking
from .ranking import Run as Run
from .recipes import GeneralRanker as GeneralRanker
from .recipes import learn_fusion as learn_fusion
from .recipes import train as train
from .reports import compare as compare
from .trec import read_qrels as read_qrels
from .trec import read_run as read_run
from .trec import read_topics as read_topics
from .trec import write_run as write_run

__version__: str
