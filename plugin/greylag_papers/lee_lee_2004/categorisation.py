"""Feature selection for text categorisation: the study of Lee & Lee (2004), on any folder of labelled text.

Learners see the words that a selector chooses on a split's training documents, and are scored by their accuracy on its
test documents. `labelled_text` reads documents, `text_classifiers` has the learners, `accuracies` what follows from
their accuracies, and `categorisation_report` shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field

from greylag.errors import CollectionError
from greylag.experiments import config, report
from greylag.experiments.study import Result, Say
from greylag.ranking import FloatArray, IntArray
from greylag_papers.labelled_text import Documents, LabelledTexts, read_labelled_texts
from greylag_papers.lee_lee_2004.accuracies import Accuracies
from greylag_papers.lee_lee_2004.tables import sections, summary

WORD = r"[^\W\d_]+"  # letters in a row; no word is stopped or stemmed
Split = tuple[IntArray, IntArray]
"""The numbers of training and of test documents."""
Ascending = AfterValidator(lambda weights: tuple(sorted(weights)))


class Settings(config.Experiment):
    """Documents, selectors and splits.

    Parameters
    ----------
    documents : where they are, and which of their fields count.
    sizes : numbers of words to select.
    preselect : MMR and Koller & Sahami's method choose among so many words of highest information gain.
    relevance_weights : values of MMR's lambda to choose from for each learner and size.
    conditioning_size : K of Koller & Sahami's blankets.
    splits : how many random splits, each with the labels' shares of documents; or "given" for the files' own.
    test_share : the part of the documents that a random split tests on.
    folds : of the cross-validation on each split's training documents that chooses lambda.
    seed : of the random splits and folds.
    """

    documents: Documents
    sizes: Annotated[tuple[config.Positive, ...], Field(min_length=1)] = (25, 50, 100, 200, 500, 1000)
    preselect: config.Positive = 1000
    relevance_weights: Annotated[tuple[float, ...], Field(min_length=1), Ascending] = tuple(i / 10 for i in range(11))
    conditioning_size: Annotated[int, Field(ge=0)] = 2
    splits: config.Positive | Literal["given"] = 10
    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    folds: Annotated[int, Field(ge=2)] = 5
    seed: int = 0


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    report.check_dependencies()
    texts = read_labelled_texts(settings.path(settings.documents.path), settings.documents)
    X, y = count_words(texts)
    labels = dict(sorted(Counter(texts.labels).items()))
    say(f"documents: {X.shape[0]} with {X.shape[1]} different words: {_listed(labels)}")
    say(f"left out: {_listed(texts.left_out) or 'none'}")
    splits = split_documents(texts, y, settings)
    accuracies = measure(X, y, splits, settings, n_jobs=n_jobs)
    counts = {
        "different words": X.shape[1],
        **{f"documents: {label}": n for label, n in labels.items()},
        **{f"left out: {reason}": n for reason, n in texts.left_out.items()},
    }
    origin = report.provenance(settings, **{"scikit-learn": version("scikit-learn")})
    results = {**origin, "documents": counts, "accuracies": accuracies.to_dict()}
    report.write_results(out, results)
    parts = sections(accuracies, counts)
    report.write_report(out / "report.html", f"Feature selection: {settings.name}", parts, origin)
    return Result(accuracies.means(), f"{summary(accuracies)}\nThe report is {out / 'report.html'}\n")


def count_words(texts: LabelledTexts) -> tuple[Any, IntArray]:
    """How often each document has each word, sparse, shape (N, V), words ascending; and each document's label's number.

    A word is letters in a row, in lower case; labels are numbered in ascending order.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    X = CountVectorizer(token_pattern=WORD, dtype=np.float64).fit_transform(texts.texts)
    return X, np.unique(texts.labels, return_inverse=True)[1]


