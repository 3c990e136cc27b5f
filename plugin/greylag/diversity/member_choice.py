"""Choosing a member of an ensemble for each query: what pick-best evaluation assumes that a user does.

Pick-best is an oracle. `train_chooser` learns from queries with judgements how the loss of a member's ranking depends
on what can be seen without judgements. `ChosenMember` is the stage that ranks each query by the member of the lowest
predicted loss. The queries must not be those that the ensemble was trained on, where all members are better than they
will be elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from greylag import __version__
from greylag.diversity.cssvm import CSSVM
from greylag.errors import ModelError, ParameterError
from greylag.index.positional import PositionalIndex
from greylag.model_files import check_collection, model_content, read_weight, write_model
from greylag.pipeline import Stage
from greylag.ranking import FloatArray, Ranking, unit_range

SCHEMA = 1
KIND = "greylag member chooser"
FEATURES = ("relevance", "agreement", "novelty", "vocabulary", "query similarity")
"""What is known of a member's picks without judgements; see `member_features`."""
PENALTIES = (0.1, 1.0, 10.0, 100.0, np.inf)
"""The ridge penalties that `train_chooser` chooses from; infinity ignores the features."""


def member_features(ranking: Ranking, members: Sequence[Ranking], index: PositionalIndex, k: int) -> FloatArray:
    """Describe the first k documents of each member's ranking of one query.

    Parameters
    ----------
    ranking : Ranking
        The incoming ranking.
    members : sequence of M Rankings
        Permutations of it, or of a longer ranking that begins with it.
    index : PositionalIndex
        Documents outside the index have no words.
    k : int >= 1
        The number of documents, the member's picks.

    Returns
    -------
    array, shape (M, 5)
        In the order of `FEATURES`: the mean of the picks' incoming scores, scaled to [0, 1]; the mean share of the
        picks that another member picks, too; 1 minus the mean cosine of pairs of picks; the share of the ranking's
        distinct words that the picks have; and the mean cosine of the picks and the query. Cosines are of TF-IDF
        vectors. All are in [0, 1], and 0 where undefined.
    """
    place = {docid: row for row, docid in enumerate(ranking.docids)}
    picks = [[place[docid] for docid in member.docids[: min(k, len(ranking))]] for member in members]
    scores, vectors = unit_range(ranking.scores), index.tfidf(index.documents(ranking.docids))
    terms = index.query_terms(ranking.query)
    counts = np.bincount(terms[terms >= 0], minlength=index.n_terms) * index.idf
    similarities = vectors @ (counts / max(float(np.linalg.norm(counts)), 1e-300))
    n_words = max(1, len(np.unique(vectors.indices)))
    rows = []
    for member, own in enumerate(picks):
        chosen = vectors[own]
        others = [len(set(own) & set(other)) / max(1, len(own)) for m, other in enumerate(picks) if m != member]
        pairs = chosen @ chosen.T
        n_pairs = len(own) * (len(own) - 1)
        rows.append(
            (
                scores[own].mean() if own else 0.0,
                np.mean(others) if others else 0.0,
                1.0 - (pairs.sum() - pairs.diagonal().sum()) / n_pairs if n_pairs else 0.0,
                len(np.unique(chosen.indices)) / n_words,
                similarities[own].mean() if own else 0.0,
            )
        )
    return np.array(rows)


@dataclass(frozen=True)
class MemberChooser:
    """Predicts the losses of an ensemble's members for a query, up to a constant.

    The prediction is the member's mean loss on training queries, plus the weighted sum of the differences between its
    features and the mean features of the members.

    Parameters
    ----------
    mean_losses : tuple of M floats
    weights : tuple of float
        One for each of `FEATURES`.
    k : int >= 1
        The number of picks that the features describe.
    penalty : float > 0
        The chosen ridge penalty; for infinity, all weights are 0.
    fingerprint : str, default ""
        The fingerprint of the collection.
    provenance : mapping, default empty

    Raises
    ------
    ModelError
        If there is no member, if `weights` does not match `FEATURES`, or if a number is outside its domain.
    """

    mean_losses: tuple[float, ...]
    weights: tuple[float, ...]
    k: int
    penalty: float
    fingerprint: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.mean_losses or len(self.weights) != len(FEATURES):
            raise ModelError(f"a chooser needs members and {len(FEATURES)} weights, not {len(self.weights)}")
        if not np.isfinite([*self.mean_losses, *self.weights]).all() or self.k < 1 or not self.penalty > 0:
            raise ModelError("losses and weights of a chooser must be finite, k at least 1, and the penalty above 0")

    def predict(self, features: FloatArray) -> FloatArray:
        """The predicted losses, shape (M,), from `member_features` of shape (M, 5)."""
        if features.shape != (len(self.mean_losses), len(FEATURES)):
            raise ParameterError(f"features of shape {features.shape} for {len(self.mean_losses)} members")
        return np.asarray(self.mean_losses + (_centred(features) * self.weights).sum(axis=1), dtype=np.float64)

    def choose(self, features: FloatArray) -> int:
        """The member of the lowest predicted loss; the first if several are equal to 12 decimals."""
        return int(np.argmin(np.round(self.predict(features), 12)))

    def save(self, path: str | Path) -> None:
        """Write the chooser as JSON, atomically and deterministically."""
        content = {
            "mean_losses": list(self.mean_losses),
            "weights": dict(zip(FEATURES, self.weights, strict=True)),
            "k": self.k,
            "penalty": self.penalty if np.isfinite(self.penalty) else None,
            "parameters": {},
            "fingerprint": self.fingerprint,
            "provenance": dict(self.provenance),
        }
        write_model(path, KIND, SCHEMA, content)

    @classmethod
    def load(cls, path: str | Path) -> MemberChooser:
        """Read a chooser written by `save`.

        Raises
        ------
        ModelError
            If the file is not a chooser, if its schema is not supported, or if a value is outside its domain.
        """
        with model_content(path, KIND, SCHEMA, "train_chooser", k=int, mean_losses=list, weights=dict) as content:
            if tuple(content["weights"]) != FEATURES:
                raise ModelError(f"the weights must be those of {', '.join(FEATURES)}")
            penalty = content["penalty"]
            return cls(
                mean_losses=tuple(map(read_weight, content["mean_losses"])),
                weights=tuple(map(read_weight, content["weights"].values())),
                k=content["k"],
                penalty=np.inf if penalty is None else read_weight(penalty),
                fingerprint=content["fingerprint"],
                provenance=content["provenance"],
            )


