import json
import re
from pathlib import Path

import pytest

from greylag.diversity import PRESETS, DiversityModel
from greylag.features.spelling import parse_features
from greylag.index import PositionalIndex
from greylag.index.lucene import LuceneIndex
from greylag.rankers import RankingModel
from greylag.rankers.explanation import explain_documents
from greylag.ranking import Ranking
from greylag.recipes.general import GeneralRanker, general_model, general_model_for
from greylag.reports.explanation_tables import comparison_of_documents
from greylag.trec import read_run, read_topics
from tests.greylag.studies.samples import Page


def test_a_linear_model_is_shown(command, tmp_path):
    model = RankingModel(
        parse_features("FI/term/BM25,SD/ordered/LM-O-4"),
        (1.0, -0.5),
        objective="AP",
        training_scores=(0.25, 0.5),
        collection={"documents": 634, "tokens": 1.0, "average_length": 2.0},
        fingerprint="0123456789abcdef",
        provenance={"learner": "GreedySelection", "queries": ["1", "2"], "held_out": {"folds": 5, "AP": 0.375}},
    )
    model.save(tmp_path / "model.json")
    code, out, err = command("explain", tmp_path / "model.json")
    assert (code, err) == (0, "")
    assert out.startswith(f"{model.summary()}\n@inproceedings")
    lines = out.splitlines()
    assert lines[:4] == [
        "RankingModel of 2 features, AP 0.5000 in training",
        "learned by GreedySelection from 2 queries",
        "collection of 634 documents, fingerprint 0123456789ab",
        "AP 0.3750 on held-out queries, in 5-fold cross-validation",
    ]
    assert lines[4].startswith("parameters mu 1000.0, k1 0.9")
    assert [line.split() for line in lines[5:7]] == [
        ["+1", "FI/term/BM25", "AP", "0.2500"],
        ["-0.5", "SD/ordered/LM-O-4", "AP", "0.5000"],
    ]
    assert repr(model) == "<RankingModel of 2 features, AP 0.5000 in training>"
    by_hand = RankingModel(model.features[:1], (1.0,))
    assert repr(by_hand) == "<RankingModel of 1 feature>"
    assert by_hand.summary().splitlines()[-1].split() == ["+1", "FI/term/BM25"]


def test_the_general_model_is_explained_by_its_name(command, collection):
    """Without an index by length, with one by its weights; a document's score is that of `rerank`."""
    assert command("explain", "general")[1].startswith(general_model().summary())
    options = dict(zip(collection[::2], collection[1::2], strict=True))
    index, topics = Path(str(options["--index"])), read_topics(Path(str(options["--topics"])))
    assert command("explain", "general", "--index", index)[1].startswith(
        general_model_for(PositionalIndex.from_lucene(index)).summary()
    )
    qid = next(iter(topics))
    best = GeneralRanker(PositionalIndex.from_lucene(index))(LuceneIndex(index).bm25().run({qid: topics[qid]})[qid])
    out = command("explain", "general", *collection, "--qid", qid, "--docid", best.docids[0], "--format", "json")[1]
    assert json.loads(out)[0]["score"] == pytest.approx(best.scores[0])


def test_a_diversity_model_is_shown(command, tmp_path):
    features = PRESETS["svmdiv"]
    weights = [0.0] * features.n_features
    weights[3], weights[1] = -2.0, 1.5
    model = DiversityModel(features, (tuple(weights),), 5, provenance={"queries": ["1"], "C": 0.1})
    model.save(tmp_path / "div.json")
    code, out, _ = command("explain", tmp_path / "div.json")
    assert code == 0
    assert out.startswith(f"{model.summary()}\n@inproceedings")
    lines = out.splitlines()
    assert lines[0] == f"DiversityModel of {features.n_features} features, to pick 5 of 100 documents"
    assert lines[1:3] == ["features svmdiv", "learned from 1 queries, C 0.1"]
    assert [line.split(maxsplit=1) for line in lines[4:6]] == [["-2", features.names[3]], ["+1.5", features.names[1]]]
    assert "ensemble of 2 members" in repr(DiversityModel(features, (tuple(weights),) * 2, 5))


def test_what_has_no_breakdown(refused, tmp_path):
    div, fusion = tmp_path / "div.json", tmp_path / "fusion.json"
    features = PRESETS["svmdiv"]
    DiversityModel(features, ((1.0,) * features.n_features,), 5).save(div)
    RankingModel((), (), runs=("a.run", "b.run")).save(fusion)
    for words in (["--qid", "3"], ["--qid", "3", "--docid", "d", "--run", "bm25.run"]):
        assert f"{div}: not a greylag linear model, but 'greylag diversity" in refused("explain", div, *words)
        assert f"are not broken down: `greylag explain {fusion}` shows" in refused("explain", fusion, *words)
    assert "but 'greylag diversity model'" in refused("export", div, "solr")


