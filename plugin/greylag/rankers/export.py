"""Linear models for search engines: feature definitions and weights in the form that each of them takes.

A feature is exported if the engine computes it to the same value, but for the engine's own rounding. All others are
refused by name: an engine would score them otherwise, in silence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from greylag.core.spelling import nearest
from greylag.errors import ModelError, ParameterError
from greylag.features.evidence import Prior, ReciprocalRank, RunScore, Score, VectorCosine
from greylag.features.feature import Feature, Normalised
from greylag.features.spec import FeatureSpec
from greylag.index.analysis import QueryForm
from greylag.rankers.model import RankingModel

NAME = "greylag"
"""What the feature set, the model, the similarity and the rank profile are called."""
_LOGGED = "column:"
_COUNTS = "the engine does not count it; score it with greylag, behind the engine"


@dataclass(frozen=True)
class Term:
    """A feature of a linear model in an engine."""

    feature: Feature
    name: str
    # The model's, times the factor that the engine leaves out of the value
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
    # From the model, its terms and the field of the text to the engine's input
    write: Callable[[RankingModel, tuple[Term, ...], str], str]


def engine_model(model: RankingModel, engine: str, field: str = "contents") -> str:
    """Return a linear model as a search engine takes it.

    Parameters
    ----------
    model : RankingModel
    engine : "opensearch", "elasticsearch", "solr" or "vespa"
    field : str, default "contents"
        The field of the documents' text.

    Returns
    -------
    str
        For Vespa a rank profile; else JSON, a request and its body in each entry.

    Raises
    ------
    ParameterError
        If the engine is unknown, the field cannot be one, a weight overflows, or a feature would have another value
        there. The message has each reason, with three of its features.
    """
    if engine not in ENGINES:
        raise ParameterError(f"unknown engine {engine!r:.60}: {nearest(engine, ENGINES)}")
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
    known = ENGINES[engine]
    refused: dict[str, list[str]] = {}
    for feature in model.features:
        if reason := _reason(feature, model, known):
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
    return known.write(model, tuple(terms.values()), field)


def _reason(feature: Feature, model: RankingModel, engine: Engine) -> str:
    """Explain why an engine has no equal value for a feature; "" if it has."""
    if str(feature).startswith(_LOGGED):
        is_name = engine.names.fullmatch(str(feature).removeprefix(_LOGGED))
        return "" if is_name else "the engine would read the name as an expression: rename the column"
    for kind, reason in _REASONS.items():
        if isinstance(feature, kind):
            return reason if isinstance(reason, str) else reason(feature, model, engine)
    return _COUNTS


def _reason_of_cliques(feature: FeatureSpec, model: RankingModel, engine: Engine) -> str:
    if feature.expands:
        return "the relevance model depends on the ranking"
    if feature.cliques != "term":
        return "an engine's phrase has the idf of its terms, not that of the phrase, and windows are counted otherwise"
    if feature.function == "LM":
        return "engines leave out the terms that a document lacks, and cut the others off at 0"
    if feature.function != "BM25" or feature.lead is not None:
        return _COUNTS
    idf = model.parameters.idf
    return "" if idf == "lucene" else f"engines have the idf called lucene, not {idf}"


def _reason_of_prior(feature: Prior, model: RankingModel, engine: Engine) -> str:
    if feature.default is None:
        return "its default is the least value of its file: name one, as in prior:FILE:log:1e-6"
    if _field_of(feature)[:1].isdigit():
        return "a field's name begins with a letter, and that of its file does not: rename the file"
    if not engine.negative and (feature.scale == "log" or feature.default < 0):
        return "the engine refuses values below 0, as logarithms may be"
    return ""


_REASONS: Mapping[type, str | Callable[[Any, RankingModel, Engine], str]] = {
    Normalised: "engines score a document without the others of the query, over which it is normalised",
    FeatureSpec: _reason_of_cliques,
    Prior: _reason_of_prior,
    Score: "",
    RunScore: "the engine has no such file: log the value there, and train on what is logged",
    VectorCosine: "the engine has no such file: log the value there, and train on what is logged",
    ReciprocalRank: "the engine gives features no ranks",
}


def _field_of(prior: Prior) -> str:
    """Return the field that has the values of a prior: the file's name without its ending."""
    return re.sub(r"\W", "_", re.sub(r"\.\w+$", "", re.split(r"[/\\]", prior.file)[-1]), flags=re.ASCII)


