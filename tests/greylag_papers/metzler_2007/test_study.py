"""The study as a whole: nested, reproducible, and all its files."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from greylag import PositionalIndex, Ranking
from greylag.evaluation import evaluate, read_run
from greylag.features import FeatureExtractor, candidate_pool
from greylag.learning import training_data, useful_features
from greylag.rankers import ModelRanker, RankingModel
from greylag.studies import load
from greylag.studies.runner import run_study
from greylag_papers.metzler_2007 import study
from greylag_papers.metzler_2007.learning import Experiment, Features
from tests.greylag.studies import samples as studies
from tests.greylag.studies.samples import DEMO
from tests.greylag_papers.metzler_2007.samples import SYSTEMS, write_config


def test_the_size_of_the_pool():
    """The paper has 48 features left; with its literal windows and cliques of three terms, 50 are."""
    rng, words = np.random.default_rng(1), [f"w{i}x" for i in range(12)]
    # Of different lengths: the values of a window that never matches are then different, too.
    texts = {f"d{i}": " ".join(rng.choice(words, size=80 + i % 20)) for i in range(60)}
    rankings = [
        Ranking(str(n), " ".join(rng.choice(words, 3 + n % 3, replace=False)), tuple(texts), np.zeros(60))
        for n in range(12)
    ]
    settings = SimpleNamespace(features=Features(pool="full", profile="inquery", max_clique=3), priors=[])
    experiment = Experiment(settings, None)
    assert len(candidate_pool("full")) == 54
    extract = FeatureExtractor(PositionalIndex.from_texts(texts), experiment.pool, experiment.base)
    data = training_data(rankings, {ranking.qid: {"d1": 1} for ranking in rankings}, extract)
    assert len(useful_features(data)[0].names) == len(data.names) == 50


def test_every_run_is_reranked_by_the_models_of_its_folds(done):
    first = done.opened.first
    assert list(done.finished.scores)[: len(SYSTEMS)] == SYSTEMS
    for system in SYSTEMS:
        tag = study.file_name(system)
        run = read_run(done.out / f"{tag}.run")
        assert run.tag == tag
        ap = evaluate(run, done.opened.qrels, ["AP"]).means[0]
        assert ap == pytest.approx(done.finished.scores[system]["AP"], abs=1e-12)
        if system == "first stage":
            assert [run[qid].docids for qid in first] == [ranking.docids for ranking in first.rankings]
            continue
        for model, fold in zip(done.models(tag), done.results["folds"], strict=True):
            assert set(model.provenance["queries"]).isdisjoint(fold["test"])
            for qid in fold["test"][:2]:
                assert ModelRanker(model, done.opened.index)(first[qid]).docids == run[qid].docids


def test_results_do_not_depend_on_threads(done, tmp_path):
    run_study(study.STUDY, done.settings, tmp_path, n_jobs=2)
    compared = 0
    for path in done.out.rglob("*"):
        if path.suffix == ".run" or path.name.startswith("fold-") or path.name == "results.json":
            assert (tmp_path / path.relative_to(done.out)).read_bytes() == path.read_bytes(), path
            compared += 1
    assert compared == 12 + 3 * 11 + 1


def test_a_fixed_split_cut_offs_and_a_prior(tmp_path):
    docids = [json.loads(line)["id"] for line in (DEMO / "docs.jsonl").read_text().splitlines()]
    (tmp_path / "prior.tsv").write_text("".join(f"{docid} {place + 1}\n" for place, docid in enumerate(docids)))
    path = write_config(
        tmp_path,
        features={"pool": "sd", "priors": [f"prior:{tmp_path}/prior.tsv:log"]},
        split={"train": ["1..14"], "test": ["15..18", 21]},
        training={"objective": "nDCG@5", "cutoffs": [5, 20], "max_features": 2, "restarts": 1, "inner_folds": 2},
    )
    out = tmp_path / "out"
    scores = run_study(*load(path), out).scores
    assert set(scores["MRF-FS"]) == {"nDCG@5", "P@10"}
    results = studies.results(out)
    (fold,) = results["folds"]
    assert fold["training"] == [str(i) for i in range(1, 15)]
    assert list(results["runs"]["MRF-FS"]["per_query"]) == fold["test"] == ["15", "16", "17", "18", "21"]
    assert list(read_run(out / "mrf-fs.run")) == fold["test"]
    assert [len(curves) for curves in fold["held_out"]["MRF-FS inner CV"]] == [2, 2]
    model = RankingModel.load(out / "models" / "coordinate-ascent" / "fold-1.json")
    assert f"prior:{tmp_path}/prior.tsv:log" in map(str, model.features)
