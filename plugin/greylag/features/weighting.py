"""Weightings: what a clique that occurs tf times in a document adds to a feature.

A weighting is written as ``absent(clique) + absent(document) + gain(tf; clique, document)`` with gain 0 where tf = 0,
so that only documents in which the clique occurs need visiting. Adding one means a class and an entry in `WEIGHTINGS`
here, and a branch in `windows.gain`, which the compiled loop over documents calls.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray

Profile = Literal["indri", "galago"]
Idf = Literal["lucene", "robertson"]


@dataclass(frozen=True)
class FeatureParameters:
    """The numbers that features depend on, besides the collection.

    Parameters
    ----------
    mu : Dirichlet prior, > 0, in tokens.
    k1 : BM25's term-frequency saturation, >= 0.
    b : BM25's length normalisation, in [0, 1].
    idf : "lucene", log(1 + (N - df + 0.5) / (df + 0.5)), or "robertson", log((N - df + 0.5) / (df + 0.5)), as in
        Metzler (2007), which is negative for df > N / 2.
    profile : how windows are counted: "indri", without overlaps, or "galago", every match.
    max_clique : largest clique, in terms, >= 2: the cliques of FD grow as 2^n.
    fb_docs, fb_terms : for the clique set `expansion`: how many of the ranking's first documents make up the relevance
        model, and how many terms are taken from it; both >= 1.
    """

    mu: float = 1000.0
    k1: float = 0.9
    b: float = 0.4
    idf: Idf = "lucene"
    profile: Profile = "indri"
    max_clique: int = 3
    fb_docs: int = 10
    fb_terms: int = 30

    def __post_init__(self) -> None:
        for name, fits, domain in (
            ("mu", 0 < self.mu < np.inf, "a positive number"),
            ("k1", 0 <= self.k1 < np.inf, "a number >= 0"),
            ("b", 0 <= self.b <= 1, "in [0, 1]"),
            ("idf", self.idf in get_args(Idf), f"one of {', '.join(get_args(Idf))}"),
            ("profile", self.profile in get_args(Profile), f"one of {', '.join(get_args(Profile))}"),
            ("max_clique", self.max_clique >= 2, "at least 2"),
            ("fb_docs", self.fb_docs >= 1, "at least 1"),
            ("fb_terms", self.fb_terms >= 1, "at least 1"),
        ):
            if not fits:
                raise ParameterError(f"{name} is {getattr(self, name)!r}: it has to be {domain}")

    def as_dict(self) -> dict[str, Any]:
        """The parameters by name."""
        return asdict(self)


@dataclass(frozen=True)
class CollectionStatistics:
    """N documents, |C| tokens, and the average length of a document in tokens."""

    documents: int
    tokens: int
    average_length: float


class Weighting(Protocol):
    """A weighting over one collection; `code` is its number in `windows.gain`."""

    code: ClassVar[int]

    def __init__(self, collection: CollectionStatistics, parameters: FeatureParameters) -> None: ...

    def clique(self, cf: IntArray, df: IntArray) -> FloatArray:
        """The clique's part of `gain`, shape of cf."""

    def document(self, lengths: IntArray) -> FloatArray:
        """The document's part of `gain`, shape of lengths."""

    def absent_clique(self, clique: FloatArray) -> FloatArray:
        """The clique's part of the value at tf = 0, from `clique`'s result and of its shape."""

    def absent_document(self, document: FloatArray) -> FloatArray:
        """The document's part of the value at tf = 0, from `document`'s result and of its shape."""


@dataclass(frozen=True)
class Dirichlet:
    """log[(tf + mu cf/|C|) / (|D| + mu)], cf taken as 1/2 where it is 0 (Zhai & Lafferty 2004; Metzler 2007, 3.3).

    absent: log(mu cf/|C|) and -log(|D| + mu); gain = log(1 + tf / (mu cf/|C|)).
    """

    collection: CollectionStatistics
    parameters: FeatureParameters
    code: ClassVar[int] = 0

    def clique(self, cf: IntArray, df: IntArray) -> FloatArray:
        """The product mu cf/|C|, shape of cf."""
        background: FloatArray = np.where(cf > 0, cf, 0.5) / max(1, self.collection.tokens)
        return background * self.parameters.mu

    def document(self, lengths: IntArray) -> FloatArray:
        """log(|D| + mu), shape of lengths."""
        smoothed = np.asarray(lengths + self.parameters.mu, dtype=np.float64)
        return np.log(smoothed)

    def absent_clique(self, clique: FloatArray) -> FloatArray:
        """log(mu cf/|C|)."""
        return np.log(clique)

    def absent_document(self, document: FloatArray) -> FloatArray:
        """-log(|D| + mu)."""
        return -document


@dataclass(frozen=True)
class BM25:
    """(k1 + 1) tf / (k1 ((1 - b) + b |D|/avgdl) + tf) x idf (Robertson et al. 1994; Metzler 2007, 3.3); absent: 0."""

    collection: CollectionStatistics
    parameters: FeatureParameters
    code: ClassVar[int] = 1

    def clique(self, cf: IntArray, df: IntArray) -> FloatArray:
        """(k1 + 1) idf, shape of df."""
        odds = (self.collection.documents - df + 0.5) / (df + 0.5)
        idf = np.log1p(odds) if self.parameters.idf == "lucene" else np.log(odds)
        return (self.parameters.k1 + 1.0) * idf

    def document(self, lengths: IntArray) -> FloatArray:
        """k1 ((1 - b) + b |D|/avgdl), shape of lengths."""
        p = self.parameters
        relative: FloatArray = lengths / max(1e-9, self.collection.average_length)
        return p.k1 * ((1.0 - p.b) + p.b * relative)

    def absent_clique(self, clique: FloatArray) -> FloatArray:
        """0."""
        return np.zeros_like(clique)

    def absent_document(self, document: FloatArray) -> FloatArray:
        """0."""
        return np.zeros_like(document)


WEIGHTINGS: dict[str, type[Weighting]] = {"LM": Dirichlet, "BM25": BM25}
