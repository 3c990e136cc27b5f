"""The study of the general model, on two parts of the demonstration's topics."""

from dataclasses import replace

import numpy as np
import pytest

from greylag import FormatError, GeneralRanker, ParameterError, PositionalIndex, read_qrels, read_topics
from greylag.base import Run
from greylag.evaluation import evaluate
from greylag.features import FeatureExtractor, parse_features
from greylag.index import LuceneIndex, build_index
from greylag.learning import ListwiseRegression, training_data
from greylag.recipes import general_model
from greylag.studies.study import Context
from greylag_papers.beyond.general import STUDY, PartSettings, Settings
from tests.greylag.studies.samples import DEMO
from tests.greylag_papers.beyond.samples import COLLECTION, two_parts
from tests.refusals import refuses

FEATURES = "score@z,FI/term/early@z,written:words@z"


@pytest.fixture
def settings(tmp_path):
    build_index(DEMO / "docs.jsonl", tmp_path / "index")
    return two_parts(tmp_path, Settings, {"index": "index"}, features=FEATURES, folds=3)


def by_hand(folder, train, test):
    """The nDCG@10 of the test part's top 100 and top 1000 by weights of the training part, and these weights."""
    index, qrels = PositionalIndex.from_lucene(folder), read_qrels(DEMO / "qrels.txt")
    features = parse_features(FEATURES)
    with LuceneIndex(folder) as lucene:
        runs = {part: lucene.bm25(1000).run(read_topics(folder.parent / f"{part}.tsv")) for part in (train, test)}
    extract, units, means = FeatureExtractor(index, features), [], {}
    for depth in (100, 1000) if max(map(len, runs[train].rankings)) > 100 else (100,):
        cut = [ranking.head(depth) for ranking in runs[train].rankings]
        selection = ListwiseRegression("nDCG@10", penalty=100).fit(training_data(cut, qrels, extract))
        weights = np.zeros(len(features))
        weights[list(selection.columns)] = selection.weights
        units.append(weights / np.linalg.norm(weights))
    weights = np.mean(units, axis=0)
    for depth in (100, 1000):
        ranked = Run(tuple((one := r.head(depth)).rescore(extract(one) @ weights) for r in runs[test].rankings))
        scores = evaluate(ranked, {qid: qrels[qid] for qid in ranked}, ["nDCG@10"])
        means[depth] = float(scores.means[0])
    return means, weights


def test_each_part_is_ranked_by_weights_of_the_other(settings, tmp_path):
    context = Context(tmp_path / "out")
    outcome = STUDY.run(settings, STUDY.open(settings, context), context)
    learned = []
    for train, test in (("one", "two"), ("two", "one")):
        means, weights = by_hand(tmp_path / "index", train, test)
        learned.append(weights)
        for depth in {100, 1000} & {int(label.split()[-1]) for label in outcome.results["scores"]}:
            found = outcome.scores[f"{test}, nDCG@10, top {depth}"]["general"]
            assert found == pytest.approx(means[depth], abs=1e-6)
    index, model = PositionalIndex.from_lucene(tmp_path / "index"), outcome.models["general"]
    # A line through both at one length: the ridge penalty as a row of its own, whose slope is to be 0.
    place = np.log(np.clip(round(index.average_length, 2), 7, 100) / np.sqrt(7 * 100))
    rows, values = [[1.0, place], [1.0, place], [0.0, 1.0]], [*learned, np.zeros(3)]
    weights, slopes = np.linalg.lstsq(np.array(rows), np.array(values))[0]
    np.testing.assert_allclose(model.weights, weights / np.abs(weights).sum(), atol=2e-4)
    np.testing.assert_allclose(model.by_length.slopes, slopes / np.abs(weights).sum(), atol=2e-4)
    assert model.provenance["collections"] == {"one": 14, "two": 10}
    assert model.provenance["indexes"]["one"] == {
        "documents": index.n_documents, "average_length": round(index.average_length, 2),
        "fingerprint": index.fingerprint,
    }  # fmt: skip
    assert model.provenance["related"] == {}
    gains = [row["general"] - row["BM25"] for row in (outcome.scores[f"{p}, nDCG@10, top 100"] for p in ("one", "two"))]
    row = outcome.scores["all, nDCG@10, top 100, general less BM25"]
    assert (row["mean"], row["least"]) == pytest.approx((np.mean(gains), min(gains)))
    assert [str(feature) for feature in outcome.models["general-positions"].features] == FEATURES.split(",")[:2]


