"""Every form of others' values at every entry: the same figures to the last bit, or the refusal that a table states.

Tests `greylag.base.core.labels`, `greylag.base.doors.groups`, `greylag.base.doors.judgements`,
`greylag.base.doors.passages`, `greylag.base.doors.topics`, `greylag.base.doors.vectors` and
`greylag.evaluation.trec.json_tables`.

An entry is a function, a constructor or a command that takes a kind of value. A form is a way to write one value of
that kind. Where scores tie, forms that state an order, and forms with scores alone, have figures of their own.
"""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import ir_datasets
import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest

import greylag
from greylag import (
    MMR,
    HybridRetriever,
    PositionalIndex,
    Reranker,
    Run,
    compare,
    evaluate,
    fuse_runs,
    learn_fusion,
    passages,
    read_qrels,
    read_run,
    read_topics,
    rerank,
    train,
    write_run,
)
from greylag.base import GreylagError, Pipeline, Ranking
from greylag.diversity import GroupLimit, XQuAD
from greylag.evaluation import at_level, evaluate_by_subtopic, pool_runs, read_subtopic_qrels, rerank_by_fold
from greylag.evaluation.fusion import GivenRun
from greylag.evaluation.scoring.holes import score_holes
from greylag.features import FeatureExtractor, Score
from greylag.index import ArrayVectors
from greylag.learning import training_data
from greylag.rankers import ManifoldRanker
from greylag.recipes import IndexFreeRecipe, choose_diversifier, cross_validate
from tests.greylag.base.doors.test_runs import of_ranx

TEXTS = {"d1": "a cat sat", "d2": "a cat sat down", "d3": "a dog ran", "d4": "cats and dogs"}
QIDS = [str(number) for number in range(1, 13)]
TOPICS = dict(zip(QIDS, ["cat", "dog", "cats"] * 4, strict=True))
ORDERED = dict(zip(QIDS, [["d1", "d2", "d3"], ["d3", "d1"], ["d4", "d2", "d1"]] * 4, strict=True))
SCORES = dict(
    zip(QIDS, [{"d1": 2, "d2": 2, "d3": 1}, {"d3": 3, "d1": 1}, {"d4": 2, "d2": 1, "d1": 1}] * 4, strict=True)
)
"""Scores that tie: docids, descending, are not the order of `ORDERED`."""
STATED = Run(tuple(Ranking(q, TOPICS[q], tuple(ds), np.array([SCORES[q][d] for d in ds])) for q, ds in ORDERED.items()))
ALONE = Run.from_dict(SCORES, TOPICS)
ROWS = [(qid, docid, SCORES[qid][docid]) for qid, docids in ORDERED.items() for docid in docids]
QRELS = dict(zip(QIDS, [{"d1": 1, "d2": 0}, {"d3": 2}, {"d2": 1}] * 4, strict=True))
PEOPLE = {qid: {"d1": int(qid) % 2, "d2": 1, "d3": 2} for qid in QIDS[:9]}
JUDGED = [(qid, docid, grade) for qid, grades in QRELS.items() for docid, grade in grades.items()]
NAMED = {"a": {"d1": 1}, "b": {"d2": 1, "d1": 0}}, {"a": {"d3": 1}}, {"a": {"d2": 1, "d4": 1}}
SUBTOPICS = dict(zip(QIDS, NAMED * 4, strict=True))
BY_SUBTOPIC = [(q, s, d, g) for q, named in SUBTOPICS.items() for s, grades in named.items() for d, g in grades.items()]
VECTORS = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.8]])
GROUPS = {"d1": "7", "d2": "7", "d3": "9", "d4": "9"}
DOCIDS = [*TEXTS]
INDEX = PositionalIndex.from_texts(TEXTS)
ARRAY = ArrayVectors(DOCIDS, VECTORS)


class Form(NamedTuple):
    """A way to write a value: `make` makes it in a folder, as those of iterators are used up."""

    make: Callable[[Any], Any]
    kind: str = ""  # of the forms that an entry may treat alike


