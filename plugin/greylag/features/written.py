"""Words as they are written: how much of the query a document covers by unstemmed words, or by n-grams of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from greylag.base import CollectionError
from greylag.features.feature import Evidence, Values
from greylag.index import Unit

if TYPE_CHECKING:
    from greylag.index import PositionalIndex


@dataclass(frozen=True)
class WrittenForm(Evidence):
    """The share of the query's idf that the document covers by words as they are written, spelt ``written:UNIT``."""

    # sum of idf(u) over the units u of the query that the document has / sum over all units of the query, with idf(u) =
    # log(1 + (N - df + 0.5) / (df + 0.5)); 0 if the query has no word. Words are in lower case, not stemmed, and stop
    # words are among them. Characters are n-grams of 3 to 5 of words with "_" at both ends, such as _he and eat_.
    form: ClassVar[str] = "written:{unit}"
    uses_ranking: ClassVar[bool] = False

    unit: Unit

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the shares of a ranking's documents, shape (n,)."""
        words = index.words
        if words is None:
            raise CollectionError(
                f"feature {self}: the index does not store its texts: build it again by greylag index, without "
                "--no-texts, or leave the feature out"
            )

        return lambda ranking: words.coverage(ranking.query, self.unit, index.documents(ranking.docids))
