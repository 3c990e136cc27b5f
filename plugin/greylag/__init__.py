"""greylag: dependence features, feature selection and learned diversity for Pyserini pipelines.

The public names are below, each in its module and loaded from there when it is first used, so that importing greylag
itself loads neither a JVM nor NumPy.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "CSSVM": "diversity",
    "CollectionError": "errors",
    "CoordinateAscent": "ltr.coordinate_ascent",
    "DependencyError": "errors",
    "EstimatorRanker": "ltr.rankers",
    "FeatureExtractor": "features.extract",
    "FeatureParameters": "features.weighting",
    "FeatureSpec": "features.spec",
    "FloatArray": "ranking",
    "FormatError": "errors",
    "Gain": "greedy",
    "GreedySelection": "ltr.greedy",
    "GreylagError": "errors",
    "IntArray": "ranking",
    "LinearModel": "ltr.linear",
    "LuceneIndex": "lucene.lucene_index",
    "MMR": "diversity",
    "MRFRanker": "ltr.rankers",
    "ManifoldRanker": "manifold.stage",
    "ModelError": "errors",
    "ModularGain": "greedy",
    "Objective": "ltr.objectives",
    "ParameterError": "errors",
    "Pipeline": "ranking",
    "PositionalIndex": "index.positional",
    "Query": "ranking",
    "Ranking": "ranking",
    "RankingData": "ltr.data",
    "Run": "ranking",
    "SVMDiv": "diversity",
    "Scores": "evaluation",
    "build_index": "lucene.build",
    "candidate_pool": "features.spec",
    "compare": "evaluation",
    "evaluate": "evaluation",
    "explain": "ltr.explanation",
    "greedy_picks": "greedy",
    "manifold_ranking": "manifold",
    "read_features": "ltr.letor",
    "read_json_lines": "files",
    "read_qrels": "trec",
    "read_run": "trec",
    "read_subtopic_qrels": "trec",
    "read_topics": "trec",
    "unit_range": "ranking",
    "write_features": "ltr.letor",
    "write_run": "trec",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'greylag' has no attribute {name!r}")
    return getattr(import_module(f"greylag.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
