"""``greylag fuse``."""

from pathlib import Path

import numpy as np
import pytest

from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import LEARNED, evaluate, fuse_runs, read_qrels, read_run, write_run
from greylag.features.fused_runs import FusedRuns
from greylag.rankers import FusionRanker, RankingModel
from greylag.recipes import learn_fusion
from tests.greylag.cli.conftest import unremarked, write_qrels
from tests.greylag.recipes.test_learned_fusion import runs_of


def test_runs_are_fused(tmp_path, command, refused):
    paths, out = [tmp_path / "one.run", tmp_path / "two.run"], tmp_path / "out.run"
    write_run(Run((Ranking("1", "", ("a", "b"), [2.0, 1.0]),)), paths[0])
    write_run(Run((Ranking("1", "", ("c", "b"), [9.0, 8.0]),)), paths[1])
    words = ["fuse", "--run", paths[0], "--run", paths[1], "--out", out, "--method"]
    for method in ("combmnz", "CombMNZ"):
        assert command(*words, method, "--hits", 2) == (0, "", "")
        assert read_run(out)["1"].docids == fuse_runs(map(read_run, paths), "combmnz").head(2)["1"].docids
    assert command(*words, "rrf(rank_constant=0,weights=[1,3])") == (0, "", "")
    weighted = read_run(out)
    assert (weighted.tag, weighted["1"].docids) == ("rrf", ("c", "b", "a"))  # 3, 3/2 + 1/2 and 1
    assert weighted["1"].scores.tolist() == [3.0, 2.0, 1.0]
    assert "which it would replace" in refused("fuse", "--run", paths[0], "--out", paths[0])


def test_scores_come_back_as_a_run(tmp_path, command, ranked):
    """The features of another program's file, its scores and a run: here the first stage's own scores."""
    names, out = [tmp_path / "f.npz", tmp_path / "f.txt"], tmp_path / "out.run"
    first = read_run(Path(str(ranked[-1])))
    for features in names:
        assert command("features", *ranked, "--features", "score", "--out", features) == (0, "", "")
    np.savetxt(tmp_path / "own.scores", np.load(names[0])["features"][:, 0])
    for features in names:
        words = ["--run", tmp_path / "own.scores", "--scores-of", features, "--out", out]
        assert command("fuse", *words) == (0, "", "")
        run = read_run(out)
        assert (run.tag, run.rankings) == ("own", first.rankings)
        (tmp_path / "same.scores").write_bytes((tmp_path / "own.scores").read_bytes())
        assert command("fuse", "--run", tmp_path / "same.scores", *words, "--hits", 3, "--tag", "two") == (0, "", "")
        assert read_run(out)["1"].docids == first["1"].docids[:3]


@pytest.fixture
def judged(tmp_path):
    """Two runs of eight topics and their judgements, as options."""
    runs, qrels = runs_of(8)
    for run in runs:
        write_run(run, tmp_path / f"{run.tag}.run")
    write_qrels(qrels, tmp_path / "qrels.txt")
    return ["--run", tmp_path / "run0.run", "--run", tmp_path / "run1.run", "--qrels", tmp_path / "qrels.txt"]


def test_a_fusion_is_learned_held_out_and_kept(tmp_path, command, judged):
    out, model = tmp_path / "out.run", tmp_path / "fusion.json"
    code, told, errors = command("fuse", *judged, "--folds", 4, "-m", "nDCG@10", "--out", out, "--out-model", model)
    assert (code, errors) == (0, "")
    held_out, qrels = read_run(out), read_qrels(tmp_path / "qrels.txt")
    assert held_out.tag == "fused-held-out"
    (score,) = evaluate(held_out, qrels, ["nDCG@10"]).by_measure.values()
    learned = learn_fusion([read_run(judged[1]), read_run(judged[3])], qrels, "nDCG@10", folds=4)
    assert told.endswith(f"\n{learned}\n")
    assert RankingModel.load(model) == learned.model
    assert RankingModel.load(model).provenance["held_out"]["nDCG@10"] == pytest.approx(score, abs=1e-9)
    assert all(name in told for name in (f"{score:.4f}", "run0", "run1", "rrf", "combsum", LEARNED))


