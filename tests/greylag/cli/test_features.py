"""Features of runs as files.

Tests `feature_options`.
"""

import gzip

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from tests.greylag.cli.conftest import ON_BOTH_INDEXES


@ON_BOTH_INDEXES
def test_text_and_arrays_agree(command, made, ranked, tmp_path):
    for name in ("f.txt.gz", "f.npz"):
        words = ["--pool", "fd", "--qrels", made / "qrels.txt", "--out", tmp_path / name]
        assert command("features", *ranked, *words) == (0, "", "")
    arrays = np.load(tmp_path / "f.npz")
    values, grades, qids = load_svmlight_file(str(tmp_path / "f.txt.gz"), query_id=True)
    np.testing.assert_array_equal(values.toarray(), arrays["features"])
    np.testing.assert_array_equal(grades, arrays["grades"])
    np.testing.assert_array_equal(qids, arrays["qids"].astype(int))
    lines = gzip.decompress((tmp_path / "f.txt.gz").read_bytes()).decode().splitlines()
    assert f"# {arrays['docids'][0]} 1={arrays['names'][0]} " in lines[0]
    assert lines[1].endswith(f"# {arrays['docids'][1]}")


def test_named_features_beside_a_pool_or_alone(command, ranked, tmp_path):
    prior, out = tmp_path / "prior.tsv", tmp_path / "f.npz"
    prior.write_text("demo-001 0.5\ndemo-002 2\n")
    named = f"FI/expansion/LM,prior:{prior}:log:0.1"
    for pool, count in ((["--pool", "sd"], 28 + 2), ([], 2)):
        assert (
            command("features", *ranked, *pool, "--features", named, "--parameters", "fb_terms=5", "--out", out)[0] == 0
        )
        names = np.load(out)["names"].tolist()
        assert len(names) == count
        assert names[-2:] == named.split(",")


def test_a_qid_that_starts_a_comment_is_refused_before_the_work(refused, made, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("odd")
    (folder / "run").write_text((made / "bm25.run").read_text() + "x#1 Q0 demo-001 1 1.0 t\n")
    (folder / "topics").write_text((made / "topics.tsv").read_text() + "x#1\tnew york\n")
    monkeypatch.setattr("greylag.learning.letor.open_atomically", None)  # nothing is begun
    words = f"features --index INDEX --topics {folder}/topics --run {folder}/run --out TMP/x --pool sd"
    assert "'x#1' has a #" in refused(words)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "give --features, --pool or both"),
        ("--pool half", "'half' is not one of 'sd', 'fd', 'full'"),
        ("--pool sd --parameters mu=0", "mu is 0.0"),
        ("--pool sd --parameters nu=1", "'nu': did you mean mu?"),
    ],
)
def test_mistakes(refused, words, reason):
    line = f"features --index INDEX --topics TOPICS --run RUN --out TMP/x {words}"
    assert reason in refused(line)
