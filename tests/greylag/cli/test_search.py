import re

import pytest

from greylag import LuceneIndex, read_run, read_topics
from greylag.index import RM3Search
from tests.greylag.cli.conftest import DEMO, spelt


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


def test_shards_give_the_files_of_one_index(command, made, tmp_path):
    lines = (DEMO / "docs.jsonl").read_text().splitlines(keepends=True)
    for name, own in (("a", lines[:250]), ("b", lines[250:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(own))
        assert command("index", tmp_path / f"{name}.jsonl", "--out", tmp_path / name)[0] == 0
    one, two = ["--index", made / "index"], ["--index", tmp_path / "a", "--index", tmp_path / "b"]
    for index, folder in ((one, tmp_path / "one"), (two, tmp_path / "two")):
        folder.mkdir()
        asked = [*index, "--topics", made / "topics.tsv"]
        run = folder / "bm25.run"
        steps = [
            ["search", *asked, "--hits", 50, "--out", run],
            ["features", *asked, "--run", run, "--pool", "full", "--out", folder / "features.txt"],
            ["rerank", *index, "--run", run, "--stage", "mmr", "--out", folder / "mmr.run"],
        ]
        for words in steps:
            assert command(*words)[0] == 0, words
    for file in ("bm25.run", "features.txt", "mmr.run"):
        assert (tmp_path / "two" / file).read_bytes() == (tmp_path / "one" / file).read_bytes(), file