@pytest.mark.parametrize("content", [[], {}, {"kind": "another"}, {"kind": 3}])
def test_not_a_model(refused, tmp_path, content):
    (tmp_path / "x.json").write_text(json.dumps(content))
    assert "x.json: not a model of greylag: give a file that" in refused("explain", tmp_path / "x.json")


def test_control_characters_of_a_model_are_escaped(command, tmp_path):
    model = RankingModel(parse_features("score"), (1.0,), provenance={"learner": "\x1b[2J\u202ered", "queries": ["1"]})
    model.save(tmp_path / "model.json")
    code, out, _ = command("explain", tmp_path / "model.json")
    assert (code, "\x1b" in out, "\u202e" in out) == (0, False, False)
    assert r"\x1b[2J\u202ered" in out


@pytest.fixture
def model(tmp_path):
    """A model of two features by hand."""
    RankingModel(parse_features("FI/term/BM25,SD/ordered/LM-O-4"), (1.0, 0.5)).save(tmp_path / "model.json")
    return tmp_path / "model.json"


def rows_of(out):
    """The cells of the rows below the header; columns are separated by at least two spaces."""
    return [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()[2:]]


def test_contributions_add_up(command, refused, collection, model, ranked, tmp_path):
    expanding = tmp_path / "expanding.json"
    RankingModel(parse_features("FI/expansion/LM"), (1.0,)).save(expanding)
    words = [expanding, *collection, "--qid", "3", "--docid", "demo-501"]
    assert "depend on the run that is reranked (FI/expansion/LM): give --run" in refused("explain", *words)
    for words, features in (
        ([model, *collection], {"FI/term/BM25", "SD/ordered/LM-O-4"}),
        ([expanding, *ranked], {"FI/expansion/LM"}),
    ):
        for more in ([], ["--top", "all"]):
            code, out, err = command("explain", *words, "--qid", "3", "--docid", "demo-501", *more)
            assert (code, err) == (0, "")
            assert out.startswith("Query 3, document demo-501\n")
            rows = rows_of(out)
            assert rows[-1][0] == "score"
            score = float(rows[-1][1])
            own = [row for row in rows if row[0] in features]
            assert sum(float(row[1]) for row in own) == pytest.approx(score, abs=1e-5)
            cliques = [float(row[1]) for row in rows[:-1] if row[0] not in features]
            assert sum(cliques) == pytest.approx(score, abs=1e-4)
            assert "without occurrences" not in out or more == []
            assert ("(probability " in out) == (expanding in words)


def test_few_features_by_default(command, collection, tmp_path):
    names = "FI/term/BM25,FI/term/LM,SD/ordered/BM25-O-1,SD/unordered/BM25-U-4,SD/ordered/LM-O-1,SD/unordered/LM-U-8"
    RankingModel(parse_features(names), (1.0, 0.1, 3.0, 2.0, 0.1, 0.1)).save(tmp_path / "six.json")
    words = [tmp_path / "six.json", *collection, "--qid", "3", "--docid", "demo-501"]
    totals = {}
    for more, count in (([], 5), (["--top", "1"], 1), (["--top", "all"], 6)):
        rows = rows_of(command("explain", *words, *more)[1])
        shown = [row for row in rows if row[0] in names.split(",")]
        assert len(shown) == count
        sizes = [abs(float(row[1])) for row in shown]
        assert sizes == sorted(sizes, reverse=True)
        rest = [row for row in rows if "more feature" in row[0]]
        assert [row[0].split()[0] for row in rest] == ([str(6 - count)] if count < 6 else [])
        totals[count] = sum(float(row[1]) for row in shown + rest)
    assert max(totals.values()) - min(totals.values()) < 1e-4


def test_one_document_against_another(command, collection, model):
    words = [model, *collection, "--qid", "3", "--docid"]
    scores = [float(rows_of(command("explain", *words, docid)[1])[-1][1]) for docid in ("demo-501", "demo-502")]
    rows = rows_of(command("explain", *words, "demo-501", "--docid", "demo-502")[1])
    assert [float(cell) for cell in rows[-1][1:]] == pytest.approx([scores[0] - scores[1], *scores], abs=1e-5)
    features = [row for row in rows if "/" in row[0]]
    assert sum(float(row[1]) for row in features) == pytest.approx(scores[0] - scores[1], abs=1e-5)
    for row in features:
        assert float(row[1]) == pytest.approx(float(row[2]) - float(row[3]), abs=1e-5)


