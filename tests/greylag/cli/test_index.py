import numpy as np
import pytest

from greylag import PositionalIndex, read_run
from tests.greylag.cli.conftest import DEMO
from tests.greylag.passages.adapters.data_set import registered


def test_the_index_has_positions_whatever_the_number_of_threads(command, made, tmp_path):
    expected = PositionalIndex.from_lucene(made / "index")
    for jobs in (1, 3):
        out = tmp_path / f"index{jobs}"
        options = ["--collection", "JsonCollection", "--out", out]
        code, told, _ = command("--jobs", jobs, "index", DEMO / "docs.jsonl", *options)
        counts = f"{expected.n_documents} documents, {expected.n_tokens} tokens, {expected.n_terms} terms"
        assert (code, told) == (0, f"{out}: {counts}\n")
        assert PositionalIndex.from_lucene(out).fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("none --out TMP/new", "none"),
        ("TMP/empty --out TMP/new", "empty"),
        (f"{DEMO / 'docs.jsonl'} --out TMP/new --collection Json", "'Json' is not one of 'JsonCollection'"),
        (f"{DEMO / 'docs.jsonl'} --out TMP/mine", "exists already"),
    ],
)
def test_mistakes(refused, tmp_path, words, reason):
    for folder in ("empty", "mine"):
        (tmp_path / folder).mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert reason in refused(f"index {words}")


def test_an_interrupted_command_is_completed_and_a_finished_one_repeated(command, tmp_path):
    docs, out = tmp_path / "docs.jsonl", tmp_path / "index"
    docs.write_bytes((DEMO / "docs.jsonl").read_bytes())
    words = ["index", docs, "--out", out]
    first = command(*words)[:2]
    (export,) = (tmp_path / "index.greylag").iterdir()
    export.rename(export.with_name(f".{export.name}.greylag-part"))  # as a killed process leaves it
    (export.parent / f".{export.name}.greylag-lock").touch()
    built = out.stat().st_ino
    assert command(*words)[:2] == first
    assert command(*words)[:2] == first
    assert (out.stat().st_ino, list(export.parent.iterdir())) == (built, [export])


def test_documents_that_have_changed(command, refused, tmp_path):
    docs, out = tmp_path / "docs.jsonl", tmp_path / "index"
    for number in (1, 2):
        docs.write_text(f'{{"id": "{number}", "contents": "goose"}}\n')
        if number == 2:
            assert "--overwrite" in refused("index", docs, "--out", out)
        assert command("index", docs, "--out", out, "--overwrite")[0] == 0
        assert PositionalIndex.from_lucene(out).docids_of(np.array([0])) == [str(number)]
        assert len(list((tmp_path / "index.greylag").iterdir())) == 1


def test_a_data_set_of_ir_datasets_from_documents_to_scores(command, refused, tmp_path, monkeypatch):
    pytest.importorskip("ir_datasets", reason="needs ir_datasets")
    registered(tmp_path, monkeypatch)
    name, index, run = "irds:greylag-test", tmp_path / "index", tmp_path / "bm25.run"
    code, out, _ = command("index", name, "--out", index)
    assert (code, out) == (0, f"{index}: 2 documents, 4 tokens, 4 terms\n")
    assert command("index", name, "--out", index)[:2] == (0, out)
    assert command("search", "--index", index, "--topics", name, "--out", run) == (0, "", "")
    assert read_run(run)["1"].docids == ("d1",)
    assert read_run(run)["2"].docids == ("d2",)
    code, out, _ = command("evaluate", run, "--qrels", name, "--measure", "AP")
    assert (code, "1.0000" in out) == (0, True)
    letor = tmp_path / "features.txt"
    words = ["features", "--index", index, "--topics", name, "--run", run, "--features", "score", "--qrels", name]
    assert command(*words, "--out", letor)[0] == 0
    assert [line[0] for line in letor.read_text().splitlines() if not line.startswith("#")] == ["2", "1"]
    assert "are for files, not for irds" in refused("index", name, "--out", index, "--collection", "JsonCollection")
    assert "has no data set 'nothing'" in refused("index", "irds:nothing", "--out", tmp_path / "other")
