"""Scores of runs: measures of relevance and of diversity, significance of differences, and reports of both."""

from greylag.evaluation.diversity import evaluate_by_subtopic
from greylag.evaluation.measures import Measure, Scores, evaluate, expected_reciprocal_rank, parse_measure
from greylag.evaluation.pick_best import PickBest, RunChoice, pick_best, pick_best_runs
from greylag.evaluation.report import per_query, table, to_dict, wins_table
from greylag.evaluation.significance import Comparison, Significance, compare

__all__ = [
    "Comparison",
    "Measure",
    "PickBest",
    "RunChoice",
    "Scores",
    "Significance",
    "compare",
    "evaluate",
    "evaluate_by_subtopic",
    "expected_reciprocal_rank",
    "parse_measure",
    "per_query",
    "pick_best",
    "pick_best_runs",
    "table",
    "to_dict",
    "wins_table",
]
