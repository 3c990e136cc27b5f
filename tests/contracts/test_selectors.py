"""The contract of selectors as scikit-learn transformers. To test a new one, add it to `SELECTORS`."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from greylag.errors import ParameterError
from greylag.learning.selection import InformationGainSelection, KollerSahamiSelection, MMRFeatureSelection
from tests.greylag.learning.selection.samples import random_words

SELECTORS = [
    InformationGainSelection(n_features=3),
    MMRFeatureSelection(n_features=3, relevance_weight=0.5),
    KollerSahamiSelection(n_features=3, conditioning_size=2),
]


@pytest.fixture(params=SELECTORS, ids=lambda selector: type(selector).__name__)
def selector(request):
    return clone(request.param)


TEXTS = ["red apple", "green apple", "red wine", "fast red car car", "green car", "fast car race"] * 3
LABELS = ["food", "food", "food", "cars", "cars", "cars"] * 3


# With n_features = 1, because some checks fit one or two columns, of which three cannot be kept. None is excluded; that
# of array-API input skips itself unless SCIPY_ARRAY_API is set.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks([clone(selector).set_params(n_features=1) for selector in SELECTORS])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_pipeline_keeps_names_and_counts(selector):
    pipeline = make_pipeline(CountVectorizer(), selector)
    with pytest.warns(DataConversionWarning):
        kept = pipeline.fit_transform(TEXTS, LABELS)
    counts = pipeline[0].transform(TEXTS)
    names = pipeline[0].get_feature_names_out()
    assert sparse.issparse(kept)
    np.testing.assert_array_equal(kept.toarray(), counts.toarray()[:, np.sort(pipeline[1].selected_)])
    assert kept.max() == 2  # "car car": selection sees booleans, the next step still sees counts
    assert pipeline.get_feature_names_out().tolist() == names[np.sort(pipeline[1].selected_)].tolist()
    assert "car" in pipeline.get_feature_names_out()


def test_data_frames_keep_their_columns(selector):
    X, y = random_words(0)
    frame = pd.DataFrame(X.astype(int), columns=[f"word{i}" for i in range(X.shape[1])])
    kept = selector.set_output(transform="pandas").fit_transform(frame, y)
    pd.testing.assert_frame_equal(kept, frame.iloc[:, np.sort(selector.selected_)])


def test_sparse_and_dense_choose_the_same(selector):
    X, y = random_words(4)
    dense = selector.fit(X, y).selected_
    np.testing.assert_array_equal(selector.fit(sparse.csc_matrix(X.astype(float)), y).selected_, dense)


@pytest.mark.parametrize(
    ("selector", "name"),
    [(SELECTORS[1], "relevance_weight"), (SELECTORS[2], "conditioning_size")],
    ids=["MMRFeatureSelection", "KollerSahamiSelection"],
)
def test_grid_search_over_parameters(selector, name):
    name = f"{type(selector).__name__.lower()}__{name}"
    pipeline = make_pipeline(CountVectorizer(binary=True), selector, MultinomialNB())
    search = GridSearchCV(pipeline, {name: [0, 1]}, cv=3, error_score="raise").fit(TEXTS, LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(["apple", "car"]).tolist() == ["food", "cars"]


@pytest.mark.parametrize("n_features", [0, 13, 2.0, None])
def test_number_of_features_must_be_available(selector, n_features):
    X, y = random_words(0)
    with pytest.raises(
        ParameterError,
        match=rf"n_features .*\b12\b.*not {n_features}",
    ):
        selector.set_params(n_features=n_features).fit(X, y)


@pytest.mark.parametrize("preselect", [2, 5.5])
@pytest.mark.parametrize("selector", SELECTORS[1:], ids=["MMRFeatureSelection", "KollerSahamiSelection"])
def test_candidates_must_be_enough(selector, preselect):
    X, y = random_words(0)
    with pytest.raises(ParameterError, match=rf"preselect .*\b3\b.*not {preselect}"):
        clone(selector).set_params(preselect=preselect).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.full((4, 3), np.nan), [0, 1, 0, 1], "NaN"),
        (-np.ones((4, 3)), [0, 1, 0, 1], r"X contains -1\.0"),
        (np.ones((4, 3)), ["a"] * 4, "one class, .*'a'"),
        (np.ones((4, 3)), None, "requires y"),
    ],
)
def test_bad_input_is_refused_in_one_line(selector, X, y, message):
    with pytest.raises(ParameterError, match=message) as error:
        selector.fit(X, y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("selector", SELECTORS[::2], ids=["InformationGainSelection", "KollerSahamiSelection"])
def test_constant_columns_are_taken_last(selector):
    X, y = random_words(6, n_words=6)
    constant = np.column_stack([np.zeros(40), np.ones(40), X[:, 1:5], np.ones(40)])
    selector = clone(selector).fit(constant, y)
    assert set(selector.selected_) <= {2, 3, 4, 5}
    np.testing.assert_array_equal(selector.information_gain_[[0, 1, 6]], 0)


def test_transform_before_fit_is_refused(selector):
    with pytest.raises(NotFittedError):
        selector.transform(np.ones((2, 3)))
