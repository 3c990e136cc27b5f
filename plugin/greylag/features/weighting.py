"""Weightings: the contribution of a clique that occurs tf times in a document, or first at some position.

A weighting is ``absent_clique(c) + absent_document(d) + gain(tf, c, d)``, where the gain is 0 at tf = 0, so that only
documents in which the clique occurs need a visit. To add one, write its class, enter it in `WEIGHTINGS`, and give its
gain in `greylag.features.gains.gain`, which the compiled loop over documents calls. A weighting by position is given
the position of the first match, counted from 1, as tf.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from greylag.base import FloatArray, IntArray, ParameterError

if TYPE_CHECKING:
    from greylag.index import PositionalIndex

Profile = Literal["indri", "galago", "inquery"]
Idf = Literal["lucene", "robertson"]

MAX_CLIQUE = 10


@dataclass(frozen=True)
class FeatureParameters:
    """The parameters of features.

    Parameters
    ----------
    mu : float > 0, default 1000
        Dirichlet prior of LM, in tokens.
    k1 : float >= 0, default 0.9
        Term-frequency saturation of BM25.
    b : float in [0, 1], default 0.4
        Length normalisation of BM25.
    idf : "lucene" or "robertson", default "lucene"
        "lucene" is log(1 + (N - df + 0.5) / (df + 0.5)). "robertson" is log((N - df + 0.5) / (df + 0.5)), of
        Robertson and Sparck Jones, which is negative for df > N / 2.
    profile : "indri", "galago" or "inquery", default "indri"
        How windows are matched.

        - "indri": an unordered window U-N has N tokens for each term of the clique, and matches must not overlap.
        - "galago": windows are as wide, and all matches count.
        - "inquery": U-N has N tokens, whatever the size of the clique, and matches must not overlap. This is what
          Metzler (2007, section 3.3) says literally: N is the maximum size of the window. U-1 then never matches.
    max_clique : int in [2, 10], default 3
        The largest clique, in terms. The number of FD's cliques grows as 2^n.
    fb_docs : int >= 1, default 10
        Feedback documents: the relevance model of the clique set `expansion` is estimated on the top `fb_docs`.
    fb_terms : int >= 1, default 30
        The number of expansion terms.
    """

    _: KW_ONLY
    mu: float = 1000.0
    k1: float = 0.9
    b: float = 0.4
    idf: Idf = "lucene"
    profile: Profile = "indri"
    max_clique: int = 3
    fb_docs: int = 10
    fb_terms: int = 30

    def __post_init__(self) -> None:
        number, words = (int, float), {"idf": get_args(Idf), "profile": get_args(Profile)}
        domains: tuple[tuple[str, Any, Callable[[Any], bool], str], ...] = (
            ("mu", number, lambda value: 0 < value < np.inf, "a positive number"),
            ("k1", number, lambda value: 0 <= value < np.inf, "a number >= 0"),
            ("b", number, lambda value: 0 <= value <= 1, "a number in [0, 1]"),
            *((name, str, known.__contains__, f"one of {', '.join(known)}") for name, known in words.items()),
            ("max_clique", int, lambda value: 2 <= value <= MAX_CLIQUE, f"an integer from 2 to {MAX_CLIQUE}"),
            *((name, int, lambda value: value >= 1, "an integer, at least 1") for name in ("fb_docs", "fb_terms")),
        )
        for name, kind, fits, domain in domains:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kind) or not fits(value):
                raise ParameterError(f"{name} is {value!r:.60}: it must be {domain}")

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


@dataclass(frozen=True)
class CollectionStatistics:
    """The totals of a collection: N, |C|, and the average length in tokens."""

    documents: int
    tokens: int
    average_length: float

    @classmethod
    def of(cls, index: PositionalIndex, lead: int | None = None) -> CollectionStatistics:
        """Count an index's totals, with the average length of documents, or of the first `lead` tokens of each."""
        average = index.average_length
        if lead is not None:
            lengths = index.document_lengths
            average = float(np.minimum(lengths, lead).sum() / max(1, np.count_nonzero(lengths)))
        return cls(index.n_documents, index.n_tokens, average)


