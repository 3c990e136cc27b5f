import re
import shutil

import pytest

from tests.greylag.cli.conftest import DEMO, ON_BOTH_INDEXES


@ON_BOTH_INDEXES
def test_scores_are_checked(command, made, tmp_path, monkeypatch):
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    config, out = tmp_path / "small.yaml", tmp_path / "out"
    fields = f"name: small\ndata: {made}\ncollection: {{index: index}}\ntopics: topics.tsv\nqrels: qrels.txt\n"
    expected = dict.fromkeys(("bm25", "ql", "tuned-bm25"), 0.9999)
    for code in (1, 0):
        rows = "".join(f"  {name}: {{AP: {mean}}}\n" for name, mean in expected.items())
        config.write_text(f"{fields}model: bm25\nbaselines: []\nmeasures: [AP]\nexpected:\n{rows}")
        found, shown, err = command("experiment", config, "--out", out, "--check")
        assert (found, shown.endswith("all scores are as expected\n")) == (code, not code), err
        assert re.search(r"^tuned-bm25 +0\.\d+", shown, re.MULTILINE)
        differing = re.findall(r"^(\S+) AP: expected 0\.9999, got (0\.\d{4})$", err, re.MULTILINE)
        expected |= dict(differing)
    assert 0.9999 not in expected.values()
    for form in ("csv", "latex"):  # of the finished study, without a line before it
        code, shown, _ = command("experiment", config, "--out", out, "--format", form)
        assert (code, shown.splitlines()[0]) == (0, {"csv": "run,AP", "latex": r"\begin{table}"}[form])
    assert (out / "models" / "fold-5.json").exists()
    assert (out / "report.html").exists()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(path.stem for path in DEMO.glob("*.yaml")))
def test_the_files_of_the_demonstration_pass_their_own_check(name, command, tmp_path):
    code, out, err = command("experiment", name, "--out", tmp_path / "out", "--check")
    assert (code, out.endswith("all scores are as expected\n")) == (0, True), err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("TMP/none.yaml", "No such file"),
        ("QRELS", "mapping"),
        ("bad.yaml --check", "--check"),
        ("demo --init pipeline", "--init"),
        ("--init nothing", "'nothing'"),
        ("--init pipeline --check", "--check"),
        ("", "--init pipeline"),
        ("two_moons.manifold --format csv", "manifold_two_moons"),
        ("demo --format html", "html"),
        ("cacn.yaml", "cacm"),
    ],
)
def test_refusals(refused, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\n")
    assert reason in refused(f"experiment {words}")


@pytest.mark.long
def test_a_file_to_start_from_runs(command, tmp_path, monkeypatch):
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    code, text, err = command("experiment", "--init", "pipeline")
    assert (code, err) == (0, "")
    for file in DEMO.glob("*.t*"):
        shutil.copy(file, tmp_path)
    shutil.copy(DEMO / "docs.jsonl", tmp_path)
    (tmp_path / "mine.yaml").write_text(text.replace("#training:", "training:").replace("#  folds: 5", "  folds: 2"))
    code, told, err = command("experiment", tmp_path / "mine.yaml", "--out", tmp_path / "out")
    assert (code, "fold 2:" in told, "fold 3:" in told) == (0, True, False), err
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [("qrels: qrels.txt\ntraining: {folds: 400}", "400 folds"), ("qrels: other.txt", "no topic in common")],
)
def test_what_does_not_fit_the_topics_is_refused_before_any_work(refused, made, tmp_path, monkeypatch, more, reason):
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    (made / "other.txt").write_text("999 0 demo-001 1\n")
    text = f"name: x\ndata: {made}\ncollection: {{docs: nothing.jsonl}}\ntopics: topics.tsv\n{more}\n"
    (tmp_path / "x.yaml").write_text(text)
    assert reason in refused("experiment", tmp_path / "x.yaml", "--out", tmp_path / "out")


def test_files_that_come_with_greylag(command, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GREYLAG_DATA", str(tmp_path))
    config = DEMO.parents[2] / "configs" / "cacm.yaml"
    assert command("experiment", "--init", "cacm") == (0, config.read_text(), "")
    assert f"{tmp_path / 'cacm' / 'topics.cacm.txt'}" in refused("experiment", "cacm.yaml")
    monkeypatch.setenv("GREYLAG_DATA", str(tmp_path / "none"))
    assert f"there is no folder {tmp_path / 'none'}; set GREYLAG_DATA" in refused("experiment", "cacm.yaml")