def test_shipped_weights_rank_what_they_were_not_learned_from(tmp_path, monkeypatch):
    build_index(DEMO / "docs.jsonl", tmp_path / "index")
    shipped, context = (
        two_parts(tmp_path, Settings, {"index": "index"}, learn=False, folds=2),
        Context(tmp_path / "out"),
    )
    opened = STUDY.open(shipped, context)
    outcome = STUDY.run(shipped, opened, context)
    assert not outcome.models
    qrels, ranker = read_qrels(DEMO / "qrels.txt"), GeneralRanker(PositionalIndex.from_lucene(tmp_path / "index"))
    with LuceneIndex(tmp_path / "index") as lucene:
        run = ranker.run(lucene.bm25(100).run(read_topics(tmp_path / "two.tsv")))
    mean = evaluate(run, {qid: qrels[qid] for qid in run}, ["nDCG@10"]).means[0]
    assert outcome.scores["two, nDCG@10, top 100"]["general"] == pytest.approx(mean, abs=1e-6)
    known = general_model().provenance["indexes"]["cacm"]["fingerprint"]
    refuses(
        lambda: STUDY.run(shipped, {**opened, "one": replace(opened["one"], fingerprint=known)}, context),
        ParameterError, "collections.one learn: true",
    )  # fmt: skip
    with pytest.raises(ValueError, match="learn: false"):
        two_parts(tmp_path, Settings, learn=False, features=FEATURES)


def test_subtopics_can_be_topics(tmp_path):
    (tmp_path / "subtopics.tsv").write_text("1\ta\tfirst sense\n1\tb\tsecond sense\n2\ta\tunjudged\n")
    (tmp_path / "qrels.txt").write_text("1 a d1 1\n1 b d2 1\n1 0 d3 0\n")
    part = PartSettings.model_validate(
        {"name": "p", "collection": COLLECTION, "topics": "subtopics.tsv", "qrels": "qrels.txt", "subtopics": True}
    ).model_copy(update={"data_folder": tmp_path, "file_folder": tmp_path})
    assert part.read() == (
        {"1.a": "first sense", "1.b": "second sense"}, {"1.a": {"d1": 1}, "1.b": {"d2": 1}}, ("1.a", "1.b"),
    )  # fmt: skip
    (tmp_path / "subtopics.tsv").write_text("1\ta\tfirst sense\n1 b second sense\n")
    refuses(part.read, FormatError, "subtopics.tsv:2: QID TAB SUBTOPIC TEXT")


@pytest.mark.long
def test_nfcorpus_as_beir_divides_it(data, tmp_path):
    """The figures beside BEIR's on the page without judgements, by weights of the other collections."""
    folder = data("nfcorpus")
    build_index(folder / "docs.jsonl.gz", tmp_path / "index")
    qrels, topics = read_qrels(folder / "qrels.test.txt"), read_topics(folder / "topics.test.tsv")
    with LuceneIndex(tmp_path / "index") as lucene:
        bm25 = lucene.bm25(100).run(topics)
        reranked = GeneralRanker(PositionalIndex.from_lucene(lucene)).run(bm25)
    means = [float(evaluate(run, qrels, ["nDCG@10"]).means[0]) for run in (bm25, reranked)]
    assert len(topics) == 325
    assert means == pytest.approx([0.330, 0.348], abs=0.0005)