def train_chooser(
    features: FloatArray, losses: FloatArray, *, k: int, fingerprint: str = "", queries: Sequence[str] = ()
) -> MemberChooser:
    """Learn to choose among M members from n queries that the members were not trained on.

    Weights are those of a ridge regression, of the differences between members in loss on those in the features. The
    penalty is relative to the mean square of each feature; of `PENALTIES`, it is the one with the lowest loss of the
    chosen members on queries that were left out one by one. Ties go to the largest, and so to the best member on
    average.

    Parameters
    ----------
    features : array, shape (n, M, 5)
        `member_features` of each query.
    losses : array, shape (n, M)
        Finite; lower is better. Negate a measure that is not a loss.
    k : int >= 1
        The number of picks that the features describe.
    fingerprint : str, default ""
        The fingerprint of the collection; "" fits any collection.
    queries : sequence of str, default ()
        The qids, for the provenance.

    Raises
    ------
    ParameterError
        If there are fewer than two queries, if shapes do not match, or if a number is not finite.
    """
    if losses.ndim != 2 or features.shape != (*losses.shape, len(FEATURES)) or len(losses) < 2 or not losses.shape[1]:
        raise ParameterError(
            f"features of shape {features.shape} and losses of shape {losses.shape}: there must be at least two "
            f"queries, and {len(FEATURES)} features for each loss"
        )
    if not (np.isfinite(features).all() and np.isfinite(losses).all()):
        raise ParameterError("features and losses must be finite")

    def left_out(penalty: float) -> float:
        chosen = []
        for query in range(len(losses)):
            others = np.arange(len(losses)) != query
            fitted = MemberChooser(*_fit(features[others], losses[others], penalty), k=k, penalty=penalty)
            chosen.append(losses[query, fitted.choose(features[query])])
        return round(float(np.mean(chosen)), 12)

    found = {penalty: left_out(penalty) for penalty in sorted(PENALTIES, reverse=True)}
    penalty = min(found, key=found.__getitem__)
    provenance = {"greylag": __version__, "queries": list(queries), "left_out_loss": found[penalty]}
    return MemberChooser(*_fit(features, losses, penalty), k, penalty, fingerprint, provenance)


def _fit(features: FloatArray, losses: FloatArray, penalty: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean losses, and the weights of the features."""
    means = losses.mean(axis=0)
    if np.isinf(penalty):
        return tuple(means.tolist()), (0.0,) * len(FEATURES)
    X = _centred(features).reshape(-1, len(FEATURES))
    y = (losses - losses.mean(axis=1, keepdims=True) - (means - means.mean())).ravel()
    scales = np.sqrt(np.square(X).mean(axis=0))
    scales[scales == 0] = 1.0
    Z = X / scales
    gram, right = np.einsum("ni,nj->ij", Z, Z), np.einsum("ni,n->i", Z, y)
    weights = np.linalg.solve(gram + penalty * np.eye(len(FEATURES)), right) / scales
    return tuple(means.tolist()), tuple(weights.tolist())


def _centred(features: FloatArray) -> FloatArray:
    """The features minus their means over the members of a query."""
    centred: FloatArray = features - features.mean(axis=-2, keepdims=True)
    return centred


@dataclass(frozen=True)
class ChosenMember(Stage):
    """Ranks each query by one member of an ensemble, the one of the lowest predicted loss.

    Parameters
    ----------
    ensemble : CSSVM
    chooser : MemberChooser

    Raises
    ------
    ModelError
        If ensemble and chooser have different numbers of members, or if the chooser was trained on another collection
        and the ensemble does not allow a transfer.
    """

    ensemble: CSSVM
    chooser: MemberChooser

    def __post_init__(self) -> None:
        n_members, expected = len(self.ensemble.model.weights), len(self.chooser.mean_losses)
        if n_members != expected:
            raise ModelError(f"the chooser is for {expected} members, but the ensemble has {n_members}")
        check_collection(self.chooser.fingerprint, self.ensemble.index, transfer=self.ensemble.transfer)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query by the chosen member."""
        members = self.ensemble.member_rankings(ranking)
        candidates = ranking.head(self.ensemble.depth)
        return members[self.chooser.choose(member_features(candidates, members, self.ensemble.index, self.chooser.k))]
