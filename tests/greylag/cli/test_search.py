import re

import numpy as np
import pytest

from greylag import LuceneIndex, PositionalIndex, read_run, read_topics
from greylag.index import ArrayVectors, RM3Search, VectorSearch
from tests.greylag.cli.conftest import DEMO, ON_BOTH_INDEXES, spelt


@ON_BOTH_INDEXES
@pytest.mark.parametrize(
    ("model", "parameters", "feedback"),
    [
        ("", {}, None),
        ("bm25(k1=2,b=0)", {"k1": 2.0, "b": 0.0}, None),
        ("ql(mu=50)", {"mu": 50.0}, None),
        ("ql( mu=50 ) + rm3", {"mu": 50.0}, {}),
        ("bm25+rm3(fb_terms=3,fb_docs=2,original_query_weight=0.2)", {},
         {"fb_terms": 3, "fb_docs": 2, "original_query_weight": 0.2}),
    ],
)  # fmt: skip
def test_models_and_their_parameters(command, made, collection, tmp_path, model, parameters, feedback):
    out, name = tmp_path / "out.run", re.split(r"\W", model)[0] or "bm25"
    given = ["--model", model] if model else []
    assert command("search", *collection, "--hits", "7", "--out", out, *given)[0] == 0
    source = getattr(LuceneIndex(made / "index"), name)(7, **parameters)
    source = source if feedback is None else RM3Search(source, **feedback)
    run, expected = read_run(out), source.run(read_topics(made / "topics.tsv"))
    assert run.tag == (re.sub(r"\(.*?\)| ", "", model) or "bm25")
    assert [ranking.docids for ranking in run.rankings] == [ranking.docids for ranking in expected.rankings]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (spelt("bm25", "b=2"), "b is 2.0"),
        (spelt("ql", "k1=5"), "ql has no option 'k1': use mu"),
        (spelt("bm25+rm3", "original_query_weight=2"), "original_query_weight is 2.0"),
        (spelt("bm25+rm3", f"fb_terms={'9' * 20}"), ": it must be an integer below 2^31"),
        (spelt("ql+rm3", "k1=2"), "rm3 has no option 'k1': use fb_terms, fb_docs, original_query_weight"),
        (["--model", "bm25+rm5"], "unknown expansion 'rm5': did you mean rm3?"),
        (["--model", "bm25+rm3+rm3"], "expands the query twice"),
        (["--tag", ""], "tag"),
        (["--index", "INDEX"], "index is given twice: name each index once"),
        (["--hits", "0"], "k must be an integer of at least 1, not 0"),
        (["--model", "tfidf"], "unknown search 'tfidf': use bm25, ql"),
    ],
)
def test_mistakes(refused, collection, tmp_path, words, reason):
    assert reason in refused("search", *collection, "--out", tmp_path / "x", *words)
    assert not (tmp_path / "x").exists()


def test_files_that_cannot_be_used(refused, made, collection, tmp_path):
    words = ["search", "--topics", made / "topics.tsv", "--out", tmp_path / "x"]
    (tmp_path / "folder").mkdir()
    assert "is not a Lucene index" in refused(*words, "--index", tmp_path / "folder")
    assert "is inside the input folder" in refused(*words, "--index", tmp_path)
    assert "cannot be written" in refused("search", *collection, "--out", tmp_path / "no" / "x")


def test_shards_and_an_index_of_anserinis_give_the_files_of_one_index(command, made, made_by_anserini, tmp_path):
    """With topics beyond ASCII."""
    lines = (DEMO / "docs.jsonl").read_text().splitlines(keepends=True)
    for name, own in (("a", lines[:250]), ("b", lines[250:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(own))
        assert command("index", tmp_path / f"{name}.jsonl", "--out", tmp_path / name)[0] == 0
    indexes = {"one": [made / "index"], "two": [tmp_path / "a", tmp_path / "b"], "theirs": [made_by_anserini / "index"]}
    for name, folders in indexes.items():
        folder = tmp_path / f"by-{name}"
        folder.mkdir()
        index = [word for path in folders for word in ("--index", path)]
        asked, run = [*index, "--topics", made_by_anserini / "topics.tsv"], folder / "bm25.run"
        judged, model = ["--qrels", made / "qrels.txt", "--model", "mrf(max_features=1)"], folder / "model.json"
        steps = [
            ["search", *asked, "--hits", 50, "--out", run],
            ["features", *asked, "--run", run, "--pool", "full", "--out", folder / "features.txt"],
            ["rerank", *index, "--run", run, "--stage", "mmr", "--out", folder / "mmr.run"],
            ["rerank", *asked, "--run", run, "--stage", "rm3", "--out", folder / "rm3.run"],
            ["train", *asked, "--run", run, *judged, "--pool", "sd", "--out", model],
            ["rerank", *asked, "--run", run, "--model", model, "--transfer", "--out", folder / "mrf.run"],
            ["explain", model, *asked, "--qid", "3", "--docid", "demo-501", "--format", "json"],
        ]
        for words in steps:
            code, told, err = command(*words)
            assert code == 0, (words, err)
        (folder / "why.json").write_text(told)
    for path in (tmp_path / "by-one").iterdir():
        for name in ("by-two", "by-theirs"):
            assert (tmp_path / name / path.name).read_bytes() == path.read_bytes(), (name, path.name)


def test_vectors_are_searched_without_an_index_or_within_one(command, refused, made, tmp_path):
    """As in Python; a topic without a vector finds nothing, and is said."""
    rng, topics, out = np.random.default_rng(5), read_topics(made / "topics.tsv"), tmp_path / "out.run"
    unknown, *others = topics
    index = PositionalIndex.from_lucene(made / "index")
    docids = [*index.docids_of(np.arange(9)), "elsewhere"]
    rows, queries = rng.standard_normal((10, 4)), dict(zip(topics, rng.standard_normal((len(topics), 4)), strict=True))
    np.savez(tmp_path / "d.npz", ids=docids, vectors=rows)
    np.savez(tmp_path / "q.npz", ids=others, vectors=[*queries.values()][1:])
    words = ["search", "--topics", made / "topics.tsv", "--vectors", tmp_path / "d.npz"]
    words += ["--query-vectors", tmp_path / "q.npz", "--hits", 4, "--out", out]
    for more, known in (([], None), (["--index", made / "index"], index)):
        code, _, err = command(*words, *more)
        assert (code, f"no vector of 1 of {len(topics)} topics, such as {unknown}: they find" in err) == (0, True)
        run, search = read_run(out), VectorSearch(ArrayVectors(docids, rows, queries), known, k=4)
        expected = search.run({qid: text for qid, text in topics.items() if qid != unknown})
        assert (run.tag, [*run]) == ("vectors", [*expected])
        assert [ranking.docids for ranking in run.rankings] == [ranking.docids for ranking in expected.rankings]
    assert ("elsewhere" in str(expected.to_dict())) == (known is None)
    assert "needs --query-vectors" in refused("search --topics TOPICS --vectors a.npz --out TMP/x")
    assert "excludes --model" in refused("search --topics TOPICS --vectors a --query-vectors b --model ql --out TMP/x")
    assert "give an --index to search, or --vectors" in refused("search --topics TOPICS --out TMP/x")
