"""Evidence that is not counted in the index: priors, the incoming ranking, other runs, and vectors."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from greylag.base import (
    BoolArray,
    Faults,
    FloatArray,
    FormatError,
    IntArray,
    ParameterError,
    Ranking,
    parse_number,
    read_rows,
    report_missing,
)
from greylag.evaluation import read_run
from greylag.features.feature import Evidence, Feature, Values, scores_of, split_method
from greylag.index import ArrayVectors, RowCache, array_of, cosines, open_vectors, unit_rows

if TYPE_CHECKING:
    from greylag.index import PositionalIndex

MAX_DF_SHARE = 0.1  # terms in a larger share of the documents are not informative; Anserini leaves them out of RM3, too
_PRIOR = re.compile(
    r"prior:(?P<file>.+?)(?::(?P<scale>raw|log))?(?::(?P<default>[-+]?\d*\.?\d+(?:e[-+]?\d+)?))?", re.ASCII
)


@dataclass(frozen=True, order=True)
class Prior(Evidence):
    """A query-independent feature of a document, such as PageRank, a spam score or an age.

    In the Markov random field it is a function of the clique that consists of the document alone. It is spelt
    ``prior:FILE``, optionally followed by ``:log`` and a default: ``prior:pagerank.tsv:log:1e-6``.

    Parameters
    ----------
    file : str
        A file with a docid and a number in each line. Documents outside the index are ignored.
    scale : "raw" or "log", default "raw"
        Whether to take the value itself or its natural logarithm.
    default : float, optional
        The value, before the logarithm, of documents that the file lacks. By default, the least value in the file.
    """

    form: ClassVar[str] = "prior:{file}[:log][:{default}]"
    file_fields: ClassVar[tuple[str, ...]] = ("file",)
    uses_ranking: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    file: str
    scale: Literal["raw", "log"] = "raw"
    default: float | None = None

    def __post_init__(self) -> None:
        if self.default is not None and not self._fits(self.default):
            raise ParameterError(f"feature {self}: the default must be {self._domain}")

    def __str__(self) -> str:
        ambiguous = split_method(self.file)[1] is not None  # a file whose name ends like a normalisation
        scale = ":log" if self.scale == "log" else ":raw" if ambiguous else ""
        return f"prior:{self.file}{scale}" + ("" if self.default is None else f":{self.default!r}")

    @classmethod
    def parse(cls, text: str) -> Prior:
        """Parse ``prior:FILE[:raw|:log][:DEFAULT]``; the inverse of ``str``."""
        match = _PRIOR.fullmatch(text)
        if match is None:
            raise ParameterError(f"feature {text!r:.200} is not of the form prior:FILE[:log][:DEFAULT]")
        default = None if match["default"] is None else float(match["default"])
        return cls(match["file"], cast(Literal["raw", "log"], match["scale"] or "raw"), default)

    def bind(self, index: PositionalIndex) -> Values:
        """Read the file; `FormatError` if it is not of the form, or names no document of the index."""
        by_number = self.values(index)
        return lambda ranking: by_number[index.documents(ranking.docids)]

    def values(self, index: PositionalIndex) -> FloatArray:
        """Return the feature of every document of the index, shape (N,)."""
        by_docid = self._read()
        numbers = index.documents(list(by_docid))
        if (numbers < 0).all():
            first = next(iter(by_docid))
            raise FormatError(
                self.file, None, f"none of its documents is in the index ({first!r} first); check the ids"
            )
        read = np.array(list(by_docid.values()))
        values = np.full(index.n_documents, read.min() if self.default is None else self.default)
        values[numbers[numbers >= 0]] = read[numbers >= 0]
        return np.log(values) if self.scale == "log" else values

    def _read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        with Faults(self.file, lenient=None) as faults:
            for line, (docid, text) in read_rows(self.file, "docid value", faults):
                name = docid.decode()
                value = parse_number(text)
                if not self._fits(value):
                    raise FormatError(self.file, line, f"value {text.decode()!r} must be {self._domain}")
                if name in values:
                    raise FormatError(self.file, line, f"duplicate document {name!r}; keep one of its lines")
                values[name] = value
        return values

    def _fits(self, value: float) -> bool:
        return math.isfinite(value) and (self.scale == "raw" or value > 0)

    @property
    def _domain(self) -> str:
        return "a finite number" if self.scale == "raw" else "a finite number above 0 for its logarithm"


@dataclass(frozen=True)
class DocumentStatistic(Evidence):
    """A query-independent statistic of a document's indexed terms, spelt ``document:NAME``.

    Parameters
    ----------
    name : "length", "entropy" or "common"
        "length": log(1 + |D|). "entropy": - sum over t of tf/|D| log(tf/|D|). "common": the share of tokens of terms
        that more than a tenth of the documents have, which is the share of stop words where these are indexed. The last
        two are 0 for an empty document.

    References
    ----------
    Bendersky, Croft and Diao, Quality-biased ranking of web documents, WSDM 2011 (entropy and stop words).
    """

    form: ClassVar[str] = "document:{name}"
    uses_ranking: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    name: Literal["length", "entropy", "common"]

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the statistic of a ranking's documents, shape (n,)."""
        statistics = index.cache(_statistics)
        column = ("length", "entropy", "common").index(self.name)
        return lambda ranking: statistics(index.documents(ranking.docids))[:, column]


