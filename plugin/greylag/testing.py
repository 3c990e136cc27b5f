"""Checks of stages, learners and features, for the tests of packages that add some, and for greylag's.

Each raises `AssertionError` with a sentence that says what is wrong. They test the contract and not the method, whose
results are to be compared with a slow version of its formula.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import is_dataclass, replace
from typing import Any, get_args, get_type_hints

import numpy as np
from scipy.sparse import csr_matrix

from greylag.base import Need, ParameterError, Ranking, Run, Stage, gather_missing, run_step
from greylag.diversity import PRESETS, Candidates, CoverageModel, DiversityLearner, Example
from greylag.evaluation import Subtopics
from greylag.features import (
    Feature,
    FeatureExtractor,
    LearnedFeature,
    parse_feature,
    required_parameters,
    stage_parameters,
)
from greylag.index import PositionalIndex
from greylag.learning import Learner, Objective, RankingData, Selection, after_each_round


def check_stage(stage: Stage, rankings: Run | Iterable[Ranking], *, knows_all: bool = False) -> None:
    """Check that a stage keeps the contract that commands, pipelines and features rely on.

    It permutes rankings, also empty ones and those without any document that it knows; gives the same result again, in
    threads, in any order of queries and after being pickled; and declares what it needs (see `greylag.Stage`): one that
    does not declare to read the query ranks as well without its text.

    Parameters
    ----------
    stage : Stage
        Any instance. Check several, with other parameters.
    rankings : Run or iterable of Ranking
        With texts of queries, and with documents that the stage knows.
    knows_all : bool, default False
        Whether the stage knows every document, as one in random order does. Otherwise, documents that it knows nothing
        about leave the order of the others as it is.

    Examples
    --------
    >>> from greylag.diversity import RandomOrder
    >>> check_stage(RandomOrder(seed=1), [Ranking("q", "cats", ("d1", "d2"), np.array([2.0, 1.0]))], knows_all=True)
    """
    name, given = type(stage).__name__, list(rankings.rankings if isinstance(rankings, Run) else rankings)
    _require(bool(given) and all(map(len, given)), "give rankings that have documents")
    _check_declarations(stage)
    expected = []
    for ranking in given:
        before = ranking.scores.copy()
        expected.append(_permuted(stage, ranking))
        _require(bool((ranking.scores == before).all()), f"{name} changes the ranking that it is given")
        # Once more, as a stage may remember what it ranked.
        _require(stage(ranking) == expected[-1], f"{name} ranks the same query differently the second time")
    for ranking in given:
        scored = stage.scored(ranking)
        _require(set(scored.docids) <= set(ranking.docids), f"{name}.scored adds documents")
    with gather_missing():  # the warnings of documents that are unknown on purpose
        _check_documents(stage, given[0], knows_all)
    if not stage.reads_query:
        without = [stage(Ranking(r.qid, "", r.docids, r.scores)) for r in given]
        same = [ranked.docids == as_read.docids for ranked, as_read in zip(without, expected, strict=True)]
        _require(all(same), f"{name} has reads_query = False, and ranks differently without the query's text")
    # State that queries share shows in threads, in another order and after pickling.
    for runs, how in (
        (run_step(stage, given, n_jobs=4).rankings, "in threads"),
        (run_step(_sent(stage), given[::-1]).rankings[::-1], "in another order of queries"),
        (run_step(_sent(stage), given).rankings, "after being pickled"),
    ):
        _require(runs == tuple(expected), f"{name} ranks differently {how}")


def check_learner(learner: Learner, data: RankingData | None = None) -> None:
    """Check that a learner keeps the contract that recipes and cross-validation rely on.

    It is a frozen value; its result does not depend on the number of threads; the training scores that it reports are
    those of its weights, and do not fall from round to round; the data stays as it is.

    Parameters
    ----------
    learner : Learner
    data : RankingData, optional
        The training data; by default, 12 random queries of 30 documents with five features.
    """
    name, data = type(learner).__name__, _random_data() if data is None else data
    _check_frozen(learner)
    _require(hash(learner) == hash(_sent(learner)), f"{name} has another hash after being pickled")
    before = data.features.copy()
    selection = learner.fit(data)
    _require(isinstance(selection, Selection), f"{name}.fit returns a {type(selection).__name__}, not a Selection")
    _require(bool((data.features == before).all()), f"{name} changes the data that it learns from")
    columns = set(selection.columns)
    _require(
        len(columns) == len(selection.columns) == len(selection.weights) and columns <= set(range(len(data.specs))),
        f"{name} gives {len(selection.weights)} weights for the columns {selection.columns}",
    )
    _require(bool(np.isfinite(selection.weights).all()), f"{name} gives a weight that is not finite")
    objective = learner.objective
    measure = objective if isinstance(objective, Objective) else Objective.parse(objective)
    # From the weights again: a learner may report what it does not return.
    means = after_each_round(selection, data, measure).mean(axis=1)
    _require(
        np.allclose(means, selection.training_scores, rtol=0, atol=1e-12),
        f"{name} reports the training scores {selection.training_scores}, but its weights score {means.tolist()}",
    )
    _require(bool((np.diff(selection.training_scores) >= 0).all()), f"{name} reports training scores that fall")
    for n_jobs in (2, 3):
        _require(learner.fit(data, n_jobs=n_jobs) == selection, f"{name} learns something else in {n_jobs} threads")


def check_diversity_learner(learner: DiversityLearner) -> None:
    """Check that a learner of models that diversify keeps the contract that `greylag train` relies on.

    It is a frozen value with a cost C; the result has finite weights for the features of the model, the same again and
    after being pickled.
    """
    name, model, examples = type(learner).__name__, CoverageModel(3), _random_examples()
    _check_frozen(learner)
    _require(learner.C > 0, f"{name} has no cost C above 0")
    weights = np.asarray(replace(learner, C=0.1).fit(model, examples).weights)  # type: ignore[type-var]
    d = examples[0][0].features.n_features
    _require(weights.ndim in {1, 2} and weights.shape[-1] == d, f"{name} gives weights {weights.shape} of {d} features")
    _require(bool(np.isfinite(weights).all()), f"{name} gives a weight that is not finite")
    again = replace(_sent(learner), C=0.1).fit(model, examples).weights
    _require(np.array_equal(again, weights), f"{name} learns something else the second time")


def check_feature(feature: Feature, index: PositionalIndex, rankings: Run | Iterable[Ranking]) -> None:
    """Check that a feature keeps the contract that extractors and models rely on.

    It is a value with one spelling, from which it is read again; its values are finite, the same again, in threads and
    after being pickled; and they depend on the query's text and on the other documents only if it declares that
    (`reads_query`, `uses_ranking` of `greylag.features.Feature`). The rankings have texts of queries, and documents of
    the index.
    """
    given = list(rankings.rankings if isinstance(rankings, Run) else rankings)
    _require(bool(given) and all(map(len, given)), "give rankings that have documents")
    if not isinstance(feature, LearnedFeature):  # those are read from the files of models
        _check_frozen(feature)
        _require(parse_feature(str(feature)) == feature, f"{feature} is not read from its spelling again")
    again = _sent(feature)
    _require(again == feature and hash(again) == hash(feature), f"{feature} is another feature after being pickled")

    def values(feature: Feature, rankings: list[Ranking]) -> list[list[float]]:
        extract = FeatureExtractor(index, (feature,))
        return [extract(ranking)[:, 0].tolist() for ranking in rankings]

    expected = values(feature, given)
    _require(bool(np.isfinite(np.concatenate(expected)).all()), f"{feature} has a value that is not finite")
    _require(values(feature, given[::-1])[::-1] == expected, f"{feature} has other values in another order of queries")
    _require(values(again, given) == expected, f"{feature} has other values after being pickled")
    _require(values(feature, [given[0].head(0)]) == [[]], f"{feature} has values of an empty ranking")
    if not feature.reads_query:
        without = [Ranking(r.qid, "", r.docids, r.scores) for r in given]
        _require(values(feature, without) == expected, f"{feature} has reads_query = False, and reads the query")
    if not feature.uses_ranking:
        alone = [[values(feature, [r.select(one)])[0][0] for one in np.eye(len(r), dtype=bool)] for r in given]
        _require(alone == expected, f"{feature} has uses_ranking = False, and depends on the other documents")


def _require(met: bool, otherwise: str) -> None:
    """Raise `AssertionError` with a sentence unless something is met; also under ``python -O``."""
    if not met:
        raise AssertionError(otherwise)


def _check_frozen(value: Any) -> None:
    """Check that a value is frozen: parameters identify it, and threads share it."""
    name = type(value).__name__
    _require(is_dataclass(value), f"{name} is not a dataclass")
    _require(type(value).__dataclass_params__.frozen, f"{name} is not frozen: write @dataclass(frozen=True)")


def _check_declarations(stage: Stage) -> None:
    """Check the declarations of `Stage` against the parameters."""
    kind, name = type(stage), type(stage).__name__
    _require(isinstance(stage, Stage), f"{name} does not extend greylag.Stage")
    _check_frozen(stage)
    parameters = stage_parameters(kind)
    known = set(get_args(Need))
    _require(set(kind.needs) <= known, f"{name}.needs has {sorted(set(kind.needs) - known)}: use {sorted(known)}")
    declared = {
        "needs": kind.needs,
        "strength": [kind.strength] if kind.strength else [],
        "readers": kind.readers,
        "by_query": kind.by_query,
    }
    for what, names in declared.items():
        for parameter in names:
            _require(parameter in parameters, f"{name}.{what} has {parameter!r}, which is not a parameter")
    for need in known & set(required_parameters(kind)):
        _require(need in kind.needs, f"{name} has a parameter {need} without a default: {name}.needs has to name it")
    for need in sorted(kind.needs & {"aspects", "groups"}):
        _require(need in kind.readers, f"{name}.readers does not say how to read {need}, which commands have as a file")
    try:
        get_type_hints(kind, localns={"PositionalIndex": object})
    except NameError as error:
        raise AssertionError(f"{name}: {error}: import the types of parameters outside of TYPE_CHECKING") from error
    if kind.strength:
        for strength in (0.0, 0.5, 0.99):
            try:
                replace(stage, **{kind.strength: strength})  # type: ignore[type-var]
            except ParameterError as error:
                raise AssertionError(f"{name} refuses {kind.strength}={strength:g}, of [0, 1]: {error}") from error


def _permuted(stage: Stage, ranking: Ranking) -> Ranking:
    """Rank a shuffled input, and check that the result has the same query and documents."""
    name, result = type(stage).__name__, stage(ranking)
    _require(isinstance(result, Ranking), f"{name} returns a {type(result).__name__}, not a Ranking")
    _require((result.qid, result.query) == (ranking.qid, ranking.query), f"{name} changes the query")
    _require(sorted(result.docids) == sorted(ranking.docids), f"{name} does not return the documents that it is given")
    return result


def _check_documents(stage: Stage, ranking: Ranking, knows_all: bool) -> None:
    """Check empty rankings, single and tied documents, and documents that the stage knows nothing about."""
    unknown = tuple(f"greylag-unknown-{number}" for number in range(4))
    for docids in ((), ranking.docids[:1], unknown[:1], unknown, ranking.docids):
        _permuted(stage, Ranking(ranking.qid, ranking.query, docids, np.zeros(len(docids))))
    if knows_all:
        return
    pairs = list(zip(ranking.docids, ranking.scores.tolist(), strict=True))
    # At the top, twice in the middle and at the end: with scores that tie, or above all.
    for docid, rank in zip(unknown, (0, len(pairs) // 3, len(pairs) // 2, len(pairs)), strict=True):
        pairs.insert(rank, (docid, pairs[rank - 1][1] if rank else pairs[0][1] + 1.0))
    mixed = Ranking.sort(ranking.qid, ranking.query, *zip(*pairs, strict=True))
    ranked = tuple(docid for docid in _permuted(stage, mixed).docids if docid not in unknown)
    _require(
        ranked == stage(ranking).docids,
        f"{type(stage).__name__} ranks documents differently where others are that it knows nothing about: use "
        "self.rerank_known, or give knows_all=True if it knows every document",
    )


def _sent(value: Any) -> Any:
    """Return the value as another process gets it."""
    import cloudpickle  # as joblib sends it

    try:
        return pickle.loads(cloudpickle.dumps(value))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"{type(value).__name__} cannot be sent to another process: {error}") from error


def _random_examples() -> list[Example]:
    """Make six queries with ten candidates of 30 words, and five subtopics."""
    rng, features, examples = np.random.default_rng(5), PRESETS["svmdiv"], list[Example]()
    for _ in range(6):
        words = csr_matrix((rng.random((10, 30)) < 0.3).astype(float))
        candidates = Candidates(features, words, rng.integers(features.n_features, size=(30, 1)), np.zeros((10, 0)))
        judged = {f"s{s}": {f"d{n}": int(rng.random() < 0.25) for n in range(10)} for s in range(5)}
        examples.append((candidates, Subtopics.from_qrels([f"d{n}" for n in range(10)], judged)))
    return examples


def _random_data() -> RankingData:
    """Make twelve queries with 30 documents each, graded 0 to 2, and five features, the first the most predictive."""
    rng, n = np.random.default_rng(3), 12 * 30
    grades = rng.integers(0, 3, n)
    features = rng.standard_normal((n, 5)) + grades[:, None] * np.array([0.8, 0.4, 0.2, 0.0, -0.3])
    docids = tuple(f"d{number:03d}" for number in range(n, 0, -1))
    by_query = grades.reshape(12, 30)
    return RankingData(
        specs=tuple(f"feature{number}" for number in range(5)),
        qids=tuple(f"q{number:02d}" for number in range(12)),
        offsets=np.arange(0, n + 1, 30),
        docids=docids,
        features=features,
        grades=grades,
        relevant_grades=tuple(own[own > 0] for own in by_query),
    )
