"""Feature selection for text categorisation: the study of Lee & Lee (2004), on any collection of labelled text.

Learners are trained on the words that a selector chooses from a split's training documents. Their accuracy is measured
on its test documents. All words occur in the training documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from greylag.base import CollectionError, FloatArray, IntArray, parallel_map
from greylag.learning import MMRFeatureSelection
from greylag.studies import Context, Outcome, Positive, Seed, Study
from greylag_papers.labelled_text import LabelledTexts, TextSettings, open_texts
from greylag_papers.lee_lee_2004.accuracies import Accuracies, accuracy_table, sections, verdict
from greylag_papers.lee_lee_2004.koller_sahami import eliminate
from greylag_papers.lee_lee_2004.text_classifiers import LEARNERS, SVM

WORD = r"[^\W\d_]+"  # a run of letters
Split = tuple[IntArray, IntArray]
"""The indices of the training documents and of the test documents."""
Ascending = AfterValidator(lambda weights: tuple(sorted(weights)))


class Settings(TextSettings):
    """Selectors and splits."""

    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)] = (25, 50, 100, 200, 500, 1000)
    """Numbers of words to select."""
    preselect: Positive = 1000
    """MMR and Koller & Sahami's method choose among the top `preselect` words by information gain."""
    relevance_weights: Annotated[tuple[float, ...], Field(min_length=1), Ascending] = tuple(i / 10 for i in range(11))
    """Values of MMR's lambda; one is chosen for each learner and size."""
    conditioning_size: Annotated[int, Field(ge=0, le=10)] = 2
    """Size K of Koller & Sahami's Markov blankets."""
    splits: Positive | Literal["given"] = 10
    """Number of random splits, which ignore the labels; "given" takes the split of the files."""
    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of the test documents in a random split."""
    folds: Annotated[int, Field(ge=2)] = 5
    """Folds of the cross-validation that chooses lambda on a split's training documents."""
    seed: Seed = 0
    """Seed of the random splits and folds."""


def run(settings: Settings, texts: LabelledTexts, context: Context) -> Outcome:
    """Measure all accuracies and compare MMR with the other selectors."""
    X, y = count_words(texts)
    labels = dict(sorted(Counter(texts.labels).items()))
    context.progress(f"{len(y)} documents with {len(labels)} labels; {sum(texts.left_out.values())} left out")
    accuracies = measure(X, y, split_documents(texts, y, settings), settings, n_jobs=context.n_jobs)
    counts = {
        "different words": X.shape[1],
        **{f"documents: {label}": n for label, n in labels.items()},
        **{f"left out: {reason}": n for reason, n in texts.left_out.items()},
    }
    return Outcome(
        scores=accuracies.means() | (accuracies.claims() if len(accuracies.svm) > 1 else {}),
        results={"documents": counts, "accuracies": accuracies.to_dict()},
        tables=[accuracy_table(accuracies), f"{verdict(accuracies)}\n"],
        title=f"Feature selection: {settings.name}",
        sections=sections(accuracies, counts),
        provenance={"scikit-learn": version("scikit-learn")},
    )


def count_words(texts: LabelledTexts) -> tuple[Any, IntArray]:
    """Count lower-cased words: a sparse matrix, shape (N, V), words ascending, and the label number of each text."""
    # Labels are numbered in ascending order. There is no stop list and no stemming.
    X = CountVectorizer(token_pattern=WORD, dtype=np.float64).fit_transform(texts.texts)
    return X, np.unique(texts.labels, return_inverse=True)[1]


def split_documents(texts: LabelledTexts, y: IntArray, settings: Settings) -> list[Split]:
    """Draw the splits of the settings."""
    if settings.splits == "given":
        named = np.array(texts.splits)
        splits = [(np.flatnonzero(named == "train"), np.flatnonzero(named == "test"))]
        if not len(splits[0][1]):
            field = settings.documents.split
            raise CollectionError(f"no document's {field!r} is 'test': set splits to a number of random splits")
    else:
        drawn = ShuffleSplit(settings.splits, test_size=settings.test_share, random_state=settings.seed)
        try:
            splits = list(drawn.split(y))
        except ValueError as error:
            raise CollectionError(f"the documents cannot be split at random: {error}") from None
    for train, _ in splits:
        sizes = np.bincount(y[train], minlength=y.max() + 1)
        if sizes.min() < settings.folds:
            label = sorted(set(texts.labels))[sizes.argmin()]
            reason = f"has {sizes.min()} training documents, fewer than the {settings.folds} folds"
            raise CollectionError(f"label {label!r} {reason}: use fewer folds, or omit it from documents.labels")
    return splits