def _statistics(index: PositionalIndex) -> RowCache:
    """Make the three statistics of documents, in the order of `DocumentStatistic`."""
    common = index.document_frequencies > MAX_DF_SHARE * index.n_documents

    def compute(documents: IntArray) -> FloatArray:
        lengths = index.document_lengths[documents].astype(np.float64)
        starts, terms, tf = index.parts.entries(documents)
        rows = np.repeat(np.arange(len(documents)), np.diff(starts))
        shares = tf / lengths[rows]
        parts = -shares * np.log(shares), shares * common[terms]
        sums = (np.bincount(rows, weights=part, minlength=len(documents)) for part in parts)
        return np.column_stack([np.log1p(lengths), *sums])

    return RowCache(index.n_documents, 3, compute)


@dataclass(frozen=True)
class Score(Evidence):
    """The document's score in the ranking that is reranked, spelt ``score``."""

    form: ClassVar[str] = "score"
    needs_index: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the scores, shape (n,)."""
        return lambda ranking: ranking.scores


@dataclass(frozen=True)
class ReciprocalRank(Evidence):
    """1 / rank in the ranking that is reranked, with ranks from 1, spelt ``reciprocal-rank``."""

    form: ClassVar[str] = "reciprocal-rank"
    needs_index: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the reciprocal ranks, shape (n,)."""
        return lambda ranking: 1.0 / np.arange(1, len(ranking) + 1)


@dataclass(frozen=True)
class RunScore(Evidence):
    """The document's score in another run, such as that of a neural ranker, spelt ``run:FILE``.

    Documents that the run did not retrieve for a query have no value.

    Parameters
    ----------
    file : str
        A TREC run. A query without documents in it has no values. One warning per run counts what the file lacks.
    """

    form: ClassVar[str] = "run:{file}"
    file_fields: ClassVar[tuple[str, ...]] = ("file",)
    needs_index: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    file: str

    def __post_init__(self) -> None:
        if not self.file or split_method(self.file)[1]:
            raise ParameterError(f"feature {self}: {self.file!r} cannot name a run here; rename the file")

    def bind(self, index: PositionalIndex) -> Values:
        """Read the run; `FormatError` if the file is not one."""
        run = read_run(self.file)

        def values(ranking: Ranking) -> FloatArray:
            if ranking.qid not in run:
                return _no_values(self, ranking, self.file)
            scores = scores_of(run[ranking.qid], ranking.docids)
            _report_missing(self, ranking, ~np.isnan(scores), self.file)
            return scores

        return values


