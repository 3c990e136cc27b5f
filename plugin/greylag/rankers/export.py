"""Models for search engines: feature definitions with weights or trees in the form that each of them takes.

A feature is exported if the engine computes it to the same value, but for the engine's own rounding. All others are
refused by name: an engine would score them otherwise, in silence.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from greylag.base import FloatArray, IntArray, ModelError, ParameterError, nearest
from greylag.features import (
    LEAF,
    Feature,
    FeatureSpec,
    Normalised,
    Prior,
    ReciprocalRank,
    RunScore,
    Score,
    Trees,
    VectorCosine,
)
from greylag.index import QueryForm
from greylag.rankers.model import RankingModel

NAME = "greylag"
"""What the feature set, the model, the similarity and the rank profile are called."""
LIGHTGBM = "lightgbm"
"""The form of trees that is no engine's: LightGBM's text."""
_LOGGED = "column:"
_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class Term:
    """A feature of a model in an engine."""

    feature: Feature
    name: str
    # The model's, times the factor that the engine leaves out of the value; the factor alone for trees
    weight: float


@dataclass(frozen=True)
class Engine:
    """A search engine."""

    # Lucene's BM25 lacks the factor k1 + 1 since 8.0. Vespa's has it, and Elasticsearch's, which is that of Lucene 7.
    lacks_factor: bool
    # Whether the value of a field may be below 0
    negative: bool
    # The names of logged features that the engine reads as these features
    names: re.Pattern[str]
    # From the model, its terms, the field of the text and, instead of weights, trees to the engine's input
    write: Callable[[RankingModel, tuple[Term, ...], str, Trees | None], str]


def engine_model(model: RankingModel, engine: str, field: str = "contents") -> str:
    """Return a linear model as a search engine takes it, or trees as search engines or LightGBM do.

    Parameters
    ----------
    model : RankingModel
    engine : "opensearch", "elasticsearch", "solr" or "vespa"; of trees, also "lightgbm"
    field : str, default "contents"
        The field of the documents' text.

    Returns
    -------
    str
        For Vespa a rank profile, for LightGBM the text of a model of the feature file's columns; else JSON, a request
        and its body in each entry. Trees are a model of the type ``model/xgboost+json``, or of Solr's
        ``MultipleAdditiveTreesModel``.

    Raises
    ------
    ParameterError
        If a feature would have another value there: the message has each reason, with three of its features.
    """
    if engine not in (*ENGINES, LIGHTGBM):
        raise ParameterError(f"unknown engine {engine!r:.60}: {nearest(engine, (*ENGINES, LIGHTGBM))}")
    if not re.fullmatch(r"[A-Za-z_]\w*", field, re.ASCII):
        raise ParameterError(f"{field!r:.60} cannot name a field: use letters, digits and _")
    if not isinstance(model, RankingModel):
        raise ModelError(f"{type(model).__name__} is not a linear model of features, which engines take")
    if model.query_form != QueryForm():
        raise ParameterError(
            "the model's queries are shortened before they are scored (--first-sentence, --stop-words), as no engine "
            "does: train without these"
        )
    if model.by_length is not None:
        raise ParameterError("the model's weights follow the length of an index's documents: fix them by `at_length`")
    trees = _trees_of(model, engine)
    if trees is not None:
        if engine == LIGHTGBM:
            logged = all(str(feature).startswith(_LOGGED) for feature in trees.features)
            return trees.as_lightgbm(model.trained_columns if logged else None)
        trees = trees.without_unused()
        weights = (1.0,) * len(trees.features)
        model = replace(model, features=trees.features, weights=weights, parameters=trees.parameters)
    terms = _terms(model, engine, is_linear=trees is None)
    if trees is not None and engine == "opensearch":
        _log.warning(
            "OpenSearch 3.2 to 3.7 sends a document without a feature's value to the right at each split; other "
            "versions follow the trees' `missing`, or take 0 for it"
        )
    try:
        return ENGINES[engine].write(model, terms, field, trees)
    except RecursionError:
        raise ParameterError(f"a tree is too deep for JSON, in which {engine} takes it: train with max_depth") from None


def _trees_of(model: RankingModel, engine: str) -> Trees | None:
    """Return the trees of a model, with its weight; None if it is linear. Refuses what has no trees of this form."""
    trees = [feature for feature in model.features if isinstance(feature, Trees)]
    if not trees:
        if engine == LIGHTGBM:
            raise ParameterError("LightGBM's text is a form of trees, and the model is linear")
        return None
    if len(model.features) > 1:
        raise ParameterError("the model adds other features to trees, which no engine does")
    (only,) = trees
    if engine == "solr" and (only.missing_left() != only.missing_as_zero().missing_left())[only.split != LEAF].any():
        raise ParameterError(
            "Solr has 0 where a value is missing, and the trees send some of these another way than 0: give "
            "--missing-as-zero (model.missing_as_zero()) if no document lacks a value, or if it was 0 in training"
        )
    return replace(only, value=model.weights[0] * only.value)


def _terms(model: RankingModel, engine: str, *, is_linear: bool) -> tuple[Term, ...]:
    """Return the features as the engine has them; refuses those that it would compute to another value."""
    known = ENGINES[engine]
    refused: dict[str, list[str]] = {}
    for feature in model.features:
        by_score = "trees cannot split by the score of the query that is rescored: train without it"
        splits_by_score = not is_linear and isinstance(feature, Score) and engine.endswith("search")
        if reason := by_score if splits_by_score else _reason(feature, model, known):
            refused.setdefault(reason, []).append(str(feature))
    if refused:
        listed = "; ".join(
            f"{', '.join([*names[:3], *([f'{len(names) - 3} more'] if names[3:] else [])])}: {reason}"
            for reason, names in refused.items()
        )
        raise ParameterError(
            f"{engine} has no same value for {sum(map(len, refused.values()))} of the model's {len(model.features)} "
            f"features: {listed}; models of FI/term/BM25, score, prior:FILE and column:NAME can be exported"
        )
    terms: dict[str, Term] = {}
    for feature, weight in zip(model.features, model.weights, strict=True):
        factor = model.parameters.k1 + 1.0 if known.lacks_factor and isinstance(feature, FeatureSpec) else 1.0
        name = "bm25" if isinstance(feature, FeatureSpec) else str(feature).removeprefix(_LOGGED)
        term = Term(feature, _field_of(feature) if isinstance(feature, Prior) else name, weight * factor)
        if not math.isfinite(term.weight):
            raise ParameterError(
                f"{feature}: its weight {weight!r} times {factor!r} is no finite number: scale the model"
            )
        if term.name in terms:
            raise ParameterError(
                f"{terms[term.name].feature} and {feature} are both {term.name} in {engine}: leave one out"
            )
        terms[term.name] = term
    return tuple(terms.values())


def _reason(feature: Feature, model: RankingModel, engine: Engine) -> str:  # noqa: PLR0911 - a table
    """Explain why an engine has no equal value for a feature; "" if it has."""
    match feature:
        case Normalised():
            return "engines score a document without the others of the query, over which it is normalised"
        case FeatureSpec(expands=True):
            return "the relevance model depends on the ranking"
        case FeatureSpec() if feature.cliques != "term":
            return "an engine's phrase has the idf of its terms, not the phrase's, and windows are counted otherwise"
        case FeatureSpec(function="LM"):
            return "engines leave out the terms that a document lacks, and cut the others off at 0"
        case FeatureSpec(function="BM25", lead=None):
            idf = model.parameters.idf
            return "" if idf == "lucene" else f"engines have the idf called lucene, not {idf}"
        case Prior(default=None):
            return "its default is the least value of its file: name one, as in prior:FILE:log:1e-6"
        case Prior() if _field_of(feature)[:1].isdigit():
            return "a field's name begins with a letter, and its file's does not: rename the file"
        case Prior() if not engine.negative and (feature.scale == "log" or (feature.default or 0.0) < 0):
            return "the engine refuses values below 0, as logarithms may be"
        case Prior() | Score():
            return ""
        case RunScore() | VectorCosine():
            return "the engine has no such file: log the value there, and train on what is logged"
        case ReciprocalRank():
            return "the engine gives features no ranks"
        case _ if str(feature).startswith(_LOGGED):
            is_name = engine.names.fullmatch(str(feature).removeprefix(_LOGGED))
            return "" if is_name else "the engine would read the name as an expression: rename the column"
    return "the engine does not count it; score it with greylag, behind the engine"


def _field_of(prior: Prior) -> str:
    """Return the field that has the values of a prior: the file's name without its ending."""
    return re.sub(r"\W", "_", re.sub(r"\.\w+$", "", re.split(r"[/\\]", prior.file)[-1]), flags=re.ASCII)