@dataclass(frozen=True)
class Weighting(ABC):
    """A weighting over one collection; `code` identifies it in `gains.gain`."""

    collection: CollectionStatistics
    parameters: FeatureParameters
    code: ClassVar[int]
    # Whether tf is the first match's position, counted from 1, rather than the number of matches
    positional: ClassVar[bool] = False

    def idf(self, df: IntArray) -> FloatArray:
        """Compute the inverse document frequency by `FeatureParameters.idf`, shape of df."""
        odds = (self.collection.documents - df + 0.5) / (df + 0.5)
        return np.log1p(odds) if self.parameters.idf == "lucene" else np.log(odds)

    @abstractmethod
    def clique(self, cf: IntArray, df: IntArray) -> FloatArray:
        """Return the clique's argument of the gain, shape of cf."""

    @abstractmethod
    def document(self, lengths: IntArray) -> FloatArray:
        """Return the document's argument of the gain, shape of lengths."""

    def absent_clique(self, clique: FloatArray) -> FloatArray:
        """Return the clique's term of the value at tf = 0, from the result of `clique`, shape of cf."""
        return np.zeros(clique.shape)

    def absent_document(self, document: FloatArray) -> FloatArray:
        """Return the document's term of the value at tf = 0, from the result of `document`, shape of lengths."""
        return np.zeros(document.shape)


class Dirichlet(Weighting):
    """log[(tf + mu cf/|C|) / (|D| + mu)], with cf = 1/2 for a clique that never occurs."""

    # Absent: log(mu cf/|C|) and -log(|D| + mu). Gain: log(1 + tf / (mu cf/|C|)). Zhai & Lafferty 2004.
    code: ClassVar[int] = 0

    def clique(self, cf: IntArray, df: IntArray) -> FloatArray:
        """Compute mu cf/|C|, shape of cf."""
        background: FloatArray = np.where(cf > 0, cf, 0.5) / max(1, self.collection.tokens)
        return background * self.parameters.mu

    def document(self, lengths: IntArray) -> FloatArray:
        """Compute log(|D| + mu), shape of lengths."""
        smoothed = np.asarray(lengths + self.parameters.mu, dtype=np.float64)
        return np.log(smoothed)

    def absent_clique(self, clique: FloatArray) -> FloatArray:
        """Compute log(mu cf/|C|)."""
        return np.log(clique)

    def absent_document(self, document: FloatArray) -> FloatArray:
        """Compute -log(|D| + mu)."""
        return -document


class BM25(Weighting):
    """(k1 + 1) tf / (k1 ((1 - b) + b |D|/avgdl) + tf) x idf; 0 if absent (Robertson et al. 1994)."""

    code: ClassVar[int] = 1

    def clique(self, cf: IntArray, df: IntArray) -> FloatArray:
        """Compute (k1 + 1) idf, shape of df."""
        return (self.parameters.k1 + 1.0) * self.idf(df)

    def document(self, lengths: IntArray) -> FloatArray:
        """Compute k1 ((1 - b) + b |D|/avgdl), shape of lengths."""
        p = self.parameters
        relative: FloatArray = lengths / max(1e-9, self.collection.average_length)
        return p.k1 * ((1.0 - p.b) + p.b * relative)


class Earliness(Weighting):
    """Idf / (1 + p / 10), where p is the position of the clique's first match, from 0; 0 if absent."""

    # Positions count stop words. Texts begin with their subject, in a title or a first sentence.
    code: ClassVar[int] = 2
    positional: ClassVar[bool] = True

    def clique(self, cf: IntArray, df: IntArray) -> FloatArray:
        """Compute idf, shape of df."""
        return self.idf(df)

    def document(self, lengths: IntArray) -> FloatArray:
        """Return zeros, shape of lengths: nothing depends on the document."""
        return np.zeros(len(lengths))


WEIGHTINGS: dict[str, type[Weighting]] = {"LM": Dirichlet, "BM25": BM25, "early": Earliness}
"""Every weighting by its name in a `FeatureSpec`."""