def _elastic(model: RankingModel, terms: tuple[Term, ...], field: str) -> str:
    """Write requests to OpenSearch or Elasticsearch and their plugin; `score` is the weight of the rescored query."""
    k1, b = model.parameters.k1, model.parameters.b
    features = []
    for term in terms:
        if isinstance(term.feature, FeatureSpec):
            template: dict[str, Any] = {"match": {field: {"query": "{{keywords}}"}}}
        elif isinstance(term.feature, Prior):
            # boost_mode: the value instead of the score of the query, which would be multiplied by it
            value = {"field": _field_of(term.feature), "missing": term.feature.default}
            template = {"function_score": {"field_value_factor": value, "boost_mode": "replace"}}
        else:
            continue
        params = ["keywords"] if isinstance(term.feature, FeatureSpec) else []
        features.append({"name": term.name, "params": params, "template_language": "mustache", "template": template})
    # The score is that of the query that is rescored, so that its weight is the query's, and not one of the model.
    weights = {term.name: term.weight for term in terms if not isinstance(term.feature, Score)}
    of_score = sum(term.weight for term in terms if isinstance(term.feature, Score))
    rescore = {
        "rescore_query": {"sltr": {"params": {"keywords": "QUERY"}, "model": NAME}},
        "query_weight": of_score,
        "rescore_query_weight": 1.0,
    }
    requests: dict[str, Any] = {
        "PUT /INDEX": {
            "settings": {"index": {"similarity": {NAME: {"type": "BM25", "k1": k1, "b": b}}}},
            "mappings": {"properties": {field: {"type": "text", "analyzer": "english", "similarity": NAME}}},
        },
        f"POST /_ltr/_featureset/{NAME}": {"featureset": {"name": NAME, "features": features}},
        f"POST /_ltr/_featureset/{NAME}/_createmodel": {
            "model": {"name": NAME, "model": {"type": "model/linear", "definition": weights}}
        },
        "GET /INDEX/_search": {
            "query": {"match": {field: "QUERY"}},
            "rescore": {"window_size": 100, "query": rescore},
        },
    }
    if not any(isinstance(term.feature, FeatureSpec) for term in terms):
        del requests["PUT /INDEX"]
    if not features:  # all are those of a set that is there, by whose names the model was trained
        del requests[f"POST /_ltr/_featureset/{NAME}"]
        requests["POST /_ltr/_featureset/SET/_createmodel"] = requests.pop(
            f"POST /_ltr/_featureset/{NAME}/_createmodel"
        )
    return json.dumps(requests, indent=2)


def _solr(model: RankingModel, terms: tuple[Term, ...], field: str) -> str:
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
        features.append(
            {"store": NAME, "name": term.name, "class": f"org.apache.solr.ltr.feature.{kind}", "params": params}
        )
    similarity = {"class": "solr.BM25SimilarityFactory", "k1": str(parameters.k1), "b": str(parameters.b)}
    filters = ["englishPossessive", "lowercase", "stop", "porterStem"]
    analyzer = {"tokenizer": {"name": "standard"}, "filters": [{"name": name} for name in filters]}
    text = {"name": f"text_{NAME}", "class": "solr.TextField", "analyzer": analyzer, "similarity": similarity}
    requests: dict[str, Any] = {
        "POST /solr/COLLECTION/schema": {
            "add-field-type": text,
            "add-field": {"name": field, "type": f"text_{NAME}", "stored": True},
        },
        "PUT /solr/COLLECTION/schema/feature-store": features,
        "PUT /solr/COLLECTION/schema/model-store": {
            "store": NAME,
            "name": NAME,
            "class": "org.apache.solr.ltr.model.LinearModel",
            "features": [{"name": term.name} for term in terms],
            "params": {"weights": {term.name: term.weight for term in terms}},
        },
        "GET /solr/COLLECTION/query": {"rq": f"{{!ltr model={NAME} reRankDocs=100 efi.keywords='QUERY'}}"},
    }
    if not any(isinstance(term.feature, FeatureSpec) for term in terms):
        del requests["POST /solr/COLLECTION/schema"]
    if len(features) < len(terms):  # the others are those of a store that is there, and a model reads one store
        requests["PUT /solr/COLLECTION/schema/model-store"]["store"] = "STORE"
        for feature in features:
            feature["store"] = "STORE"
        if not features:
            del requests["PUT /solr/COLLECTION/schema/feature-store"]
    return json.dumps(requests, indent=2)


def _vespa(model: RankingModel, terms: tuple[Term, ...], field: str) -> str:
    """Write a rank profile of Vespa; a profile that it inherits has the first phase if the model has `score`."""
    parts = []
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
        parts.append(f"{term.weight!r} * {expression}")
    second = any(isinstance(term.feature, Score) for term in terms)  # firstPhase is known in the second phase alone
    lines = [f"rank-profile {NAME}{' inherits FIRST' if second else ''} {{"]
    if any(isinstance(term.feature, FeatureSpec) for term in terms):
        lines += ["    rank-properties {"]
        lines += [
            f"        bm25({field}).k1: {model.parameters.k1!r}",
            f"        bm25({field}).b: {model.parameters.b!r}",
        ]
        if "average_length" in model.collection:
            lines += [f"        bm25({field}).averageFieldLength: {model.collection['average_length']!r}"]
        lines += ["    }"]
    lines += [f"    {'second' if second else 'first'}-phase {{", "        expression {"]
    lines += [f"            {part}{' +' if part is not parts[-1] else ''}" for part in parts]
    return "\n".join([*lines, "        }", "    }", "}"])


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
