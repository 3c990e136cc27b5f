"""The study of relevance feedback: the choice of parameters, and the whole on the demonstration collection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from greylag import Ranking, Run
from greylag.evaluation import evaluate
from greylag.manifold import feedback_session
from greylag.manifold.feedback import Feedback
from greylag.manifold.sessions import MakeStage, residual_qrels
from greylag_papers.beyond import relevance_feedback
from tests.greylag.studies import samples
from tests.greylag.studies.samples import DEMO, Page

DOCIDS = tuple(f"d{i}" for i in range(30))


def shifted(value: float) -> MakeStage:
    """A stage that moves the order of documents by its parameter, whatever is judged."""

    def make(_: Feedback) -> Callable[[Ranking], Ranking]:
        return lambda ranking: ranking.rescore([-((int(d[1:]) - value) % 30) for d in ranking.docids])

    return make


def test_each_fold_has_the_parameter_that_is_best_on_the_others() -> None:
    rng = np.random.default_rng(2)
    qids = [str(number) for number in range(9)]
    first = Run(
        tuple(Ranking(qid, "", tuple(rng.permutation(DOCIDS).tolist()), np.arange(30.0, 0, -1)) for qid in qids)
    )
    qrels = {qid: dict.fromkeys(rng.permutation(DOCIDS)[:5].tolist(), 1) for qid in qids}
    folds, stages = [qids[:3], qids[3:6], qids[6:]], {value: shifted(value) for value in (0.0, 7.0, 15.0, 22.0)}
    settings = relevance_feedback.Settings.model_construct(rounds=2, per_round=4)
    found = relevance_feedback.choose("moved", stages, first, qrels, folds, settings, 1)
    sessions = {
        value: feedback_session(make, first, qrels, rounds=2, per_round=4, tag="x") for value, make in stages.items()
    }

    def training_ap(value: float, test: list[str]) -> float:
        means = []
        for number in (1, 2):
            rest = residual_qrels(qrels, sessions[value].seen(number))
            rest = {qid: grades for qid, grades in rest.items() if qid not in test}
            means.append(evaluate(sessions[value].residuals[number - 1], rest, ["AP"]).means[0])
        return float(np.mean(means))

    for chosen, test in zip(found.parameters, folds, strict=True):
        means = {value: training_ap(value, test) for value in stages}
        assert means[chosen] == pytest.approx(max(means.values()))
        for qid in test:
            assert found.given.residuals[1][qid] == sessions[chosen].residuals[1][qid]
    assert len(set(found.parameters)) > 1


@pytest.mark.usefixtures("own_data")
def test_the_study_on_the_demonstration_collection(tmp_path: Path) -> None:
    base = (DEMO / "demo.yaml").read_text()
    kept = [line for line in base.splitlines() if line.startswith(("collection:", "topics:", "qrels:"))]
    (tmp_path / "x.yaml").write_text(
        "\n".join(["name: x", "study: relevance_feedback", f"data: {DEMO}", *kept])
        + "\nrounds: 2\nper_round: 5\nfirst_stage: {hits: 60}\nbetas: [0.5, 2]\nquery_weights: [0.5]\nalphas: [0.6]\n"
    )
    out = tmp_path / "out"
    scores = samples.run_file(tmp_path / "x.yaml", out).scores
    systems = ("no feedback", "Rocchio", "RM3", "manifold")
    assert {name for name in scores if " / " not in name} == set(systems)
    for other in ("no feedback", "RM3", "manifold"):
        row = scores[f"Rocchio / {other}, residual AP"]
        for name, mean in (("Rocchio", "mean"), (other, "against")):
            assert row[mean] == pytest.approx(scores[name]["AP, round 2"])
    for own in (scores[name] for name in systems):
        assert [*own] == ["AP, round 1", "nDCG@10, round 1", "AP, round 2", "nDCG@10, round 2", "R@5", "R@10"]
        assert own["R@5"] == scores["no feedback"]["R@5"]
    assert scores["RM3"]["AP, round 1"] > scores["no feedback"]["AP, round 1"]
    parameters = samples.results(out)["parameters"]
    assert {name: len(own) for name, own in parameters.items()} == dict.fromkeys(systems, 5)
    page = Page((out / "report.html").read_text())
    assert len(page.texts["svg"]) == 1
    assert any(row[:2] == ["Rocchio", f"{scores['Rocchio']['AP, round 1']:.4f}"] for row in page.rows)
    assert (out / "rocchio.run").exists()
