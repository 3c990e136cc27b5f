"""What the studies refuse: the call, the exception, and the value and place that its line names."""

import numpy as np
import pytest

from greylag import FormatError, ParameterError
from greylag.base import CollectionError
from greylag.studies import Context, load
from greylag_papers.labelled_text import Documents, read_labelled_texts
from greylag_papers.metzler_2007 import study
from greylag_papers.metzler_2007.learning import Settings as MRFSettings
from greylag_papers.schiegg_2016.categories import fold_tasks
from greylag_papers.schiegg_2016.images import image_tasks
from greylag_papers.schiegg_2016.potts import inverse_frequencies
from greylag_papers.schiegg_2016.scenes import with_potentials
from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages
from greylag_papers.schiegg_2016.trials import EnsembleSettings, TrialTable, candidates
from greylag_papers.yue_joachims_2008 import judgements
from greylag_papers.yue_joachims_2008.comparison import LossTable
from greylag_papers.yue_joachims_2008.queries import first_split, folds, rotations
from greylag_papers.zhou_2003.by_example import draw_queries
from greylag_papers.zhou_2003.usps import Settings as DigitSettings
from greylag_papers.zhou_2003.usps import read_images
from tests.greylag_papers.lee_lee_2004.samples import small_collection
from tests.greylag_papers.metzler_2007.samples import write_config
from tests.greylag_papers.schiegg_2016.samples import GRID, trial
from tests.greylag_papers.yue_joachims_2008.samples import queries
from tests.refusals import refuses


def mrf(**options):
    return lambda folder: load(write_config(folder, **options))


def mrf_folds(**split):
    def make(folder):
        _, settings = load(write_config(folder, split=split))
        assert isinstance(settings, MRFSettings)
        return study.make_folds(settings, [str(topic) for topic in range(1, 25)])

    return make


def digits(folder, name):
    np.savez(folder / "other.npz", Z=np.ones(3))
    return read_images(DigitSettings(name="x", data_folder=folder, images=name), Context(folder))


def judged(folder, topic):
    (folder / "qrels").write_text("1 1 a 1\n")
    settings = judgements.Settings(name="j", data_folder=folder, subtopic_qrels="qrels", queries=(topic,))
    return judgements.open_judgements(settings, Context(folder))


def headers_alone(folder):
    (folder / "docs.jsonl").write_text('{"id": "d1", "label": "a", "text": "From: x\\nno body"}\n')
    return read_labelled_texts(folder, Documents(path="", skip_headers=True))


def categorise(**options):
    def call(folder):
        study, settings = load(small_collection(folder, **options))
        study.run(settings, study.open(settings, Context(folder)), Context(folder))

    return call


def images(n, categories=1):
    return SyntheticImages(n_categories=categories, n_images=n).draw()


REFUSALS = [
    (mrf(training={"inner_folds": 1}), FormatError, "training.inner_folds"),
    (mrf(features={"priors": ["pagerank.tsv"]}), FormatError, "features.priors.0 prior:FILE"),
    (mrf(split={"train": ["1"]}), FormatError, "split.test required"),
    (mrf_folds(train=["1..3"], test=["3"]), ParameterError, "'3' train test"),
    (mrf_folds(train=["1..99"], test=["3"]), ParameterError, "'99'"),
    (lambda folder: digits(folder, "none.npz"), FormatError, "none.npz GREYLAG_DATA"),
    (lambda folder: digits(folder, "other.npz"), FormatError, "other.npz"),
    (lambda _: draw_queries(np.random.default_rng(0), np.array([3, 1, 3, 1]), 1, 2), ParameterError, "class 1 2"),
    (lambda folder: read_labelled_texts(folder / "nothing", Documents(path="")), CollectionError, "GREYLAG_DATA"),
    (lambda folder: read_labelled_texts(folder, Documents(path="")), CollectionError, ".jsonl"),
    (lambda _: rotations(queries(8), n_training=3, n_validation=2, n_splits=2), ParameterError, "2 8 4 5"),
    *(
        ((lambda _, split=split, n=n, t=t, v=v: split(queries(n), t, v)), ParameterError, f"{n} {t} {v}")
        for split in (first_split, rotations, folds)
        for n, t, v in ((16, 12, 4), (9, 0, 4), (9, 4, 0))
    ),
    (lambda _: SyntheticImages(n_classes=5, distance=0.4), ParameterError, "5 0.4"),
    (headers_alone, CollectionError, "no word"),
    (categorise(folds=21), CollectionError, "label 21"),
    (categorise(test_share=0.999), CollectionError, "60 0.999"),
    (categorise(sizes=[101], preselect=200), ParameterError, "n_features 101"),
    (categorise(preselect=5), ParameterError, "preselect 9 5"),
    (categorise(relevance_weights=[2]), ParameterError, "relevance_weight 2"),
    (categorise(conditioning_size=11), FormatError, "conditioning_size 10"),
    (categorise(documents={"path": "docs.jsonl", "text": []}), FormatError, "documents.text"),
    (categorise(documents={"path": "docs.jsonl", "split": "id"}, splits="given"), CollectionError, "'id' 'test'"),
    (lambda folder: judged(folder, "3"), FormatError, "qrels topic 3"),
    (lambda _: LossTable(()).losses("svmdiv", 2), ParameterError, "'svmdiv' k = 2"),
    (lambda _: inverse_frequencies([np.array([0, 2])], 3), ParameterError, "label 1"),
    (lambda _: with_potentials(images(1)[0], images(1)[0], 9), ParameterError, "1 9"),
    (lambda _: image_tasks("1.", images(3)[0], 2), ParameterError, "3 1 2"),
    (lambda _: fold_tasks(images(2, 2), 0), ParameterError, "4 5"),
    (lambda _: TrialTable((trial("a", 0.4, [[0.0]]),)).chosen("mcl", 3), ParameterError, "'mcl' 3"),
    (
        lambda _: candidates(EnsembleSettings(name="s", **GRID | {"alphas": (0.01, 0.1, 1.0)}), 3),
        ParameterError,
        "divmcl 2 cssvm-all 3",
    ),
]


@pytest.mark.parametrize(("call", "error", "parts"), REFUSALS)
def test_refusals(call, error, parts, tmp_path):
    refuses(lambda: call(tmp_path), error, parts)
