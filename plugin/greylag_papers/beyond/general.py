"""The general model: weights that are learned on some collections and applied, unchanged, to another one.

With w(c, k) the weights by `ListwiseRegression` on the documents of collection c, cut at the k-th depth,

    w(c) = mean over k of w(c, k) / |w(c, k)|.

So every collection counts the same, however many topics it has: the fewer there are, the shorter are the weights that
the penalty leaves. The model's weights follow the mean length of an index's documents, by the line of `LengthSlopes`
through all w(c), and each collection is ranked by the line through the others. The models of `greylag.GeneralRanker`
are those of all collections: one of all features, and one without those of words as they are written, for indexes that
do not store texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.stats import t as student

from greylag import __version__
from greylag.base import FloatArray, FormatError, ParameterError, Run
from greylag.evaluation import (
    Comparison,
    Qrels,
    Scores,
    Section,
    compare_scores,
    parse_measure,
    read_subtopic_qrels,
    split_folds,
    to_dict,
)
from greylag.features import Feature, FeatureParameters, FeatureText, parse_features
from greylag.learning import CountedRankings, ListwiseRegression, Objective, RankingData, judged_topics, linear_scores
from greylag.rankers import LengthSlopes, RankingModel
from greylag.recipes import baselines, general_model
from greylag.studies import (
    Collection,
    CollectionSettings,
    Context,
    Experiment,
    FileName,
    FirstStage,
    Folds,
    InputFile,
    ObjectiveName,
    Outcome,
    Positive,
    Queries,
    Seed,
    Study,
    comparison_table,
    means_table,
    open_collection,
)
from greylag.studies import Settings as Fields
from greylag_papers.texts import read_texts

GENERAL, POSITIONS = "general", "general-positions"
FIRST, TUNED, RM3, DEPENDENCE = "BM25", "tuned BM25", "RM3", "SDM"
DEPTHS: Mapping[int, int] = {100: 500, 1000: 100}
"""Documents per topic that weights are learned from, and the most topics with as many."""
_RM3 = "stage:rm3"
_TEXTS = read_texts(__file__)


class Part(Fields):
    """A collection that is learned from."""

    collection: Collection
    topics: InputFile
    """Path of the topics."""
    qrels: InputFile
    """Path of the relevance judgements."""
    queries: Queries = Queries()
    subtopics: bool = False
    """Whether the topics are subtopics: lines ``QID TAB SUBTOPIC TAB TEXT``, with judgements by subtopic."""
    related: str = ""
    """A name that related collections share, such as translations of each other: none is ranked by weights of another,
    and the mean over collections counts them as one.
    """


class Settings(Experiment):
    """The collections, and the features of the model."""

    collections: Annotated[dict[FileName, Part], Field(min_length=2)]
    features: FeatureText = ",".join(map(str, general_model().features))
    """The model's features, separated by commas, each normalised by ``@z``; those of greylag's by default."""
    penalty: Annotated[float, Field(gt=0)] = 100.0
    """The penalty of listwise regression."""
    learn: bool = True
    """Whether weights are learned. If not, greylag's own rank all collections, which they were not learned from."""
    measures: Annotated[tuple[ObjectiveName, ...], Field(min_length=1)] = ("nDCG@10", "AP")
    """The first is maximised; all are compared."""
    folds: Folds = 5
    """The folds in which k1 and b of the baseline are tuned on the collection's own judgements."""
    seed: Seed = 0
    """Seed of these folds."""

    @model_validator(mode="after")
    def check_related(self) -> Self:
        """Check that each collection has others that it is not related to."""
        if len({part.related or name for name, part in self.collections.items()}) < 2:
            raise ValueError("collections: all are related, so that none can be ranked by weights of others")
        if not self.learn and self.features != type(self).model_fields["features"].default:
            raise ValueError("features: none can be chosen with learn: false, which takes greylag's own weights")
        return self


def spaced(items: Sequence[str], most: int) -> list[str]:
    """Select at most `most` of the items, at equal distances."""
    return [items[place] for place in np.linspace(0, len(items) - 1, min(most, len(items))).round().astype(int)]