def test_json_and_pages(command, collection, model):
    words = [model, *collection, "--qid", "3", "--docid", "demo-501"]
    (found,) = json.loads(command("explain", *words, "--format", "json")[1])
    assert found["docid"] == "demo-501"
    assert sum(share["contribution"] for share in found["features"]) == pytest.approx(found["score"], abs=1e-9)
    for share in found["features"]:
        assert sum(clique["contribution"] for clique in share["cliques"]) == pytest.approx(share["contribution"])
    parsed = Page(command("explain", *words, "--docid", "demo-502", "--format", "html")[1])
    assert parsed.open == []
    titles = ["document demo-501 against demo-502", "document demo-501", "document demo-502"]
    chart, *captions = parsed.texts["caption"]
    assert captions == [f"Query 3, {title}" for title in titles]
    assert chart == "Differences of the features' contributions"
    (other,) = json.loads(command("explain", *words[:-1], "demo-502", "--format", "json")[1])
    pairs = zip(found["features"], other["features"], strict=True)
    changes = {one["feature"]: one["contribution"] - two["contribution"] for one, two in pairs}
    shown = [(name, float(value)) for name, value in parsed.rows[1 : len(changes) + 1]]
    assert dict(shown) == pytest.approx(changes, abs=1e-4)
    assert [abs(value) for _, value in shown] == sorted((abs(value) for _, value in shown), reverse=True)
    bars = [float(str(value).rstrip("%")) for tag, name, value in parsed.attributes if (tag, name) == ("rect", "width")]
    sizes = [abs(value) for _, value in shown]
    assert [bar / bars[0] for bar in bars] == pytest.approx([size / sizes[0] for size in sizes], abs=1e-3)
    difference = found["score"] - other["score"]
    relation = "above" if difference > 0 else "below"
    assert f"demo-501 is {abs(difference):.4f} {relation} demo-502. The largest differences are" in parsed.text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--qid 3", "give --docid"),
        ("--qid 3 --docid a --docid b --docid c", "--docid is given 3 times"),
        ("--qid 3 --docid demo-501 --top 0", "--top '0'"),
        ("--qid 99 --docid demo-501", "topic '99' is not in"),
        ("--qid 3 --docid lost", "'lost' is not in the index"),
        ("--qid 3 --docid lost --run RUN", "'lost'"),
        ("--qid 3 --docid demo-501 --run TMP/other.run", "topic '3'"),
    ],
)
def test_mistakes(refused, tmp_path, model, words, reason):
    (tmp_path / "other.run").write_text("4 Q0 demo-501 1 1.0 x\n")
    assert reason in refused(f"explain {model} --index INDEX --topics TOPICS {words}")


def test_a_model_that_searches_is_explained_as_it_ranks(command, made, tmp_path):
    """The score is that of `rerank`, which searches too; another run is remarked on."""
    model, out = tmp_path / "m.json", tmp_path / "out.run"
    options = ["--index", made / "index", "--topics", made / "topics.tsv"]
    index = PositionalIndex.from_lucene(made / "index")
    features = parse_features("score@z,FI/term/BM25")
    RankingModel(features, (0.7, 0.2), fingerprint=index.fingerprint, provenance={"searched": True}).save(model)
    assert command("rerank", *options, "--model", model, "--out", out)[0] == 0
    ranking = read_run(out)["1"]
    words = ["explain", model, *options, "--qid", "1", "--docid", ranking.docids[3], "--format", "json"]
    code, told, err = command(*words)
    assert (code, err) == (0, "")
    assert json.loads(told)[0]["score"] == pytest.approx(ranking.scores[3], rel=1e-6)
    code, told, err = command(*words, "--run", made / "bm25.run")
    assert code == 0
    assert "ranks what it finds itself" in err


def test_cliques_that_neither_document_has_are_folded():
    index = PositionalIndex.from_texts({"a": "york", "b": "york york apple", "c": "new city apple"})
    model = RankingModel(parse_features("FI/term/LM"), (1.0,), fingerprint=index.fingerprint)
    ranking = Ranking("1", "york new city", ("a", "b"), [1.0, 1.0])
    found = comparison_of_documents(*explain_documents(model, index, ranking, ["a", "b"]), 5)
    assert [row[0] for row in found.rows] == ["FI/term/LM", "  york", "  2 cliques without occurrences", "score"]
    assert sum(row[1] for row in found.rows[1:3]) == pytest.approx(found.rows[0][1])