def _has_text(terms: tuple[Term, ...]) -> bool:
    # k1 and b are set where the field is defined, which only a model with BM25 needs.
    return any(isinstance(term.feature, FeatureSpec) for term in terms)


def _elastic(model: RankingModel, terms: tuple[Term, ...], field: str, trees: Trees | None) -> str:
    """Write requests to OpenSearch or Elasticsearch and their plugin; `score` is the weight of the rescored query."""
    k1, b = model.parameters.k1, model.parameters.b
    features = []
    for term in terms:
        params: list[str] = []
        template: dict[str, Any]
        if isinstance(term.feature, FeatureSpec):
            params, template = ["keywords"], {"match": {field: {"query": "{{keywords}}"}}}
        elif isinstance(term.feature, Prior):
            # boost_mode: the value instead of the score of the query, which would be multiplied by it
            value = {"field": _field_of(term.feature), "missing": term.feature.default}
            template = {"function_score": {"field_value_factor": value, "boost_mode": "replace"}}
        else:
            continue
        features.append({"name": term.name, "params": params, "template_language": "mustache", "template": template})
    # The score is that of the query that is rescored, so that its weight is the query's, and not one of the model.
    weights = {term.name: term.weight for term in terms if not isinstance(term.feature, Score)}
    score_weight = sum(term.weight for term in terms if isinstance(term.feature, Score))
    rescore = {
        "rescore_query": {"sltr": {"params": {"keywords": "QUERY"}, "model": NAME}},
        "query_weight": score_weight,
        "rescore_query_weight": 1.0,
    }
    definition: dict[str, Any] = {"type": "model/linear", "definition": weights}
    if trees is not None:
        definition = {"type": "model/xgboost+json", "definition": _xgboost(trees, terms)}
    requests: dict[str, Any] = {}
    if _has_text(terms):
        requests["PUT /INDEX"] = {
            "settings": {"index": {"similarity": {NAME: {"type": "BM25", "k1": k1, "b": b}}}},
            "mappings": {"properties": {field: {"type": "text", "analyzer": "english", "similarity": NAME}}},
        }
    if features:  # otherwise the engine already has this feature set
        requests[f"POST /_ltr/_featureset/{NAME}"] = {"featureset": {"name": NAME, "features": features}}
    requests[f"POST /_ltr/_featureset/{NAME if features else 'SET'}/_createmodel"] = {
        "model": {"name": NAME, "model": definition}
    }
    requests["GET /INDEX/_search"] = {
        "query": {"match": {field: "QUERY"}},
        "rescore": {"window_size": 100, "query": rescore},
    }
    return json.dumps(requests, indent=2)


