"""``--part``: the files that the parts of a command write, put together in order, are that of the whole command."""

import gzip
import re

import numpy as np
import pytest

from greylag import read_run

PARTS = 3  # of 24 topics


def together(command, tmp_path, *words, out="out"):
    """Give the command whole and in parts, and compare all files that are written."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    code, _, err = command(*words, "--out", whole / out)
    assert code == 0, err
    for number in range(1, PARTS + 1):
        folder = parts / str(number)
        folder.mkdir(parents=True)
        done = command(*words, "--out", folder / out, "--part", f"{number}/{PARTS}", "--jobs", number % 2 + 1)
        assert done[0] == 0, done
    names = sorted(path.name for path in whole.iterdir())
    for name in names:
        content = (whole / name).read_bytes()
        pieces = [(parts / str(number) / name).read_bytes() for number in range(1, PARTS + 1)]
        assert all(piece != content for piece in pieces)
        if name.endswith(".gz"):
            assert gzip.decompress(b"".join(pieces)) == gzip.decompress(content)
        else:
            assert b"".join(pieces) == content
    assert all(sorted(path.name for path in folder.iterdir()) == names for folder in parts.iterdir())


@pytest.mark.parametrize("words", ["rerank", "search --model bm25+rm3 --hits 30"])
def test_searches(command, collection, tmp_path, words):
    name, *options = words.split()
    together(command, tmp_path, name, *collection, *options, out="out.run.gz")


def test_metadata_is_in_the_first_part(command, collection, tmp_path):
    about, runs = tmp_path / "about.yaml", [tmp_path / f"{number}.run" for number in (1, 2)]
    about.write_text("actor: {team: geese}\n")
    for number, run in enumerate(runs, 1):
        words = ["--hits", 30, "--out", run, "--part", f"{number}/2", "--metadata", about]
        assert command("search", *collection, *words)[0] == 0
    assert [run.read_text().count("ir_metadata.start") for run in runs] == [1, 0]
    (tmp_path / "joined.run").write_bytes(b"".join(run.read_bytes() for run in runs))
    assert len(read_run(tmp_path / "joined.run")) == 24


@pytest.mark.parametrize("rename", [str, "q{}".format, lambda qid: f"q{qid}" if int(qid) % 2 else qid])
def test_features(command, made, tmp_path, rename):
    """Also with qids that are numbered in LETOR text."""
    for name in ("bm25.run", "topics.tsv"):
        text = (made / name).read_text()
        (tmp_path / name).write_text(re.sub(r"^\d+", lambda qid: rename(qid[0]), text, flags=re.MULTILINE))
    ranked = ["--index", made / "index", "--topics", tmp_path / "topics.tsv", "--run", tmp_path / "bm25.run"]
    together(command, tmp_path, "features", *ranked, "--features", "SD/ordered/LM-O-4,FI/term/BM25")


def test_arrays_of_parts_follow_one_another(command, ranked, tmp_path):
    arrays = []
    for part in ([], ["--part", "1/2"], ["--part", "2/2"]):
        out = tmp_path / f"{len(arrays)}.npz"
        assert command("features", *ranked, "--features", "FI/term/BM25", "--out", out, *part)[0] == 0
        arrays.append(np.load(out))
    whole, *parts = arrays
    for name in ("features", "qids", "docids", "grades"):
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), whole[name])
    assert all(part["names"].tolist() == ["FI/term/BM25"] for part in parts)


@pytest.mark.parametrize("stages", [["mmr(k=5)"], ["general", "random(seed=3,k=9)"]])
def test_stages(command, ranked, tmp_path, stages):
    together(command, tmp_path, "rerank", *ranked, *(f"--stage={stage}" for stage in stages))


@pytest.mark.parametrize("given", [False, True], ids=["searched", "given"])
def test_a_model_that_saw_topics_of_some_parts(command, collection, made, tmp_path, given):
    """The mark of topics that a model was trained on is in all parts, as in the whole."""
    few, model = tmp_path / "few.tsv", tmp_path / "model.json"
    few.write_text("".join((made / "topics.tsv").read_text().splitlines(keepends=True)[:10]))
    run = ["--run", made / "bm25.run"] if given else []
    words = ["--index", made / "index", "--topics", few, "--qrels", made / "qrels.txt", *run]
    name = "mrf" if given else "automatic(folds=2,depth=20,translate=false)"
    code, _, err = command("train", *words, "--model", name, "--out", model)
    assert code == 0, err
    together(command, tmp_path, "rerank", *collection, *run, "--model", model)
    for number in range(1, PARTS + 1):
        lines = (tmp_path / "parts" / str(number) / "out").read_text().splitlines()
        assert lines[0].split()[5].endswith("+training-topics")


def test_a_part_may_be_empty_but_not_the_whole(command, made, tmp_path):
    topics, out = tmp_path / "t.tsv", tmp_path / "out.run"
    topics.write_text("1\tgoose\n2\tof the\n")
    words = ["search", "--index", made / "index", "--topics", topics, "--out", out]
    code, _, err = command(*words, "--part", "2/2")
    assert (code, err) == (0, "greylag: warning: 1 of 1 queries have no documents, as none has a word of theirs: '2'\n")
    assert out.read_bytes() == b""
    topics.write_text("1\tof\n2\tof the\n")
    assert "has no documents" in command(*words)[2]


@pytest.mark.parametrize("name", ["search", "features", "rerank"])
def test_a_part_of_too_many(refused, ranked, tmp_path, name):
    words = [*(ranked[:4] if name == "search" else ranked), *(["--pool", "sd"] if name == "features" else [])]
    assert "24 topics" in refused(name, *words, "--out", tmp_path / "out", "--part", "7/99")
