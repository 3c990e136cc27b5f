"""``greylag pool``."""

import pytest

from greylag.evaluation import pool_runs, read_qrels


def test_what_is_written_is_pythons_pool(command, made, tmp_path):
    qrels = [*read_qrels(made / "qrels.txt").items()]
    for name, part in (("one", qrels[:9]), ("two", qrels[5:])):
        (tmp_path / name).write_text("".join(f"{q} 0 {d} {g}\n" for q, judged in part for d, g in judged.items()))
    words = ["--teams", "^b", "--sample", 3, "--seed", 7, "--qrels", tmp_path / "one", "--qrels", tmp_path / "two"]
    code, shown, err = command("pool", f"A={made / 'bm25.run'}", "--depth", 12, *words, "--out", tmp_path / "pool")
    expected = pool_runs(
        {"A": made / "bm25.run"},
        12,
        teams="^b",
        sample=3,
        seed=7,
        judged=read_qrels([tmp_path / "one", tmp_path / "two"]),
    )
    assert (code, shown) == (0, f"{expected}\n")
    assert (tmp_path / "pool").read_text() == expected.lines
    assert "repeat them" in err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("RUN", "'--out'"),
        ("RUN --out TMP/x --depth 0", "--depth"),
        ("A=RUN A=QRELS --out TMP/x", "names two runs"),
        ("RUN --out TMP/x --teams nowhere.txt", "nowhere.txt"),
        ("RUN --out RUN", "is the input"),
        ("RUN --out QRELS --qrels QRELS", "is the input"),
        ("RUN --out TOPICS --teams TOPICS", "is the input"),
    ],
)
def test_refusals(refused, words, part):
    assert part in refused(f"pool {words}")
