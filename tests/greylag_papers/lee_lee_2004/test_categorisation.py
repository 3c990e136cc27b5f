"""The categorisation study on small texts, and its accuracies against scikit-learn pipelines."""

import json

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import Binarizer

from greylag.learning import MMRFeatureSelection
from greylag.studies import Context, load
from greylag.studies.runner import run_study
from greylag_papers.lee_lee_2004.accuracies import MMR
from greylag_papers.lee_lee_2004.categorisation import STUDY, count_words, measure, split_documents
from greylag_papers.lee_lee_2004.koller_sahami import eliminate
from tests.greylag_papers.lee_lee_2004.samples import small_collection


def prepared(config):
    _, settings = load(config)
    texts = STUDY.open(settings, Context(config.parent))
    X, y = count_words(texts)
    return settings, np.array(texts.texts), X, y, split_documents(texts, y, settings)


def measured(config):
    settings, texts, X, y, splits = prepared(config)
    return settings, texts, y, splits, measure(X, y, splits, settings)


@pytest.mark.long
def test_files_do_not_depend_on_the_number_of_processes(tmp_path):
    config = small_collection(tmp_path)
    one, _ = (run_study(*load(config), tmp_path / str(n), n_jobs=n) for n in (1, 2))
    for name in ("results.json", "report.html"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    results = json.loads((tmp_path / "1" / "results.json").read_text())
    assert results["documents"] == {"different words": 100, "documents: x": 20, "documents: y": 20, "documents: z": 20}
    page = (tmp_path / "1" / "report.html").read_text()
    assert "Nadeau &amp; Bengio" in page
    assert f"{100 * one.scores['PrTFIDF']['IG@9']:.2f} ±" in page
    assert "Of 12 cases (learner and number of words) MMR is at or above IG in" in one.summary


@pytest.mark.long
@pytest.mark.parametrize("options", [{"splits": 2}, {"splits": "given", "folds": 2}])
def test_matrices_above_the_memory_map_limit(tmp_path, options):
    settings, _, X, y, splits = prepared(small_collection(tmp_path, sizes=[4], **options))
    with parallel_config(max_nbytes=1):
        parallel = measure(X, y, splits, settings, n_jobs=2)
    assert parallel.to_dict() == measure(X, y, splits, settings).to_dict()


def test_accuracies_are_those_of_pipelines_fitted_to_the_training_texts(tmp_path):
    settings, texts, y, splits, found = measured(small_collection(tmp_path))
    naive_bayes, entropy = found.learners.index("naive Bayes"), found.learners.index("maximum entropy")

    def accuracy(training, test, learner, select=lambda X, y: slice(None)):
        words = CountVectorizer(token_pattern="[a-z]+").fit(texts[training])
        X, held_out = words.transform(texts[training]), words.transform(texts[test])
        columns = select(Binarizer().transform(X), y[training])  # by the occurrence of words, not by their counts
        return learner.fit(X[:, columns], y[training]).score(held_out[:, columns], y[test])

    def mmr(size, **options):
        return lambda X, y: MMRFeatureSelection(size, **options).fit(X, y).selected_

    def blankets(X, y):
        order = mmr(20, relevance_weight=1.0)(X, y)
        return order[eliminate(X[:, order], y, size, 2)]

    for s, (training, test) in enumerate(splits):
        assert not set(training) & set(test)
        assert len(test) == 12
        assert found.all_words[s, naive_bayes] == accuracy(training, test, MultinomialNB())
        for k, size in enumerate((4, 9)):
            ig = mmr(size, relevance_weight=1.0)
            assert found.information_gain[s, k, naive_bayes] == accuracy(training, test, MultinomialNB(), ig)
            learner = LogisticRegression(solver="newton-cg", max_iter=1000)
            assert found.koller_sahami[s, k, entropy] == accuracy(training, test, learner, blankets)
            for w, weight in enumerate((0.0, 0.5, 1.0)):
                selector = mmr(size, relevance_weight=weight, preselect=20)
                assert found.mmr[s, w, k, naive_bayes] == accuracy(training, test, MultinomialNB(), selector)
                cross = StratifiedKFold(3, shuffle=True, random_state=settings.seed)
                folds = [(training[a], training[b]) for a, b in cross.split(training, y[training])]
                validated = np.mean([accuracy(*fold, MultinomialNB(), selector) for fold in folds])
                assert found.validated[s, w, k, naive_bayes] == pytest.approx(validated, abs=1e-12)


def test_relevance_alone_is_information_gain(tmp_path):
    *_, found = measured(small_collection(tmp_path, relevance_weights=[1.0]))
    np.testing.assert_array_equal(found.systems[MMR], found.information_gain)


def test_lambda_does_not_see_the_test_documents(tmp_path):
    settings, texts, y, splits, found = measured(small_collection(tmp_path))
    X = CountVectorizer(dtype=float).fit_transform(texts)
    training, test = splits[0]
    turned = y.copy()
    turned[test] = (y[test] + 1) % 3
    changed = measure(X, turned, [(training, test)], settings)
    np.testing.assert_array_equal(changed.chosen[0], found.chosen[0])
    assert (changed.mmr[0] != found.mmr[0]).any()


def test_splits_ignore_the_labels_and_depend_on_the_seed(tmp_path):
    *_, y, splits = prepared(small_collection(tmp_path, splits=200))
    shares = []
    for training, test in splits:
        assert sorted([*training, *test]) == list(range(60))
        assert len(test) == 12
        shares.append(np.bincount(y[test], minlength=3))
    # Hypergeometric: 12 of 60 documents, 20 of each label.
    np.testing.assert_allclose(np.mean(shares, axis=0), 4, atol=0.35)
    np.testing.assert_allclose(np.var(shares, axis=0), 12 * (1 / 3) * (2 / 3) * 48 / 59, rtol=0.35)
    *_, other = prepared(small_collection(tmp_path, seed=1))
    assert not np.array_equal(splits[0][0], other[0][0])


def test_given_split(tmp_path):
    config = small_collection(tmp_path, splits="given", folds=2)
    *_, splits, found = measured(config)
    ((training, test),) = splits
    assert (np.unique(training % 5).tolist(), np.unique(test % 5).tolist()) == ([0, 1, 2], [3])
    assert found.test_ratio == pytest.approx(1 / 3)
    assert "±" not in run_study(*load(config), tmp_path / "out").summary
    assert "Nadeau" not in (tmp_path / "out" / "report.html").read_text()
