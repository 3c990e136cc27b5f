"""The systems of a fold are learned from its training queries alone."""

from dataclasses import replace

from greylag.studies import load
from greylag_papers.metzler_2007 import learning, study
from greylag_papers.metzler_2007.learning import Settings
from tests.greylag.studies.samples import DEMO
from tests.greylag_papers.metzler_2007.samples import write_config


def test_nothing_is_learned_from_test_queries(done):
    """With inverted judgements of a fold's test queries, the fold learns the same."""
    opened = done.opened
    fold = study.make_folds(done.settings, list(opened.first))[1]
    inverted = {
        qid: {docid: int(grade <= 0) for docid, grade in grades.items()} if qid in fold.test else grades
        for qid, grades in opened.qrels.items()
    }
    for qrels in (opened.qrels, inverted):
        experiment = learning.Experiment(done.settings, replace(opened, qrels=qrels))
        tuned = learning.tune_baselines(experiment, [fold], lambda line: None)
        learned = learning.learn(experiment, fold, tuned["RM3"][0].model.parameters)
        for system, model in learned.models.items():
            assert done.models(study.file_name(system))[1] == model
        for name, (found,) in tuned.items():
            saved = done.models(study.file_name(name))[1]
            assert (saved.weights, saved.parameters) == (found.model.weights, found.model.parameters)


def test_learned_systems_use_the_tuned_parameters(done):
    lm, bm25, rm3, selected = (done.models(tag) for tag in ("lm", "bm25", "rm3", "mrf-fs"))
    for fold in range(3):
        used = selected[fold].parameters
        assert used == rm3[fold].parameters
        assert used.mu == lm[fold].parameters.mu
        assert (used.k1, used.b) == (bm25[fold].parameters.k1, bm25[fold].parameters.b)


def test_the_papers_rule_adds_five_features_at_most(done):
    for selected, retrained in zip(done.models("mrf-fs"), done.models("mrf-fs-retrained"), strict=True):
        assert retrained.provenance["retrain"]
        assert len(selected.features) <= 5
        assert (selected.provenance["max_features"], selected.provenance["epsilon"]) == (5, 0)
        assert retrained.features[0] == selected.features[0]


def test_priors_are_input_files(tmp_path):
    prior = tmp_path / "prior.tsv"
    _, settings = load(write_config(tmp_path, features={"priors": ["prior:spam.tsv:log", f"prior:{prior}"]}))
    assert isinstance(settings, Settings)
    assert [(found.file, found.scale) for found in settings.priors] == [
        (str(DEMO / "spam.tsv"), "log"),
        (str(prior), "raw"),
    ]
    assert prior in settings.paths()