@dataclass(frozen=True)
class VectorCosine(Evidence):
    """The cosine of the query's and the document's vectors, spelt ``vectors:(documents=FILE,queries=FILE)``.

    cos(q, d) = q'd / (|q| |d|), and 0 if one of the vectors is zero. A document without a vector has no value; nor has
    any document of a query without one.

    Parameters
    ----------
    documents, queries : str
        Files of vectors by docid and by qid, as `greylag.index.read_vectors` reads them.

    Examples
    --------
    >>> str(VectorCosine("passages.npz", "topics.jsonl"))
    'vectors:(documents=passages.npz,queries=topics.jsonl)'
    """

    form: ClassVar[str] = "vectors:(documents={documents},queries={queries})"
    file_fields: ClassVar[tuple[str, ...]] = ("documents", "queries")
    needs_index: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    documents: str
    queries: str

    def __post_init__(self) -> None:
        for file in (self.documents, self.queries):
            if not re.fullmatch(r"[^,()\s]+", file):
                raise ParameterError(f"feature {self}: {file!r} cannot name a file of vectors here; rename the file")

    def files(self) -> list[str]:
        """Return the names of both files, and of those that have the vectors and the ids of an array alone."""
        named = [*super().files()]
        with suppress(FormatError):  # which reading the vectors says
            named += [str(file) for name in (self.documents, self.queries) for file in array_of(name) or ()]
        return [*dict.fromkeys(named)]

    def bind(self, index: PositionalIndex) -> Values:
        """Read the vectors; `FormatError` if a file has none, or the two have vectors of different lengths."""
        return self.bind_beside(index, {})

    def bind_beside(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Bind, and share files of vectors."""
        documents, queries = (_vectors(file, shared) for file in (self.documents, self.queries))
        size, other = documents.array.shape[1], queries.array.shape[1]
        if size != other:
            raise FormatError(self.queries, None, f"vectors of {other} coordinates, but of {size} in {self.documents}")

        def values(ranking: Ranking) -> FloatArray:
            known = documents.knows(ranking.docids)
            _report_missing(self, ranking, known, self.documents)
            if not queries.knows([ranking.qid]).all():
                return _no_values(self, ranking, self.queries)
            out = np.full(len(ranking), np.nan)
            out[known] = cosines(documents.documents(ranking.select(known).docids), queries.documents([ranking.qid]))
            return out

        return values


@dataclass(frozen=True)
class LatentCosine(Evidence):
    """The cosine of the query's and the document's `LatentVectors`, spelt ``latent``; 0 if one of them is zero."""

    form: ClassVar[str] = "latent"
    uses_ranking: ClassVar[bool] = False

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the cosines of a ranking's documents, shape (n,)."""
        from greylag.index import LatentVectors  # slow to import

        vectors, units = LatentVectors(index), index.cache(_latent_units)

        def values(ranking: Ranking) -> FloatArray:
            query = unit_rows(vectors.query(ranking.qid, ranking.query))
            return np.asarray((units(index.documents(ranking.docids)) * query).sum(axis=1))

        return values


def _latent_units(index: PositionalIndex) -> RowCache:
    """Make the documents' latent vectors of unit length."""
    from greylag.index import LatentVectors  # slow to import

    vectors = LatentVectors(index)
    width = vectors.query("", "").shape[1]
    return RowCache(index.n_documents, width, lambda documents: unit_rows(vectors.numbered(documents)))


def _vectors(file: str, shared: dict[str, Any]) -> ArrayVectors:
    """Return the vectors of a file, which the features of an extractor share."""
    key = f"vectors:{file}"
    if key not in shared:
        shared[key] = open_vectors(file)
    return cast(ArrayVectors, shared[key])


def _report_missing(feature: Feature, ranking: Ranking, known: BoolArray, file: str) -> None:
    """Report the documents of a ranking that a file lacks."""
    missing = [docid for docid, has in zip(ranking.docids, known, strict=True) if not has]
    consequence = f"feature {feature} gives them its least value"
    report_missing(consequence, ranking.qid, missing, len(ranking), what=f"not in {file}")


def _no_values(feature: Feature, ranking: Ranking, file: str) -> FloatArray:
    """Return NaN for each document, and report that a file lacks the query."""
    consequence = f"feature {feature} is the same for all documents"
    report_missing(consequence, ranking.qid, ranking.docids, len(ranking), what=f"of queries not in {file}")
    return np.full(len(ranking), np.nan)