def split_documents(texts: LabelledTexts, y: IntArray, settings: Settings) -> list[Split]:
    """The splits that the settings ask for.

    Raises
    ------
    CollectionError
        Documents that cannot be split so, or a label with fewer training documents than folds.
    """
    from sklearn.model_selection import StratifiedShuffleSplit

    if settings.splits == "given":
        given = np.array(texts.splits)
        splits = [(np.flatnonzero(given == "train"), np.flatnonzero(given == "test"))]
        if not len(splits[0][1]):
            raise CollectionError(f"no document's {settings.documents.split!r} is 'test'; give a number of splits")
    else:
        drawn = StratifiedShuffleSplit(settings.splits, test_size=settings.test_share, random_state=settings.seed)
        try:
            splits = list(drawn.split(y, y))
        except ValueError as error:
            raise CollectionError(f"the documents cannot be split at random: {error}") from None
    for train, _ in splits:
        sizes = np.bincount(y[train], minlength=y.max() + 1)
        if sizes.min() < settings.folds:
            label = sorted(set(texts.labels))[sizes.argmin()]
            reason = f"has {sizes.min()} training documents, fewer than the {settings.folds} folds"
            raise CollectionError(f"label {label!r} {reason}: take fewer folds, or leave it out of documents.labels")
    return splits


class Part(NamedTuple):
    """Documents to learn from, and others to be scored on: word counts (documents, V), and numbers of labels."""

    training: Any
    labels: IntArray
    test: Any
    test_labels: IntArray

    @classmethod
    def of(cls, X: Any, y: IntArray, split: Split) -> Part:
        """A split's documents, with the words that are in its training documents."""
        train, test = split
        met = X[train].count_nonzero(axis=0) > 0
        return cls(X[train][:, met], y[train], X[test][:, met], y[test])


def measure(X: Any, y: IntArray, splits: list[Split], settings: Settings, *, n_jobs: int = 1) -> Accuracies:
    """All accuracies, split by split, in `n_jobs` processes; the result is the same whatever their number."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    from greylag_papers.lee_lee_2004.text_classifiers import LEARNERS

    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(measure_split)(Part.of(X, y, split), settings) for split in splits
    )
    rows = list(tqdm(found, total=len(splits), desc="splits", unit="split", disable=None))
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    ratio = len(splits[0][1]) / len(splits[0][0])
    return Accuracies(tuple(LEARNERS), settings.sizes, settings.relevance_weights, **arrays, test_ratio=ratio)


def measure_split(part: Part, settings: Settings) -> dict[str, FloatArray]:
    """What `Accuracies` has of one split."""
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from greylag.selection import InformationGainSelection, KollerSahamiSelection
    from greylag_papers.lee_lee_2004.text_classifiers import SVM

    occurs, sizes, K = part.training > 0, settings.sizes, settings.conditioning_size
    by_gain = InformationGainSelection(max(sizes)).fit(occurs, part.labels).selected_
    left = (
        KollerSahamiSelection(size, conditioning_size=K, preselect=settings.preselect)
        .fit(occurs, part.labels)
        .selected_
        for size in sizes
    )
    cross = StratifiedKFold(settings.folds, shuffle=True, random_state=settings.seed)
    folds = (Part.of(part.training, part.labels, fold) for fold in cross.split(part.labels, part.labels))
    return {
        "all_words": learn(part, [np.arange(part.training.shape[1])])[0],
        "svm": np.array(clone(SVM).fit(part.training, part.labels).score(part.test, part.test_labels)),
        "information_gain": learn(part, (by_gain[:size] for size in sizes)),
        "koller_sahami": learn(part, left),
        "mmr": learn_by_mmr(part, settings),
        "validated": np.mean([learn_by_mmr(fold, settings) for fold in folds], axis=0),
    }


def learn_by_mmr(part: Part, settings: Settings) -> FloatArray:
    """The learners' accuracies for each lambda and size, shape (W, K, L)."""
    from greylag.selection import MMRFeatureSelection

    rows = []
    for weight in settings.relevance_weights:
        selector = MMRFeatureSelection(max(settings.sizes), relevance_weight=weight, preselect=settings.preselect)
        chosen = selector.fit(part.training > 0, part.labels).selected_  # the first so many are the choice of so many
        rows.append(learn(part, (chosen[:size] for size in settings.sizes)))
    return np.array(rows)


def learn(part: Part, selections: Iterable[IntArray]) -> FloatArray:
    """Each learner's accuracy with each selection of words, shape (selections, L)."""
    from sklearn.base import clone

    from greylag_papers.lee_lee_2004.text_classifiers import LEARNERS

    rows = []
    for words in selections:
        training, test = part.training[:, words], part.test[:, words]
        learnt = (clone(learner).fit(training, part.labels) for learner in LEARNERS.values())
        rows.append([learner.score(test, part.test_labels) for learner in learnt])
    return np.array(rows)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
