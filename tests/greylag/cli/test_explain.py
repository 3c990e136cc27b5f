import json

import pytest

from greylag.base import Ranking
from greylag.base.core.tables import as_text
from greylag.diversity import PRESETS, DiversityModel
from greylag.evaluation import read_run, read_topics
from greylag.features.spec import candidate_pool
from greylag.features.spelling import parse_features
from greylag.index import LuceneIndex, PositionalIndex
from greylag.rankers import RankingModel
from greylag.rankers.explanation import explain_documents
from greylag.rankers.explanation_tables import comparison_of_documents, explanation_dict, explanation_table
from greylag.recipes.general import GeneralRanker, general_model, general_model_for
from tests.greylag.cli.conftest import ON_BOTH_INDEXES
from tests.greylag.studies.samples import Page


def test_a_linear_model_is_shown(command, tmp_path):
    model = RankingModel(
        parse_features("FI/term/BM25,SD/ordered/LM-O-4"), (1.0, -0.5), objective="AP", training_scores=(0.25, 0.5),
        collection={"documents": 634, "tokens": 1.0, "average_length": 2.0}, fingerprint="0123456789abcdef",
        provenance={"learner": "GreedySelection", "queries": ["1", "2"], "held_out": {"folds": 5, "AP": 0.375}},
    )  # fmt: skip
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
    assert lines[5].split() == ["+1", "FI/term/BM25", "AP", "0.2500"]
    assert repr(model) == "<RankingModel of 2 features, AP 0.5000 in training>"
    by_hand = RankingModel(model.features[:1], (1.0,))
    assert repr(by_hand) == "<RankingModel of 1 feature>"
    assert by_hand.summary().splitlines()[-1].split() == ["+1", "FI/term/BM25"]


@ON_BOTH_INDEXES
def test_the_general_model_is_explained_by_its_name(command, made, collection):
    """Without an index by length, with one by its weights; a document's score is that of `rerank`."""
    assert command("explain", "general")[1].startswith(general_model().summary())
    index, topics = PositionalIndex.from_lucene(made / "index"), read_topics(made / "topics.tsv")
    assert command("explain", "general", *collection[:2])[1].startswith(general_model_for(index).summary())
    best = GeneralRanker(index)(LuceneIndex(made / "index").bm25().run({"3": topics["3"]})["3"])
    out = command("explain", "general", *collection, "--qid", "3", "--docid", best.docids[0], "--format", "json")[1]
    assert json.loads(out)[0]["score"] == pytest.approx(best.scores[0])


def test_a_diversity_model_is_shown(command, tmp_path):
    features = PRESETS["svmdiv"]
    model = DiversityModel(features, ((0.5,) * features.n_features,), 5, provenance={"queries": ["1"], "C": 0.1})
    model.save(tmp_path / "div.json")
    assert command("explain", tmp_path / "div.json")[1].startswith(f"{model.summary()}\n@inproceedings")
    assert model.summary().splitlines()[:3] == [
        f"DiversityModel of {features.n_features} features, to pick 5 of 100 documents",
        "features svmdiv",
        "learned from 1 queries, C 0.1",
    ]
    assert "ensemble of 2 members" in repr(DiversityModel(features, model.weights * 2, 5))


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
    assert "x.json: neither a model that `greylag train` wrote nor" in refused("explain", tmp_path / "x.json")


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


@ON_BOTH_INDEXES
@pytest.mark.parametrize("names", [",".join(map(str, candidate_pool("sd")[:6])), "FI/expansion/LM"])
def test_breakdowns_are_the_librarys(command, refused, made, collection, tmp_path, names):
    """Of five features by default; of two documents after their comparison; models of feedback need the run."""
    path, index = tmp_path / "model.json", PositionalIndex.from_lucene(made / "index")
    model = RankingModel(parse_features(names), (1.0, 0.5, -0.1, 2.0, 3.0, 0.2)[: names.count(",") + 1])
    model.save(path)
    ranking = read_run(made / "bm25.run", read_topics(made / "topics.tsv"))["3"]
    first, second = ranking.docids[:2]
    words = ["explain", path, *collection, "--qid", "3", "--docid", first, "--docid", second]
    if "expansion" in names:
        assert "(FI/expansion/LM): give --run" in refused(*words)
        words += ["--run", made / "bm25.run"]
    both = explain_documents(model, index, ranking, [first, second])
    for given, top in (([], 5), (["--top", "1"], 1), (["--top", "all"], None)):
        tables = [comparison_of_documents(*both, top), *(explanation_table(one, top) for one in both)]
        assert command(*words, *given) == (0, as_text(tables[0]), "")
    one = json.loads(command(*words, "--format", "json")[1])
    assert one == json.loads(json.dumps([explanation_dict(one) for one in both]))
    page = Page(command(*words, "--format", "html")[1])
    assert page.open == []
    assert page.texts["p"][2:] == [table.caption for table in tables]
    assert f"{first} is {abs(both[0].score - both[1].score):.4f} " in page.text


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
