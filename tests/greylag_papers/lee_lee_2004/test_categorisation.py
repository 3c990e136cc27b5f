"""The categorisation study end to end on small texts, and its cells against scikit-learn pipelines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

import greylag
from greylag.errors import CollectionError, FormatError, ParameterError
from greylag.experiments import study
from greylag.selection import InformationGainSelection, KollerSahamiSelection, MMRFeatureSelection
from greylag_papers.labelled_text import read_labelled_texts
from greylag_papers.lee_lee_2004 import categorisation
from greylag_papers.lee_lee_2004.accuracies import KS, MMR
from greylag_papers.lee_lee_2004.tables import difference_table, differences, verdict

CONFIGS = Path(greylag.__file__).parents[2] / "configs"
OPTIONS = {"sizes": [4, 9], "preselect": 20, "relevance_weights": [0.0, 0.5, 1.0], "splits": 3, "folds": 3}


def small_collection(folder, **options):
    """Texts of three labels: words of their own, common ones, one that no other text has; and an experiment file."""
    rng = np.random.default_rng(5)
    words = np.array([f"{a}{b}" for a in "bdfgk" for b in ("an", "en", "in", "on", "un", "ay", "ey", "oy")])
    records = []
    for number in range(60):
        label = number % 3
        rates = np.where(np.arange(len(words)) % 3 == label, 0.5, 0.25)
        counts = rng.poisson(rates)
        text = " ".join([*np.repeat(words, counts), f"rare{chr(97 + number // 26)}{chr(97 + number % 26)}"])
        split = ("train", "train", "train", "test", "other")[number % 5]
        records.append({"id": number, "label": "xyz"[label], "text": text.capitalize(), "split": split})
    (folder / "docs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    content = {"name": "small", "study": "categorisation", "documents": {"path": "docs.jsonl"}, **OPTIONS, **options}
    (folder / "small.yaml").write_text(yaml.safe_dump(content))
    return folder / "small.yaml"


def run(config, out, n_jobs=1):
    module, settings = study.load(config)
    return module.run(settings, out, n_jobs=n_jobs, say=lambda _: None)


def measured(config):
    """The settings, texts, labels, splits and accuracies of an experiment file."""
    _, settings = study.load(config)
    texts = read_labelled_texts(settings.path(settings.documents.path), settings.documents)
    X, y = categorisation.count_words(texts)
    splits = categorisation.split_documents(texts, y, settings)
    return settings, np.array(texts.texts), y, splits, categorisation.measure(X, y, splits, settings)


def test_files_are_the_same_for_any_number_of_processes(tmp_path):
    config = small_collection(tmp_path)
    one, two = run(config, tmp_path / "1"), run(config, tmp_path / "2", n_jobs=2)
    assert one.scores == two.scores
    for name in ("results.json", "report.html"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    documents = json.loads((tmp_path / "1" / "results.json").read_text())["documents"]
    assert documents == {"different words": 100, "documents: x": 20, "documents: y": 20, "documents: z": 20}
    page = (tmp_path / "1" / "report.html").read_text()
    assert page.count("<svg") == 1
    for text in ("Koller-Sahami", "Nadeau &amp; Bengio", f"{100 * one.scores['PrTFIDF']['IG@9']:.2f} ±"):
        assert text in page


def test_cells_are_those_of_pipelines_that_see_the_training_texts_alone(tmp_path):
    settings, texts, y, splits, found = measured(small_collection(tmp_path))
    naive_bayes, entropy = found.learners.index("naive Bayes"), found.learners.index("maximum entropy")

    def accuracy(training, test, learner, selector=None):
        words = CountVectorizer(token_pattern="[a-z]+")
        steps = [words] if selector is None else [words, ByOccurrence(selector)]
        return make_pipeline(*steps, learner).fit(texts[training], y[training]).score(texts[test], y[test])

    for s, (training, test) in enumerate(splits):
        assert not set(training) & set(test)
        assert len(test) == 12
        assert found.all_words[s, naive_bayes] == accuracy(training, test, MultinomialNB())
        for k, size in enumerate((4, 9)):
            ig = InformationGainSelection(size)
            assert found.information_gain[s, k, naive_bayes] == accuracy(training, test, MultinomialNB(), ig)
            blankets = KollerSahamiSelection(size, conditioning_size=2, preselect=20)
            learner = LogisticRegression(solver="newton-cg", max_iter=1000)
            assert found.koller_sahami[s, k, entropy] == accuracy(training, test, learner, blankets)
            for w, weight in enumerate((0.0, 0.5, 1.0)):
                selector = MMRFeatureSelection(size, relevance_weight=weight, preselect=20)
                assert found.mmr[s, w, k, naive_bayes] == accuracy(training, test, MultinomialNB(), selector)
                cross = StratifiedKFold(3, shuffle=True, random_state=settings.seed)
                folds = [(training[a], training[b]) for a, b in cross.split(training, y[training])]
                validated = np.mean([accuracy(*fold, MultinomialNB(), selector) for fold in folds])
                assert found.validated[s, w, k, naive_bayes] == pytest.approx(validated, abs=1e-12)


class ByOccurrence:
    """A selector that is fitted to whether words occur, and passes counts on."""

    def __init__(self, selector):
        self.selector = selector

    def fit(self, X, y):
        self.selector.fit(Binarizer().transform(X), y)
        return self

    def transform(self, X):
        return X[:, self.selector.selected_]


def test_lambdas_are_put_in_order(tmp_path):
    _, settings = study.load(small_collection(tmp_path, relevance_weights=[1.0, 0.0, 0.5]))
    assert settings.relevance_weights == (0.0, 0.5, 1.0)


def test_relevance_alone_is_information_gain(tmp_path):
    *_, found = measured(small_collection(tmp_path, relevance_weights=[1.0]))
    np.testing.assert_array_equal(found.systems[MMR], found.information_gain)


def test_lambda_does_not_see_the_test_documents(tmp_path):
    settings, texts, y, splits, found = measured(small_collection(tmp_path))
    X = CountVectorizer(dtype=float).fit_transform(texts)
    training, test = splits[0]
    turned = y.copy()
    turned[test] = (y[test] + 1) % 3
    changed = categorisation.measure(X, turned, [(training, test)], settings)
    np.testing.assert_array_equal(changed.chosen[0], found.chosen[0])
    assert (changed.mmr[0] != found.mmr[0]).any()


def test_splits_keep_the_labels_shares_and_depend_on_the_seed(tmp_path):
    *_, y, splits, _ = measured(small_collection(tmp_path))
    for training, test in splits:
        assert np.bincount(y[training]).tolist() == [16] * 3
        assert np.bincount(y[test]).tolist() == [4] * 3
    *_, other, _ = measured(small_collection(tmp_path, seed=1))
    assert not np.array_equal(splits[0][0], other[0][0])


def test_the_files_own_split(tmp_path):
    config = small_collection(tmp_path, splits="given", folds=2)
    *_, splits, found = measured(config)
    ((training, test),) = splits
    assert (np.unique(training % 5).tolist(), np.unique(test % 5).tolist()) == ([0, 1, 2], [3])
    assert found.test_ratio == pytest.approx(1 / 3)
    summary = run(config, tmp_path / "out").summary
    assert "±" not in summary
    assert "Nadeau" not in (tmp_path / "out" / "report.html").read_text()


def test_the_tables_say_what_was_measured(tmp_path):
    *_, found = measured(small_collection(tmp_path))
    means = found.means()
    at_or_above = sum(
        means[name][f"MMR@{k}"] >= means[name][f"{KS}@{k}"] - 1e-9 for name in found.learners for k in (4, 9)
    )
    assert "Of 8 cases (learner and number of words) MMR is at or above IG in" in verdict(found)
    assert f"Koller-Sahami in {at_or_above}, the learner on all words in" in verdict(found)
    gain = means["Rocchio"]["MMR@9"] - means["Rocchio"]["all words"]
    assert differences(found)["Rocchio", "all words", 9].mean == pytest.approx(gain)
    cells = {tuple(row[:2]): row[3] for row in difference_table(found).rows}
    assert cells["Rocchio", "all words"].startswith(f"{100 * gain:+.2f} (")


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"folds": 17}, CollectionError, "label 'x' has 16 training documents, fewer than the 17 folds"),
        ({"test_share": 0.01}, CollectionError, "cannot be split at random: The test_size = 1"),
        ({"sizes": [101], "preselect": 200}, ParameterError, "n_features must be an integer from 1 to"),
        ({"preselect": 5}, ParameterError, "preselect .* not below n_features = 9"),
        ({"relevance_weights": [2]}, ParameterError, "relevance_weight must be a number from 0 to 1"),
        ({"splits": "mine"}, FormatError, "splits"),
        ({"documents": {"path": "docs.jsonl", "text": []}}, FormatError, "documents.text"),
        ({"documents": {"path": "docs.jsonl", "split": "id"}, "splits": "given"}, CollectionError, "'id' is 'test'"),
    ],
)
def test_mistakes(tmp_path, options, error, reason):
    with pytest.raises(error, match=reason):
        run(small_collection(tmp_path, **options), tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reuters21578", "rec_newsgroups"])
def test_expected_scores(data, tmp_path, name):
    data(name)
    _, settings = study.load(CONFIGS / f"{name}.mmr.yaml")
    assert run(CONFIGS / f"{name}.mmr.yaml", tmp_path).deviations(settings.expected) == []
