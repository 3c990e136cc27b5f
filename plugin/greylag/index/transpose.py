"""From postings by term to entries by document: the one compiled loop of this package."""

from __future__ import annotations

from greylag.compilation import compiled
from greylag.index.arrays import Int32Array
from greylag.ranking import IntArray


@compiled()
def transpose(
    postings_offsets: IntArray,
    postings_docs: Int32Array,
    forward_offsets: IntArray,
    forward_terms: Int32Array,
    forward_postings: IntArray,
) -> None:
    """Fill in every document's entries, in the order of terms.

    Parameters
    ----------
    postings_offsets, postings_docs, forward_offsets : arrays
        As in `PositionalIndex`.
    forward_terms, forward_postings : int32 and int64 arrays, shape (P,)
        Overwritten.
    """
    free = forward_offsets[:-1].copy()
    for term in range(len(postings_offsets) - 1):
        for posting in range(postings_offsets[term], postings_offsets[term + 1]):
            document = postings_docs[posting]
            forward_terms[free[document]] = term
            forward_postings[free[document]] = posting
            free[document] += 1