def frame(library, names, rows):
    columns = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
    return pd.DataFrame(columns) if library == "pandas" else pl.DataFrame(columns)


def written(name, text):
    def make(folder):
        path = folder / name
        path.write_text(text)
        return path

    return Form(make, "file")


HITS = {qid: [SimpleNamespace(docid=d, score=SCORES[qid][d]) for d in docids] for qid, docids in ORDERED.items()}
RANKED = [(q, d, s, n, TOPICS[q]) for q in ORDERED for n, (d, s) in enumerate((d, SCORES[q][d]) for d in ORDERED[q])]
SCORED = [ir_measures.ScoredDoc(*row) for row in ROWS]
RUNS = {
    "a Run": Form(lambda _: STATED, "stated"),
    "rankings": Form(lambda _: [*STATED.rankings], "stated"),
    "a generator of rankings": Form(lambda _: iter(STATED.rankings), "stated"),
    "pairs": Form(lambda _: {q: [(d, SCORES[q][d]) for d in docids] for q, docids in ORDERED.items()}, "stated"),
    "hits": Form(lambda _: HITS, "stated"),
    "a pandas frame with ranks": Form(
        lambda _: frame("pandas", ("qid", "docno", "score", "rank", "query"), RANKED), "stated"
    ),
    "a polars frame with ranks": Form(
        lambda _: frame("polars", ("query_id", "docid", "score", "rank", "query"), RANKED), "ranks"
    ),
    "scores": Form(lambda _: SCORES, "alone"),
    "a Run of scores, in the order of a file": Form(lambda _: ALONE, "alone"),
    "scores as Series": Form(lambda _: {qid: pd.Series(scores) for qid, scores in SCORES.items()}, "alone"),
    "scores by integers": Form(lambda _: {int(qid): scores for qid, scores in SCORES.items()}, "alone"),
    "a pandas frame": Form(lambda _: frame("pandas", ("qid", "docno", "score"), ROWS), "alone"),
    "a polars frame": Form(lambda _: frame("polars", ("q_id", "doc_id", "score"), ROWS), "alone"),
    "ranx": Form(lambda _: of_ranx("Run", SCORES), "alone"),
    "ir_measures": Form(lambda _: SCORED, "alone"),
    "a generator of ir_measures": Form(lambda _: iter(SCORED), "alone"),
    "ir_datasets": Form(lambda _: [ir_datasets.formats.GenericScoredDoc(*row) for row in ROWS], "alone"),
    "TREC": written("a.run", "".join(f"{q} Q0 {d} {n} {s} greylag\n" for n, (q, d, s) in enumerate(ROWS))),
    "JSON": written("greylag.json", json.dumps(SCORES)),
}
JUDGEMENTS = {
    "grades": Form(lambda _: QRELS),
    "grades as whole floats": Form(
        lambda _: {q: {d: float(g) for d, g in grades.items()} for q, grades in QRELS.items()}
    ),
    "grades as Series": Form(lambda _: {qid: pd.Series(grades) for qid, grades in QRELS.items()}),
    "grades of NumPy": Form(lambda _: {q: {d: np.int32(g) for d, g in grades.items()} for q, grades in QRELS.items()}),
    "grades by integers": Form(lambda _: {int(qid): grades for qid, grades in QRELS.items()}),
    "a pandas frame": Form(lambda _: frame("pandas", ("qid", "docno", "label"), JUDGED)),
    "a polars frame": Form(lambda _: frame("polars", ("query_id", "doc_id", "relevance"), JUDGED)),
    "ranx": Form(lambda _: of_ranx("Qrels", QRELS)),
    "ir_measures": Form(lambda _: [ir_measures.Qrel(*row, "0") for row in JUDGED]),
    "a generator of ir_datasets": Form(lambda _: (ir_datasets.formats.TrecQrel(*row, "0") for row in JUDGED)),
    "TREC": written("a.qrels", "".join(f"{q} 0 {d} {g}\n" for q, d, g in JUDGED)),
    "BEIR": written("a.tsv", "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in JUDGED)),
    "JSON": written("qrels.json", json.dumps(QRELS)),
}
SUBTOPIC_JUDGEMENTS = {
    "grades": Form(lambda _: SUBTOPICS),
    "grades as Series": Form(
        lambda _: {q: {s: pd.Series(grades) for s, grades in named.items()} for q, named in SUBTOPICS.items()}
    ),
    "grades by integers": Form(lambda _: {int(qid): named for qid, named in SUBTOPICS.items()}),
    "a pandas frame": Form(lambda _: frame("pandas", ("qid", "subtopic", "docno", "label"), BY_SUBTOPIC)),
    "a polars frame": Form(lambda _: frame("polars", ("query_id", "iteration", "doc_id", "relevance"), BY_SUBTOPIC)),
    "ir_datasets": Form(lambda _: [ir_datasets.formats.TrecSubQrel(q, d, g, s) for q, s, d, g in BY_SUBTOPIC]),
    "TREC": written("sub.qrels", "".join(" ".join(map(str, row)) + "\n" for row in BY_SUBTOPIC)),
}
TEXTS_BY_QID = {
    "texts": Form(lambda _: TOPICS),
    "a Series": Form(lambda _: pd.Series(TOPICS)),
    "texts by integers": Form(lambda _: {int(qid): text for qid, text in TOPICS.items()}),
    "a pandas frame": Form(lambda _: frame("pandas", ("qid", "query"), TOPICS.items())),
    "a polars frame": Form(lambda _: frame("polars", ("query_id", "text"), TOPICS.items())),
    "queries": Form(lambda _: [greylag.Query(*pair) for pair in TOPICS.items()]),
    "a generator of queries": Form(lambda _: (greylag.Query(*pair) for pair in TOPICS.items())),
    "a table": written("topics.tsv", "".join(f"{qid}\t{text}\n" for qid, text in TOPICS.items())),
    "JSON lines": written("topics.jsonl", "".join(json.dumps({"_id": q, "text": t}) + "\n" for q, t in TOPICS.items())),
}
PASSAGES = {
    "texts by docid": Form(lambda _: TEXTS),
    "a Series": Form(lambda _: pd.Series(TEXTS)),
    "pairs": Form(lambda _: [*TEXTS.items()]),
    "a generator of pairs": Form(lambda _: iter(TEXTS.items())),
    "mappings": Form(lambda _: [{"id": docid, "text": text} for docid, text in TEXTS.items()]),
    "mappings by docid": Form(lambda _: {docid: {"text": text} for docid, text in TEXTS.items()}),
    "a pandas frame": Form(lambda _: frame("pandas", ("docno", "text"), TEXTS.items())),
    "a polars frame": Form(lambda _: frame("polars", ("id", "text"), TEXTS.items())),
    "a list of texts": Form(lambda _: [*TEXTS.values()], "places"),
    "a polars Series": Form(lambda _: pl.Series([*TEXTS.values()]), "places"),
}
BACKWARDS = DOCIDS[::-1]
ROWS_OF_VECTORS = {
    "an array": Form(lambda _: VECTORS),
    "lists": Form(lambda _: VECTORS.tolist()),
    "by docid": Form(lambda _: {docid: VECTORS[DOCIDS.index(docid)] for docid in BACKWARDS}),
    "lists by docid": Form(lambda _: {docid: VECTORS[DOCIDS.index(docid)].tolist() for docid in BACKWARDS}),
    "a Series": Form(lambda _: pd.Series([VECTORS[DOCIDS.index(docid)] for docid in BACKWARDS], index=BACKWARDS)),
    "a pandas frame": Form(lambda _: pd.DataFrame(VECTORS, index=DOCIDS).loc[BACKWARDS]),
    "a polars frame": Form(lambda _: pl.DataFrame(VECTORS)),
}
NAMES = {
    "names": Form(lambda _: GROUPS),
    "integers": Form(lambda _: {docid: int(name) for docid, name in GROUPS.items()}),
    "integers of NumPy": Form(lambda _: {docid: np.int16(name) for docid, name in GROUPS.items()}),
    "a Series": Form(lambda _: pd.Series(GROUPS).loc[BACKWARDS]),
    "a Series of integers": Form(lambda _: pd.Series(GROUPS).astype(int)),
    "a Series with None": Form(lambda _: pd.Series({**GROUPS, "d5": None})),
}


def figures(value):
    """Numbers and names of a value to the last bit, to compare."""
    if isinstance(value, Run):
        return [(r.qid, r.docids, r.scores.tobytes()) for r in value.rankings]
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return value if isinstance(value, bytes | str | list | dict | tuple) else repr(value)


def columns_of(folder, run):
    write_run(run, folder / "out")
    return [line.split()[:5] for line in (folder / "out").read_text().splitlines()]


RERANKED = MMR(vectors=ARRAY, k=2)
MEASURES = ["AP", "nDCG@10", "RR"]
LEARNED = IndexFreeRecipe((Score(),), greylag.ListwiseRegression("AP"))
RUN_ENTRIES = {
    "evaluate": lambda run, _: evaluate(run, QRELS, MEASURES).values,
    "evaluate_by_subtopic": lambda run, _: evaluate_by_subtopic(run, SUBTOPICS, ["alpha-nDCG@10", "AP"]).values,
    "compare": lambda run, _: compare({"a": run, "b": STATED}, QRELS, MEASURES, baseline="b").to_dict(),
    "compare, the baseline": lambda run, _: compare({"b": STATED, "a": run}, QRELS, baseline="a").to_dict(),
    "compare, by subtopic": lambda run, _: compare({"a": run}, SUBTOPICS).to_dict(),
    "compare, unjudged": lambda run, _: compare({"a": run, "b": STATED}, QRELS, unjudged=True).to_dict(),
    "compare, collections": lambda run, _: compare({"x": ({"a": run}, QRELS), "y": ({"a": STATED}, QRELS)}).to_dict(),
    "score_holes": lambda run, _: score_holes({"a": run, "b": STATED}, QRELS, ["AP"]).to_dict(),
    "pool_runs": lambda run, _: pool_runs({"a": run}, 1).documents,
    "fuse_runs": lambda run, _: fuse_runs([run, STATED]),
    "fuse_runs, named": lambda run, _: fuse_runs({"a": run, "b": STATED}, "combsum", weights={"a": 2.0, "b": 1.0}),
    "learn_fusion": lambda run, _: str(learn_fusion({"a": run, "b": STATED.head(2)}, QRELS)),
    "GivenRun": lambda run, _: GivenRun(run).run(TOPICS),
    "read_run": lambda run, _: read_run(run),
    "read_run, with topics": lambda run, _: read_run(run, TOPICS),
    "write_run": lambda run, folder: columns_of(folder, run),
    "a stage": lambda run, _: RERANKED.run(run),
    "a pipeline": lambda run, _: Pipeline((RERANKED,)).run(run),
    "rerank_by_fold": lambda run, _: rerank_by_fold([RERANKED] * 2, [["1"], ["2", "3"]], run),
    "aspects": lambda run, _: XQuAD(aspects=[run, ALONE], scale="max").run(STATED),
    "choose_diversifier": lambda run, _: str(
        choose_diversifier(run, SUBTOPICS, vectors=ARRAY, methods=["mmr"], folds=3)
    ),
    "training_data": lambda run, _: training_data(run, QRELS, FeatureExtractor(None, (Score(),))).features,
    "train": lambda run, _: str(train(run, QRELS, None, LEARNED)),
    "cross_validate": lambda run, _: cross_validate(LEARNED, run, QRELS, None, folds=3),
    "to_frame": lambda run, _: passages.run_to_frame(run).drop(columns="query").to_json(),
    "to_pyserini": lambda run, _: {
        q: [tuple(hit) for hit in hits] for q, hits in passages.run_to_pyserini(run).items()
    },
}
JUDGEMENT_ENTRIES = {
    "evaluate": lambda qrels, _: evaluate(STATED, qrels, MEASURES).values,
    "compare": lambda qrels, _: compare({"a": STATED}, qrels).to_dict(),
    "compare, predicted": lambda qrels, _: compare({"a": STATED}, PEOPLE, predicted=qrels).to_dict(),
    "compare, other_qrels": lambda qrels, _: compare({"a": STATED, "b": ALONE}, QRELS, other_qrels=qrels).to_dict(),
    "compare, collections": lambda qrels, _: compare({"x": ({"a": STATED}, qrels)}).to_dict(),
    "score_holes": lambda qrels, _: score_holes({"a": STATED, "b": ALONE}, qrels, ["AP"]).to_dict(),
    "pool_runs": lambda qrels, _: pool_runs({"a": STATED}, 2, judged=qrels).documents,
    "read_qrels": lambda qrels, _: read_qrels(qrels),
    "at_level": lambda qrels, _: at_level(qrels, 2),
    "training_data": lambda qrels, _: training_data(STATED, qrels, FeatureExtractor(None, (Score(),))).grades,
    "train": lambda qrels, _: str(train(STATED, qrels, None, LEARNED)),
    "cross_validate": lambda qrels, _: cross_validate(LEARNED, STATED, qrels, None, folds=3),
    "feedback": lambda qrels, _: ManifoldRanker(INDEX, feedback=qrels, relevance_level=2).run(STATED),
    "to_frame": lambda qrels, _: passages.qrels_to_frame(qrels).to_json(),
}
SUBTOPIC_ENTRIES = {
    "compare": lambda qrels, _: compare({"a": STATED}, qrels, ["alpha-nDCG@10"]).to_dict(),
    "evaluate_by_subtopic": lambda qrels, _: evaluate_by_subtopic(STATED, qrels, ["alpha-nDCG@10", "AP"]).values,
    "read_subtopic_qrels": lambda qrels, _: read_subtopic_qrels(qrels),
    "choose_diversifier": lambda qrels, _: str(
        choose_diversifier(STATED, qrels, vectors=ARRAY, methods=["mmr"], folds=3)
    ),
}
TOPIC_ENTRIES = {
    "read_topics": lambda topics, _: read_topics(topics),
    "read_run": lambda topics, _: [ranking.query for ranking in read_run(SCORES, topics).rankings],
    "a source": lambda topics, _: INDEX.bm25().run(topics),
    "a pipeline": lambda topics, _: (INDEX.bm25() >> RERANKED).run(topics),
    "run_from_pyserini": lambda topics, _: passages.run_from_pyserini(HITS, topics=topics)["2"].query,
    "run_from_ir_datasets": lambda topics, _: passages.run_from_ir_datasets(SCORED, topics=topics)["2"].query,
    "to_frame": lambda topics, _: passages.topics_to_frame(topics).to_json(),
}
ENCODED = {**dict(zip(TEXTS.values(), VECTORS.tolist(), strict=True)), "cat": [1.0, 0.0]}


def encode(texts):
    return [[text.count("c"), text.count("o") + 0.1] for text in texts]


def found(retriever):
    return [(passage.doc_id, passage.text, passage.score) for passage in retriever.search("cat")]


def reranked(ranked):
    return [(passage.doc_id, passage.position, passage.score) for passage in ranked]


RETRIEVER = HybridRetriever(["x y"], encode)
PASSAGE_ENTRIES = {
    "rerank": lambda given, _: reranked(rerank("cat", given)),
    "Reranker.rank": lambda given, _: reranked(Reranker("mmr").rank("cat", given, [1.0, 3.0, 2.0, 0.0])),
    "HybridRetriever": lambda given, _: found(HybridRetriever(given, encode)),
    "with_passages": lambda given, _: found(RETRIEVER.with_passages(given)),
    "from_texts": lambda given, _: PositionalIndex.from_texts(given).bm25().run(TOPICS),
}
VECTOR_ENTRIES = {
    "ArrayVectors": lambda rows, _: ArrayVectors(DOCIDS, rows).array,
    "ArrayVectors.queries": lambda rows, _: (
        ArrayVectors(DOCIDS, VECTORS, rows).query("d3", "") if hasattr(rows, "keys") else VECTORS[2]
    ),
    "rerank": lambda rows, _: reranked(rerank("cat", TEXTS, [4.0, 3.0, 2.0, 1.0], vectors=rows)),
    "HybridRetriever": lambda rows, _: found(
        HybridRetriever(
            TEXTS,
            lambda texts: [[*VECTORS, [1.0, 0.0]][[*TEXTS.values(), "cat"].index(t)] for t in texts],
            vectors=rows,
        )
    ),
}
TEAMED = dict.fromkeys(DOCIDS, STATED)
GROUP_ENTRIES = {
    "GroupLimit": lambda groups, _: GroupLimit(groups, max_per_group=1).run(STATED),
    "rerank": lambda groups, _: reranked(
        rerank("cat", TEXTS, [4.0, 3.0, 2.0, 1.0], method="mmr>>group-limit", groups=without_missing(groups))
    ),
    "teams of a pool": lambda groups, _: pool_runs(TEAMED, 1, teams=groups).counts,
    "teams of holes": lambda groups, _: score_holes(
        dict.fromkeys(DOCIDS, STATED), QRELS, ["AP"], teams=groups
    ).to_dict(),
    "teams of the unjudged": lambda groups, _: compare(TEAMED, QRELS, unjudged=groups).to_dict(),
    "best_of": lambda groups, _: compare(TEAMED, QRELS).best_of(groups).to_dict(),
    "by_category": lambda groups, _: by_qid(groups),
}


def without_missing(groups):
    return {docid: name for docid, name in groups.items() if docid in TEXTS}


def by_qid(groups):
    names = dict(zip(DOCIDS, QIDS, strict=False))
    renamed = {names[docid]: name for docid, name in groups.items() if docid in names}
    categories = pd.Series(renamed) if hasattr(groups, "index") else renamed
    return compare({"a": STATED}, QRELS).by_category(categories).to_dict()


READ_FILES = {"runs": ("compare", "pool_runs", "read_run"), "judgements": ("compare", "pool_runs", "read_qrels")}
READ_FILES |= {"judgements by subtopic": ("read_subtopic_qrels", "compare"), "topics": ("read_topics", "read_run")}
"""The entries that read files, by how they begin; all others refuse paths, and name the function that reads them."""
REFUSED = {
    # A second column may be the round of judging: read_subtopic_qrels reads it as the subtopic.
    ("judgements by subtopic", "compare", "a polars frame"): "document 'd1' is judged twice",
    ("judgements by subtopic", "compare", "TREC"): "are these judgements by subtopic",
}
"""What else is refused, with a part of the message."""
KINDS = {
    "runs": (RUN_ENTRIES, RUNS),
    "judgements": (JUDGEMENT_ENTRIES, JUDGEMENTS),
    "judgements by subtopic": (SUBTOPIC_ENTRIES, SUBTOPIC_JUDGEMENTS),
    "topics": (TOPIC_ENTRIES, TEXTS_BY_QID),
    "passages": (PASSAGE_ENTRIES, PASSAGES),
    "vectors": (VECTOR_ENTRIES, ROWS_OF_VECTORS),
    "groups": (GROUP_ENTRIES, NAMES),
}
CELLS = [(kind, entry, form) for kind, (entries, forms) in KINDS.items() for entry in entries for form in forms]


@pytest.mark.parametrize(("kind", "entry", "form"), CELLS, ids=map(" by ".join, CELLS))
def test_a_form_at_an_entry(kind, entry, form, tmp_path):
    entries, forms = KINDS[kind]
    given = forms[form].make(tmp_path)
    like = forms[form].kind
    unread = like == "file" and not entry.startswith(READ_FILES[kind])
    if message := REFUSED.get((kind, entry, form), r"read files with greylag\.read_" if unread else ""):
        with pytest.raises(GreylagError, match=message):
            entries[entry](given, tmp_path)
        return
    like = {"file": "alone" if kind == "runs" else "", "ranks": "stated"}.get(like, like)
    first = next(name for name in forms if forms[name].kind == like)
    expected = figures(entries[entry](forms[first].make(tmp_path), tmp_path))
    assert figures(entries[entry](given, tmp_path)) == expected