class Division(NamedTuple):
    """Training and test documents: word counts, shape (documents, V), and label numbers."""

    training: Any
    labels: IntArray
    test: Any
    test_labels: IntArray

    @classmethod
    def of(cls, X: Any, y: IntArray, split: Split) -> Division:
        """Return the documents of a split, with the words of its training documents."""
        train, test = split
        # A word of test documents alone could not have been selected.
        met = X[train].count_nonzero(axis=0) > 0
        return cls(X[train][:, met], y[train], X[test][:, met], y[test])


def measure(X: Any, y: IntArray, splits: list[Split], settings: Settings, *, n_jobs: int | None = None) -> Accuracies:
    """Measure accuracies on all splits, one process per job; the result does not depend on their number."""
    parts = (Division.of(X, y, split) for split in splits)
    work = partial(measure_split, settings=settings)
    rows = list(parallel_map(work, parts, what="splits", total=len(splits), n_jobs=n_jobs, prefer="processes"))
    return Accuracies(
        learners=tuple(LEARNERS),
        sizes=settings.sizes,
        relevance_weights=settings.relevance_weights,
        **{name: np.stack([row[name] for row in rows]) for name in rows[0]},
        test_ratio=len(splits[0][1]) / len(splits[0][0]),
    )


def measure_split(part: Division, settings: Settings) -> dict[str, FloatArray]:
    """Compute the arrays of `Accuracies` for one split, without the axis of splits."""
    # Selectors see occurrences, learners counts.
    occurs, sizes = part.training > 0, settings.sizes
    n_words = min(settings.preselect, occurs.shape[1])
    by_gain = MMRFeatureSelection(n_words, relevance_weight=1.0, preselect=n_words).fit(occurs, part.labels).selected_
    candidates = occurs[:, by_gain]
    left = (by_gain[eliminate(candidates, part.labels, size, settings.conditioning_size)] for size in sizes)
    cross = StratifiedKFold(settings.folds, shuffle=True, random_state=settings.seed)
    folds = (Division.of(part.training, part.labels, fold) for fold in cross.split(part.labels, part.labels))
    return {
        "mmr": learn_by_mmr(part, settings),  # first, as it refuses sizes above the number of words
        "all_words": learn(part, [np.arange(part.training.shape[1])])[0],
        "svm": np.array(clone(SVM).fit(part.training, part.labels).score(part.test, part.test_labels)),
        "information_gain": learn(part, (by_gain[:size] for size in sizes)),
        "koller_sahami": learn(part, left),
        "validated": np.mean([learn_by_mmr(fold, settings) for fold in folds], axis=0),
    }


def learn_by_mmr(part: Division, settings: Settings) -> FloatArray:
    """Measure the learners' accuracies for each lambda and size, shape (W, K, L)."""
    rows = []
    for weight in settings.relevance_weights:
        selector = MMRFeatureSelection(max(settings.sizes), relevance_weight=weight, preselect=settings.preselect)
        chosen = selector.fit(part.training > 0, part.labels).selected_  # smaller selections are its prefixes
        rows.append(learn(part, (chosen[:size] for size in settings.sizes)))
    return np.array(rows)


def learn(part: Division, selections: Iterable[IntArray]) -> FloatArray:
    """Measure the learners' accuracies on each selection of words, shape (selections, L)."""
    rows = []
    for words in selections:
        training, test = part.training[:, words], part.test[:, words]
        fitted = (clone(learner).fit(training, part.labels) for learner in LEARNERS.values())
        rows.append([learner.score(test, part.test_labels) for learner in fitted])
    return np.array(rows)


STUDY = Study(Settings, open_texts, run)
