"""Transformers of PyTerrier, in its own pipelines, inspection and experiments; no JVM is needed."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from tests.greylag.passages.adapters.samples import runs

from greylag.base import ParameterError, Query, Ranking
from greylag.base.pipeline import Source
from greylag.diversity import MMR, RandomOrder
from greylag.evaluation import evaluate
from greylag.index import PositionalIndex
from greylag.passages import (
    PyTerrierSource,
    PyTerrierStage,
    from_pyterrier,
    qrels_to_frame,
    run_to_frame,
    to_pyterrier,
    topics_to_frame,
)

pt = pytest.importorskip("pyterrier", reason="needs python-terrier")

TEXTS = {f"d{i}": text for i, text in enumerate(["cat sat", "cat sat mat", "dog ran", "cat dog", "hen", "dog hen pig"])}
INDEX = PositionalIndex.from_texts(TEXTS)
TOPICS = {"1": "cat", "2": "dog hen", "3": "wing"}


@dataclass(frozen=True)
class Overlap(Source):
    """Ranks documents by the number of query words that they have; many tie."""

    def __call__(self, query, /):
        words = set(query.text.split())
        scores = {docid: float(len(words & set(text.split()))) for docid, text in TEXTS.items()}
        found = {docid: score for docid, score in scores.items() if score}
        return Ranking.sort(query.qid, query.text, list(found), list(found.values()))


PIPELINE = Overlap() >> MMR(INDEX, relevance_weight=0.3)


def test_a_pipeline_of_either_kind_gives_the_same():
    frame = topics_to_frame(TOPICS)
    pipeline = Overlap() >> RandomOrder(1) >> MMR(INDEX, relevance_weight=0.3)
    first, *others = pipeline.steps
    expected = [(r.qid, r.query, r.docids) for r in pipeline.run(TOPICS).rankings if len(r)]
    parts = to_pyterrier(first)
    for step in others:
        parts = parts >> to_pyterrier(step, n_jobs=2)
    for transformer in (to_pyterrier(pipeline), parts):
        found = transformer(frame)
        assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
        groups = found.groupby(["qid", "query"], sort=False)
        assert [(*key, tuple(own["docno"])) for key, own in groups] == expected
        assert all(own["rank"].tolist() == list(range(len(own))) for _, own in groups)
        assert all((np.diff(own["score"].astype("f4")) < 0).all() for _, own in groups)


def test_experiments_measure_what_greylag_measures():
    qrels = {"1": {"d1": 1, "d3": 1}, "2": {"d5": 2, "d4": 1}, "3": {"d0": 1}}
    table = pt.Experiment(
        [to_pyterrier(Overlap()), to_pyterrier(PIPELINE)],
        topics_to_frame(TOPICS),
        qrels_to_frame(qrels),
        ["map", "ndcg_cut_3"],
        names=["overlap", "mmr"],
        filter_by_qrels=False,
    )
    for name, step in (("overlap", Overlap()), ("mmr", PIPELINE)):
        ours = evaluate(step.run(TOPICS), qrels, ["AP", "nDCG@3"]).by_measure
        assert table.set_index("name").loc[name].tolist() == pytest.approx([*ours.values()])


def test_pyterrier_inspects_what_is_taken_and_given():
    stage, source = to_pyterrier(MMR(INDEX)), to_pyterrier(Overlap())
    assert [set(columns) for columns in pt.inspect.transformer_inputs(stage)] == [{"qid", "query", "docno", "score"}]
    assert [set(columns) for columns in pt.inspect.transformer_inputs(source)] == [{"qid", "query"}]
    results = ["qid", "query", "docno", "score", "rank"]
    assert pt.inspect.transformer_outputs(source, ["qid", "query"]) == results
    assert set(pt.inspect.transformer_outputs(stage, [*results, "text"])) == {*results, "text"}
    with pytest.raises(pt.validate.InputValidationError):
        stage(topics_to_frame(TOPICS))
    assert repr(stage) == "greylag(MMR)"


def test_other_columns_stay_with_their_documents():
    frame = to_pyterrier(Overlap())(topics_to_frame(TOPICS).assign(year=[2001, 2002, 2003]))
    assert frame.groupby("qid")["year"].unique().map(list).to_dict() == {"1": [2001], "2": [2002]}
    frame["text"] = frame["docno"].map(TEXTS)
    found = to_pyterrier(RandomOrder(2))(frame)
    assert found["text"].tolist() == found["docno"].map(TEXTS).tolist()
    assert found["docno"].tolist() != frame["docno"].tolist()


@settings(max_examples=25, deadline=None)
@given(run=runs())
def test_a_stage_there_and_back(run):
    stage = RandomOrder(3)
    again = from_pyterrier(to_pyterrier(stage))
    assert isinstance(again, PyTerrierStage)
    assert [again(ranking) for ranking in run.rankings] == [stage(ranking) for ranking in run.rankings]


def test_a_source_there_and_back():
    again = from_pyterrier(to_pyterrier(Overlap()))
    assert isinstance(again, PyTerrierSource)
    ours, theirs = Overlap().run(TOPICS), again.run(TOPICS)
    assert [r.docids for r in theirs.rankings] == [r.docids for r in ours.rankings]
    assert theirs["3"] == Ranking("3", "wing", (), np.empty(0))


def test_transformers_of_pyterrier_in_a_pipeline_of_greylag():
    by_length = from_pyterrier(pt.apply.doc_score(lambda row: -len(TEXTS[row["docno"]])))
    assert isinstance(by_length, PyTerrierStage)
    found = (Overlap() >> by_length >> MMR(INDEX, relevance_weight=1.0)).run(TOPICS)
    assert found["2"].docids == ("d4", "d2", "d3", "d5")
    top = Overlap() >> PyTerrierStage(pt.Transformer.identity())
    assert top.run(TOPICS)["1"].docids == Overlap()(Query("1", "cat")).docids
    fixed = PyTerrierSource(pt.Transformer.from_df(run_to_frame(Overlap().run(TOPICS))))
    assert fixed(Query("1", "cat")) == Overlap()(Query("1", "cat"))


def test_qids_of_frames_are_checked():
    with pytest.raises(ParameterError):
        to_pyterrier(Overlap())(pd.DataFrame({"qid": [1.5], "query": ["cat"]}))