def _nested(trees: Trees, leaf: Callable[[int], Any], split: Callable[[int, Any, Any], Any]) -> list[Any]:
    """Write each tree as objects in objects, or texts in texts: leaves, and splits with what is below."""
    written = dict[int, Any]()
    for node in reversed(range(len(trees.split))):  # what is below has the higher numbers
        sides = trees.left[node], trees.right[node]
        written[node] = leaf(node) if trees.split[node] == LEAF else split(node, *map(written.__getitem__, sides))
    return [written[root] for root in trees.roots.tolist()]


def _limits(trees: Trees, terms: Sequence[Term]) -> Any:
    """Return the least number of float32 that an engine's value has to be to go to the right, for each node."""
    factors, inner = np.array([term.weight for term in terms]), trees.split != LEAF
    limits = np.zeros(len(trees.split), dtype=np.float32)
    limits[inner] = _next_float32(trees.threshold[inner] / factors[trees.split[inner]])
    return limits


def _xgboost(trees: Trees, terms: Sequence[Term]) -> list[dict[str, Any]]:
    """Return the trees as XGBoost dumps them: a value below ``split_condition``, in float32, goes to ``yes``."""
    limits, missing_left, root = _limits(trees, terms), trees.missing_left(), trees.root_of
    depth = np.zeros(len(trees.split), dtype=int)
    for node in np.flatnonzero(trees.split != LEAF):
        depth[[trees.left[node], trees.right[node]]] = depth[node] + 1

    def split(node: int, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {
            "nodeid": int(node - root[node]),
            "depth": int(depth[node]),
            "split": terms[trees.split[node]].name,
            "split_condition": float(limits[node]),
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": (left if missing_left[node] else right)["nodeid"],
            "children": [left, right],
        }

    return _nested(trees, lambda node: {"nodeid": int(node - root[node]), "leaf": float(trees.value[node])}, split)


def _solr_trees(trees: Trees, terms: Sequence[Term]) -> list[dict[str, Any]]:
    """Return the trees as Solr has them: a value up to ``threshold`` + 1e-6, in float32, goes to the left."""
    limits = _below_slack(_limits(trees, terms))

    def split(node: int, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {
            "feature": terms[trees.split[node]].name, "threshold": str(limits[node]), "left": left, "right": right,
        }  # fmt: skip

    roots = _nested(trees, lambda node: {"value": str(np.float32(trees.value[node]))}, split)
    return [{"weight": "1", "root": root} for root in roots]


def _below_slack(limits: Any) -> Any:
    """Return the greatest float32 to which Solr can add its slack, in float32, and stay below each limit."""
    # By halves of all numbers of float32 in their order, as those around 0 are billions.
    slack, sign = np.float32(1e-6), np.int64(1) << 31
    bits = np.stack([np.full_like(limits, -np.inf), limits]).view(np.uint32).astype(np.int64)
    low, high = np.where(bits < sign, bits, sign - bits)
    while (high - low > 1).any():
        middle = (low + high) // 2
        below = _float32_at(middle) + slack < limits
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return _float32_at(low)


def _float32_at(places: IntArray) -> Any:
    """Return the numbers of float32 at these places in their order, in which 0 is 0."""
    return np.where(places < 0, (1 << 31) - places, places).astype(np.uint32).view(np.float32)


def _next_float32(thresholds: FloatArray) -> FloatArray:
    """Return the least number of float32 that is read as more than each, so that ``<`` it is ``<=`` the threshold."""
    # As engines log them, and feature files have them: by the fewest digits. Within the finite numbers, which JSON has.
    largest = np.finfo(np.float32).max
    rounded = np.clip(thresholds, -largest, largest).astype(np.float32)
    with np.errstate(over="ignore"):
        next_one = np.nextafter(rounded, np.float32(np.inf))
    above = np.where(rounded.astype(str).astype(np.float64) > thresholds, rounded, next_one)
    return np.asarray(np.minimum(above, largest))


def _solr(model: RankingModel, terms: tuple[Term, ...], field: str, trees: Trees | None) -> str:
    """Write requests to Solr and its module ltr."""
    parameters = model.parameters
    features: list[dict[str, Any]] = []
    for term in terms:
        kind, params = "SolrFeature", {}
        if isinstance(term.feature, FeatureSpec):
            # dismax over one field is the plain sum over terms; mm=0 accepts documents that lack some.
            params = {"q": f"{{!dismax qf={field} mm=0}}${{keywords}}"}
        elif isinstance(term.feature, Score):
            kind = "OriginalScoreFeature"
        elif isinstance(term.feature, Prior):
            value = f"def({_field_of(term.feature)},{term.feature.default!r})"
            params = {"q": f"{{!func}}{f'ln({value})' if term.feature.scale == 'log' else value}"}
        else:
            continue
        kind = f"org.apache.solr.ltr.feature.{kind}"
        features.append({"name": term.name, "class": kind, "params": params})
    requests: dict[str, Any] = {}
    if _has_text(terms):
        similarity = {"class": "solr.BM25SimilarityFactory", "k1": str(parameters.k1), "b": str(parameters.b)}
        filters = ["englishPossessive", "lowercase", "stop", "porterStem"]
        analyzer = {"tokenizer": {"name": "standard"}, "filters": [{"name": name} for name in filters]}
        text = {"name": f"text_{NAME}", "class": "solr.TextField", "analyzer": analyzer, "similarity": similarity}
        requests["POST /solr/COLLECTION/schema"] = {
            "add-field-type": text,
            "add-field": {"name": field, "type": f"text_{NAME}", "stored": True},
        }
    # Logged features are of a store that is there, and a model reads one store.
    store = NAME if len(features) == len(terms) else "STORE"
    if features:
        requests["PUT /solr/COLLECTION/schema/feature-store"] = [{"store": store, **feature} for feature in features]
    form, content = "LinearModel", dict[str, Any](weights={term.name: term.weight for term in terms})
    if trees is not None:
        form, content = "MultipleAdditiveTreesModel", {"trees": _solr_trees(trees, terms)}
    requests["PUT /solr/COLLECTION/schema/model-store"] = {
        "store": store,
        "name": NAME,
        "class": f"org.apache.solr.ltr.model.{form}",
        "features": [{"name": term.name} for term in terms],
        "params": content,
    }
    requests["GET /solr/COLLECTION/query"] = {"rq": f"{{!ltr model={NAME} reRankDocs=100 efi.keywords='QUERY'}}"}
    return json.dumps(requests, indent=2)


def _vespa(model: RankingModel, terms: tuple[Term, ...], field: str, trees: Trees | None) -> str:
    """Write a rank profile of Vespa; a profile that it inherits has the first phase if the model has `score`."""
    features = []
    for term in terms:
        if isinstance(term.feature, FeatureSpec):
            expression = f"bm25({field})"
        elif isinstance(term.feature, Score):
            expression = "firstPhase"
        elif isinstance(term.feature, Prior):
            attribute, default = f"attribute({_field_of(term.feature)})", term.feature.default
            # A document without the attribute has NaN.
            expression = f"if (isNan({attribute}) == 1, {default!r}, {attribute})"
            expression = f"log({expression})" if term.feature.scale == "log" else expression
        else:
            expression = term.name
        features.append(expression)
    parts = [f"{term.weight!r} * {feature}" for term, feature in zip(terms, features, strict=True)]
    functions = [] if trees is None else _vespa_trees(trees, features)
    parts = [f"{NAME}_{number}" for number in range(len(functions))] or parts
    second = any(isinstance(term.feature, Score) for term in terms)  # firstPhase is known in the second phase alone
    lines = [f"rank-profile {NAME}{' inherits FIRST' if second else ''} {{"]
    if _has_text(terms):
        lines += [
            "    rank-properties {",
            f"        bm25({field}).k1: {model.parameters.k1!r}",
            f"        bm25({field}).b: {model.parameters.b!r}",
        ]
        if "average_length" in model.collection:
            lines += [f"        bm25({field}).averageFieldLength: {model.collection['average_length']!r}"]
        lines += ["    }"]
    for number, tree in enumerate(functions):
        lines += [f"    function {NAME}_{number}() {{", f"        expression: {tree}", "    }"]
    lines += [f"    {'second' if second else 'first'}-phase {{", "        expression {"]
    lines += [f"            {part}{' +' if part is not parts[-1] else ''}" for part in parts]
    return "\n".join([*lines, "        }", "    }", "}"])


def _vespa_trees(trees: Trees, features: Sequence[str]) -> list[str]:
    """Return the trees as expressions of Vespa."""
    # Vespa computes them in float64, but for many trees that split by `<`, which it takes for a forest of float32.
    # A value that is missing is NaN, for which both comparisons are false.
    missing_left = trees.missing_left()

    def split(node: int, left: str, right: str) -> str:
        comparison, one, other = (">", right, left) if missing_left[node] else ("<=", left, right)
        return f"if ({features[trees.split[node]]} {comparison} {float(trees.threshold[node])!r}, {one}, {other})"

    return _nested(trees, lambda node: repr(float(trees.value[node])), split)


_ARGUMENT = r"[\w.$]+(?:\([\w.$]+\))?"
# A string of JSON in OpenSearch, Elasticsearch and Solr
_WORD = re.compile(r"\S*")
# In an expression of Vespa: ``clicks``, ``attribute(age)``, ``fieldMatch(title).proximity``
_RANK_FEATURE = re.compile(
    rf"(?!(?:if|in|true|false|firstPhase)$)[A-Za-z_]\w*(?:\({_ARGUMENT}(?:,{_ARGUMENT})*\))?(?:\.[A-Za-z_]\w*)*",
    re.ASCII,
)
ENGINES: Mapping[str, Engine] = {
    "opensearch": Engine(True, False, _WORD, _elastic),
    "elasticsearch": Engine(False, False, _WORD, _elastic),
    "solr": Engine(True, True, _WORD, _solr),
    "vespa": Engine(False, True, _RANK_FEATURE, _vespa),
}
"""The engines by name."""
