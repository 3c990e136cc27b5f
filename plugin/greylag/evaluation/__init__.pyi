from .choice import PickBest as PickBest
from .choice import RunChoice as RunChoice
from .choice import pick_best as pick_best
from .choice import pick_best_runs as pick_best_runs
from .measures import Family as Family
from .measures import Measure as Measure
from .measures import expected_reciprocal_rank as expected_reciprocal_rank
from .measures import parse_measure as parse_measure
from .report import aligned as aligned
from .report import per_query as per_query
from .report import table as table
from .report import to_dict as to_dict
from .report import wins_table as wins_table
from .scores import Scores as Scores
from .scores import evaluate as evaluate
from .scores import evaluate_by_subtopic as evaluate_by_subtopic
from .significance import SIGNIFICANCE_LEVEL as SIGNIFICANCE_LEVEL
from .significance import Comparison as Comparison
from .significance import Significance as Significance
from .significance import compare as compare
from .significance import paired_test as paired_test
from .subtopics import Subtopics as Subtopics

__all__ = [
    "SIGNIFICANCE_LEVEL",
    "Comparison",
    "Family",
    "Measure",
    "PickBest",
    "RunChoice",
    "Scores",
    "Significance",
    "Subtopics",
    "aligned",
    "compare",
    "evaluate",
    "evaluate_by_subtopic",
    "expected_reciprocal_rank",
    "paired_test",
    "parse_measure",
    "per_query",
    "pick_best",
    "pick_best_runs",
    "table",
    "to_dict",
    "wins_table",
]
