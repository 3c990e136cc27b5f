"""The cosine of given vectors as a feature: ``vectors:(documents=FILE,queries=FILE)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from greylag import missing_documents
from greylag.errors import FormatError, ParameterError
from greylag.features.feature import Evidence, Values
from greylag.ranking import FloatArray, Ranking
from greylag.vectors.dense import ArrayVectors
from greylag.vectors.protocol import unit_rows
from greylag.vectors.vector_files import read_vectors

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

_SPELLING = re.compile(r"vectors:\(documents=(?P<documents>[^,()]+),queries=(?P<queries>[^,()]+)\)")


@dataclass(frozen=True)
class VectorCosine(Evidence):
    """The cosine of the query's and the document's vectors, spelt ``vectors:(documents=FILE,queries=FILE)``.

    cos(q, d) = q'd / (|q| |d|), and 0 if one of the vectors is zero. A document without a vector has no value; nor has
    any document of a query without one.

    Parameters
    ----------
    documents, queries : str
        Files of vectors by docid and by qid, as `greylag.vectors.read_vectors` reads them.

    Raises
    ------
    ParameterError
        If the name of a file is empty, or has white space or one of ``,()``.

    Examples
    --------
    >>> str(VectorCosine("passages.npz", "topics.jsonl"))
    'vectors:(documents=passages.npz,queries=topics.jsonl)'
    """

    needs_index: ClassVar[bool] = False

    documents: str
    queries: str

    def __post_init__(self) -> None:
        for file in (self.documents, self.queries):
            if not re.fullmatch(r"[^,()\s]+", file):
                raise ParameterError(f"feature {self}: {file!r} cannot name a file of vectors here; rename the file")

    def __str__(self) -> str:
        return f"vectors:(documents={self.documents},queries={self.queries})"

    @classmethod
    def parse(cls, text: str) -> VectorCosine:
        """Parse ``vectors:(documents=FILE,queries=FILE)``; the inverse of ``str``."""
        match = _SPELLING.fullmatch(text)
        if match is None:
            raise ParameterError(f"feature {text!r:.200} is not of the form vectors:(documents=FILE,queries=FILE)")
        return cls(match["documents"].strip(), match["queries"].strip())

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Read the vectors.

        Raises
        ------
        FormatError
            If a file does not hold vectors, or the two hold vectors of different lengths.
        """
        documents, queries = (_read(file, shared) for file in (self.documents, self.queries))
        size, other = documents.array.shape[1], queries.array.shape[1]
        if size != other:
            raise FormatError(self.queries, None, f"vectors of {other} coordinates, but of {size} in {self.documents}")

        def values(ranking: Ranking) -> FloatArray:
            known = documents.knows(ranking.docids)
            lost = [docid for docid, has in zip(ranking.docids, known, strict=True) if not has]
            least = f"feature {self} gives them its least value"
            missing_documents.report(least, ranking.qid, lost, len(ranking), what=f"not in {self.documents}")
            out = np.full(len(ranking), np.nan)
            if not queries.knows([ranking.qid]).all():
                same = f"feature {self} is the same for all documents"
                missing_documents.report(
                    same, ranking.qid, ranking.docids, len(ranking), what=f"of queries not in {self.queries}"
                )
                return out
            kept = [docid for docid, has in zip(ranking.docids, known, strict=True) if has]
            # BLAS would sum in an order that depends on the threads.
            out[known] = (unit_rows(documents.documents(kept)) * unit_rows(queries.documents([ranking.qid]))).sum(
                axis=1
            )
            return out

        return values


def _read(file: str, shared: dict[str, Any]) -> ArrayVectors:
    """The vectors of a file, which the features of an extractor share."""
    found: ArrayVectors = shared.setdefault(f"vectors:{file}", None) or ArrayVectors(*read_vectors(file))
    shared[f"vectors:{file}"] = found
    return found