class PartSettings(CollectionSettings):
    """A collection that is searched for the topics that are used alone."""

    subtopics: bool = False
    related: str = ""
    most_topics: Positive = max(DEPTHS.values())

    def read(self) -> tuple[dict[str, str], Qrels, tuple[str, ...]]:
        """As many judged topics as are used, at equal distances in the file, and their judgements."""
        topics, qrels = self.subtopics_as_topics() if self.subtopics else self.judged(self.topics, self.qrels)
        kept = spaced(judged_topics(topics, qrels), self.most_topics)
        return {qid: topics[qid] for qid in kept}, {qid: qrels[qid] for qid in kept}, tuple(kept)

    def subtopics_as_topics(self) -> tuple[dict[str, str], Qrels]:
        """Read each subtopic as a topic ``QID.SUBTOPIC``."""
        path, topics = self.path(self.topics), {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            fields = line.split("\t")
            if len(fields) != 3:
                raise FormatError(path, number, "not a line QID TAB SUBTOPIC TAB TEXT")
            topics[f"{fields[0]}.{fields[1]}"] = fields[2]
        judgements = read_subtopic_qrels(self.path(self.qrels), lenient=self.lenient)
        return topics, {f"{qid}.{name}": own for qid, by in judgements.items() for name, own in by.items()}


class Rows(NamedTuple):
    """The documents of a collection's topics, cut at one depth."""

    data: RankingData  # the model's features, then those of the baselines
    tuned: RankingData  # BM25 for every k1 and b of the grid, a column each
    learned: tuple[str, ...]  # the topics that weights are learned from


@dataclass(frozen=True)
class Opened:
    """A collection's rows by depth."""

    rows: Mapping[int, Rows]
    documents: int
    length: float
    fingerprint: str

    def weights(self, features: Sequence[Feature], settings: Settings) -> FloatArray:
        """Learn the collection's weights of these features, shape (f,)."""
        units = []
        for data in self.parts(features):
            learner = ListwiseRegression(settings.measures[0], penalty=settings.penalty)
            weights = learner.fit(data).over(data)
            if not weights.any():
                raise ParameterError("no feature tells relevant documents from others")
            units.append(weights / float(np.sqrt(np.sum(weights**2))))
        return np.asarray(np.mean(units, axis=0))

    def parts(self, features: Sequence[Feature]) -> list[RankingData]:
        """What is learned from, with these features alone."""
        return [
            rows.data.select_features(rows.data.columns_of(map(str, features))).select_queries(rows.learned)
            for rows in self.rows.values()
        ]


def open_all(settings: Settings, context: Context) -> dict[str, Opened]:
    """Open, search and extract one collection after another."""
    opened = {}
    for name, part in settings.collections.items():
        with context.timed(name):
            opened[name] = _open(settings, name, part, replace(context, folder=context.folder / name))
    return opened


def _open(settings: Settings, name: str, part: Part, context: Context) -> Opened:
    fields = {**dict(part), "name": name, "first_stage": FirstStage(hits=max(DEPTHS))}
    own = PartSettings(**fields, data_folder=settings.data_folder, file_folder=settings.file_folder)
    opened = open_collection(own, context)
    # The baselines are columns, too, so that all systems are scored on the same documents by the same code.
    others = (*parse_features(_RM3), *baselines.SDM.features, *parse_features("score"))
    features = tuple(dict.fromkeys([*parse_features(settings.features), *others]))

    def rows(run: Run, learned: tuple[str, ...]) -> Rows:
        data = CountedRankings(run.rankings, opened.qrels, opened.index, features).data(FeatureParameters())
        counted = CountedRankings(run.rankings, opened.qrels, opened.index, baselines.BM25.features)
        grid = [
            counted.data(parameters)
            for parameters in baselines.parameter_grid(baselines.GRID, baselines.BM25.tuned, FeatureParameters())
        ]
        names = tuple(f"BM25 {place}" for place in range(len(grid)))
        return Rows(
            data, replace(grid[0], specs=names, features=np.hstack([setting.features for setting in grid])), learned
        )

    judged, longest = judged_topics(opened.first, opened.qrels), max(map(len, opened.first.rankings), default=0)
    by_depth = {}
    for depth, before in zip(DEPTHS, (0, *DEPTHS), strict=False):
        if longest > before:  # no ranking is the same at two depths
            run = Run(tuple(opened.first[qid].head(depth) for qid in judged))
            # Fewer topics are learned from at 1000 documents than are ranked.
            by_depth[depth] = rows(run, tuple(spaced(judged, DEPTHS[depth])))
    index = opened.index
    return Opened(by_depth, index.n_documents, index.average_length, index.fingerprint)


def models_of(settings: Settings) -> dict[str, tuple[Feature, ...]]:
    """The features of each model."""
    features = parse_features(settings.features)
    return {GENERAL: features, POSITIONS: tuple(f for f in features if not str(f).startswith("written:"))}


def related_names(collections: Mapping[str, Part]) -> dict[str, str]:
    """The name that a collection shares with related ones, or its own."""
    return {name: part.related or name for name, part in collections.items()}


def scores_of(rows: Rows, weights: Mapping[str, FloatArray], settings: Settings) -> dict[str, dict[str, Scores]]:
    """For each measure, the scores of the systems on one collection, with each model's weights."""
    data, models = rows.data, models_of(settings)

    def linear(features: Sequence[object], values: Sequence[float] | FloatArray) -> FloatArray:
        return linear_scores(data, [data.names.index(str(feature)) for feature in features], np.asarray(values))

    systems = {
        FIRST: linear(["score"], [1.0]),
        RM3: linear([_RM3], [1.0]),
        DEPENDENCE: linear(baselines.SDM.features, baselines.SDM.weights),
        **{name: linear(features, weights[name]) for name, features in models.items()},
    }
    by_measure: dict[str, dict[str, Scores]] = {}
    for name in settings.measures:
        measure, objective = parse_measure(name), Objective.parse(name)
        values = {system: objective.evaluate(data, scores) for system, scores in systems.items()}
        values[TUNED] = tuned_bm25(rows.tuned, objective, settings)
        by_measure[name] = {
            system: Scores.single(measure, dict(zip(data.qids, by_query.tolist(), strict=True)))
            for system, by_query in values.items()
        }
    return by_measure


def tuned_bm25(data: RankingData, objective: Objective, settings: Settings) -> FloatArray:
    """The objective by BM25 with k1 and b of the other folds, shape (q,)."""
    values = np.array([objective.evaluate(data, column) for column in data.columns])  # shape (grid, q)
    tuned = np.empty(len(data.qids))
    for fold in split_folds(data.qids, settings.folds, settings.seed):
        held_out = np.isin(data.qids, fold)
        tuned[held_out] = values[values[:, ~held_out].mean(axis=1).argmax(), held_out]
    return tuned


Compared = Mapping[str, Mapping[str, Scores]]
"""The scores by one measure at one depth, by collection and system."""


def run(settings: Settings, opened: Mapping[str, Opened], context: Context) -> Outcome:
    """Rank each collection by weights of the others, and learn the model from all; or rank all by greylag's weights."""
    models, related = models_of(settings), related_names(settings.collections)
    models = models if settings.learn else {}
    learned = {
        model: {name: collection.weights(features, settings) for name, collection in opened.items()}
        for model, features in models.items()
    }
    own = {GENERAL: general_model(), POSITIONS: general_model(texts=False)}
    trained_on = {known["fingerprint"] for known in own[GENERAL].provenance["indexes"].values()}
    compared: dict[str, dict[str, dict[str, Scores]]] = {}
    for name, collection in opened.items():
        if not settings.learn and collection.fingerprint in trained_on:
            raise ParameterError(f"collections.{name}: greylag's weights were learned from it; set learn: true")
        others = [other for other in opened if related[other] != related[name]]
        lengths = [opened[other].length for other in others]
        place = np.array([1.0, LengthSlopes(()).place(collection.length)])
        weights = {model: np.array(shipped.at_length(collection.length).weights) for model, shipped in own.items()}
        weights |= {
            model: place @ LengthSlopes.line([by_name[other] for other in others], lengths)
            for model, by_name in learned.items()
        }
        for depth, rows in collection.rows.items():
            for measure, scores in scores_of(rows, weights, settings).items():
                compared.setdefault(f"{measure}, top {depth}", {})[name] = scores
        context.progress(f"{name}: {', '.join(str(len(rows.data.qids)) for rows in collection.rows.values())} topics")
    compared = {label: scores for label, scores in compared.items() if len(scores) > 1}
    figures = {name: row for label, scores in compared.items() for name, row in _rows(label, scores, related).items()}
    sections = [_section(label, scores, figures) for label, scores in compared.items()]
    title, text = ("Leave one collection out", "collections") if settings.learn else ("As shipped", "shipped")
    return Outcome(
        scores=figures,
        results={
            "scores": {
                label: {name: to_dict(own) for name, own in scores.items()} for label, scores in compared.items()
            },
            "weights": {
                model: {name: weights.tolist() for name, weights in own.items()} for model, own in learned.items()
            },
        },
        title="A model for which nothing has to be judged",
        sections=[Section(title, _TEXTS[f"general: {text}"]), *sections],
        models={name: general(settings, opened, features, learned[name]) for name, features in models.items()},
        provenance={"fingerprints": {name: collection.fingerprint for name, collection in opened.items()}},
    )


def general(
    settings: Settings, opened: Mapping[str, Opened], features: Sequence[Feature], learned: Mapping[str, FloatArray]
) -> RankingModel:
    """Make the model of all collections' weights."""
    lengths = {name: round(collection.length, 2) for name, collection in opened.items()}
    line = LengthSlopes.line([*learned.values()], [*lengths.values()])
    # In the same unit, so that the ratios of weights and slopes are kept.
    weights, slopes = (line / np.abs(line[0]).sum()).round(4).tolist()
    indexes = {
        name: {
            "documents": collection.documents,
            "average_length": lengths[name],
            "fingerprint": collection.fingerprint,
        }
        for name, collection in opened.items()
    }
    provenance = {
        "greylag": __version__,
        "learner": f"listwise regression with penalty {settings.penalty:g}, in unit length, "
        "and a line in the log of length",
        "collections": {
            name: max(len(part.qids) for part in collection.parts(features)) for name, collection in opened.items()
        },
        "indexes": indexes,
        "related": {name: other for name, other in related_names(settings.collections).items() if name != other},
        "weights": {name: weights.round(6).tolist() for name, weights in learned.items()},
    }
    return RankingModel(
        tuple(features),
        tuple(weights),
        objective=settings.measures[0],
        provenance=provenance,
        by_length=LengthSlopes(tuple(slopes)),
    )


def _rows(label: str, scores: Compared, related: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Means by collection, their differences from BM25, and differences over collections."""
    means = means_of(scores)
    rows = {f"{name}, {label}": row for name, row in means.items()}
    for name, by_system in scores.items():
        comparison = next(c for c in compare_scores(by_system, FIRST).comparisons if c.run == GENERAL)
        rows[f"{name}, {label}, {GENERAL} less {FIRST}"] = difference(comparison)
    for other in (FIRST, TUNED, RM3, DEPENDENCE, POSITIONS):
        gains = {name: row[GENERAL] - row[other] for name, row in means.items()}
        rows[f"all, {label}, {GENERAL} less {other}"] = over_collections(gains, related)
    return rows


def difference(comparison: Comparison) -> dict[str, float]:
    """The figures of a comparison within a collection, not corrected for others."""
    ends = dict(zip(("low", "high"), comparison.interval or (), strict=False))
    return {"difference": comparison.difference, **ends, "p": comparison.p}


def over_collections(gains: Mapping[str, float], related: Mapping[str, str]) -> dict[str, float]:
    """The mean gain, related collections as one, with Student's 95 % interval; the least; and how many are above 0."""
    by_group: dict[str, list[float]] = {}
    for name, gain in gains.items():
        by_group.setdefault(related[name], []).append(gain)
    groups = [np.mean(members) for members in by_group.values()]
    n, mean = len(groups), float(np.mean(groups))
    half = float(student.ppf(0.975, n - 1) * np.std(groups, ddof=1) / np.sqrt(n))
    above = float(sum(gain > 0 for gain in gains.values()))
    return {"mean": mean, "low": mean - half, "high": mean + half, "least": min(gains.values()), "above": above}


def means_of(scores: Compared) -> dict[str, dict[str, float]]:
    """Means by collection and system."""
    return {name: {system: float(value.means[0]) for system, value in own.items()} for name, own in scores.items()}


def _section(label: str, scores: Compared, rows: Mapping[str, Mapping[str, float]]) -> Section:
    """Means, tests, and differences from BM25, with 95 % intervals."""
    gained, tests = f", {label}, {GENERAL} less {FIRST}", [compare_scores(own, FIRST) for own in scores.values()]
    gains = {name.removesuffix(gained): row for name, row in rows.items() if name.endswith(gained)}
    tables = [
        means_table(f"{label}: {GENERAL} less {FIRST}, with 95 % intervals", gains),
        means_table(f"{label}, of each collection", means_of(scores)),
        comparison_table(f"{label}, less that of {FIRST}", *tests),
    ]
    return Section(label, "", tables)


STUDY = Study(Settings, open_all, run)