def test_without_folds_the_run_says_that_it_saw_its_topics(tmp_path, command, judged):
    out, again, model = tmp_path / "out.run", tmp_path / "again.run", tmp_path / "fusion.json"
    assert command("fuse", *judged, "--out", out, "--out-model", model)[0] == 0
    assert read_run(out).tag == "fused+training-topics"
    # The other order of runs is no other fusion: they are known by their tags.
    words = ["--model", model, "--run", judged[3], "--run", judged[1], "--out", again]
    assert unremarked(command("rerank", *words)) == (0, "", "")
    assert again.read_bytes() == out.read_bytes()
    assert unremarked(command("rerank", *words, "--stage", "random(seed=1)")) == (0, "", "")
    assert set(read_run(again)["t1"].docids) == set(read_run(out)["t1"].docids)


def test_runs_of_other_names_are_taken_in_order(tmp_path, command, judged):
    runs, _ = runs_of(9)
    out, model = tmp_path / "out.run", tmp_path / "fusion.json"
    assert command("fuse", *judged, "--out", out, "--out-model", model)[0] == 0
    for run, name in zip(runs, ("a", "b"), strict=True):
        write_run(Run(run.rankings, name), tmp_path / name)
    words = ["--model", model, "--run", tmp_path / "a", "--run", tmp_path / "b", "--out", out]
    code, _, errors = command("rerank", *words)
    assert code == 0
    assert f"{tmp_path / 'a'} as run0, {tmp_path / 'b'} as run1" in errors
    assert "for held-out rankings, use greylag fuse --folds" in errors
    expected = fuse_runs([read_run(tmp_path / name) for name in "ab"], FusionRanker(RankingModel.load(model)))
    assert [each.docids for each in read_run(out).rankings] == [each.docids for each in expected.rankings]


def test_labels_name_runs_in_tables_and_models(tmp_path, command, refused, judged):
    out, model, qrels = tmp_path / "out.run", tmp_path / "fusion.json", judged[4:]
    first, second = f"sparse={judged[1]}", f"dense={judged[3]}"
    code, told, _ = command("fuse", "--run", first, *judged[2:4], *qrels, "--out", out, "--out-model", model)
    assert (code, RankingModel.load(model).runs) == (0, ("sparse", "run1"))
    assert any(line.startswith("sparse ") for line in told.splitlines())
    again = tmp_path / "again.run"
    words = ["--model", model, "--run", judged[3], "--run", first, "--out", again]  # in another order
    assert unremarked(command("rerank", *words)) == (0, "", "")
    assert again.read_bytes() == out.read_bytes()
    twice = ["--run", first, "--run", f"sparse={judged[3]}", *qrels, "--out", out]
    assert "'sparse'" in refused("fuse", *twice)
    assert "'rrf' is a method of fusion" in refused("fuse", "--run", f"rrf={judged[1]}", *judged[2:], "--out", out)
    assert "which it would replace" in refused("fuse", "--run", first, "--run", second, "--out", judged[3])
    assert "which it would replace" in refused("rerank", "--run", first, "--stage", "random", "--out", judged[1])


def test_bad_options_of_learning(tmp_path, refused, judged):
    out = ["--out", tmp_path / "out.run"]
    assert "--folds needs --qrels" in refused("fuse", *judged[:4], *out, "--folds", 3)
    assert "--method excludes --qrels" in refused("fuse", *judged, *out, "--method", "rrf")
    assert "are the same file: give each run once" in refused("fuse", *judged, "--run", judged[1], *out)
    (tmp_path / "link.run").symlink_to(str(judged[1]))
    assert "are the same file" in refused("fuse", *judged[:4], "--run", tmp_path / "link.run", *out)
    assert "would be written twice" in refused("fuse", *judged, *out, "--out-model", tmp_path / "out.run")
    RankingModel((FusedRuns("rrf", ("x", "y")),), (1.0,), runs=("x", "y")).save(tmp_path / "fusion.json")
    words = ["--model", tmp_path / "fusion.json", *out]
    assert "fuses 2 runs, x, y" in refused("rerank", *words, *judged[:2])
    assert "go with --model, of features" in refused("rerank", *words, *judged[:4], "--transfer")
    assert "2 runs cannot be reranked" in refused("rerank", *judged[:4], *out, "--stage", "random")


def test_the_model_is_written_only_with_the_run(tmp_path, command, judged, monkeypatch):
    def fail(*_, **__):
        raise ParameterError("out.run cannot be written: the disk is full")

    monkeypatch.setattr("greylag.cli.fuse.write_rankings", fail)
    before = sorted(tmp_path.iterdir())
    out = ["--out", tmp_path / "out.run", "--out-model", tmp_path / "fusion.json"]
    code, _, errors = command("fuse", *judged, *out)
    assert (code, errors.count("\n")) == (2, 1)
    assert "the disk is full" in errors
    assert sorted(tmp_path.iterdir()) == before
