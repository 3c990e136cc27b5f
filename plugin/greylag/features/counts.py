"""Raw counts (tf, df, windows) of a query's features, before weighting, for one ranking or many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from greylag.index.tables import Int32Array, offsets
from greylag.ranking import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The counts of the cliques of q queries, one query after another."""

    cliques: IntArray  # (q + 1,): the cliques of query i are cliques[i], ..., cliques[i + 1] - 1
    multiplicity: FloatArray  # (sets, cliques): how often each clique set has each clique
    collection: IntArray  # (2, cliques, windows): cf and df
    offsets: IntArray  # (cliques + 1,): where the rows of each clique begin and end
    rows: Int32Array  # (n,): the rows of the documents in which the clique matches within some window
    codes: Int32Array  # (n,): as windows.occurrences returns them
    tf: Int32Array  # (m, windows): as windows.occurrences returns them


@dataclass(frozen=True, eq=False)
class FeatureCounts:
    """The counts of q rankings of n documents, m of which are known (see `FeatureExtractor.knows`).

    Parameters
    ----------
    offsets : int array, shape (q + 1,)
        The documents of ranking i are ``offsets[i], ..., offsets[i + 1] - 1``.
    known : bool array, shape (n,)
        Which documents are known. These are the m rows of what follows.
    lengths : int array, shape (m,)
        In tokens; 0 if no feature needs the index.
    fixed : float array, shape (m, number of other features)
        The features that are not sums over cliques, not normalised; NaN where a document has none.
    groups : tuple of GroupCounts
        One for each group of features whose cliques are matched together.
    """

    offsets: IntArray
    known: NDArray[np.bool_]
    lengths: IntArray
    fixed: FloatArray
    groups: tuple[GroupCounts, ...]

    @property
    def known_offsets(self) -> IntArray:
        """The rows of ranking i are ``known_offsets[i], ..., known_offsets[i + 1] - 1``; shape (q + 1,)."""
        return offsets(self.known)[self.offsets]

    @classmethod
    def join(cls, parts: Sequence[FeatureCounts]) -> FeatureCounts:
        """The counts of all rankings of the parts, of which there is at least one."""
        if len(parts) == 1:
            return parts[0]
        starts = offsets([len(part.lengths) for part in parts])
        return cls(
            offsets=offsets(np.concatenate([np.diff(part.offsets) for part in parts])),
            known=np.concatenate([part.known for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
            fixed=np.concatenate([part.fixed for part in parts]),
            groups=tuple(_join(groups, starts) for groups in zip(*(part.groups for part in parts), strict=True)),
        )


def _join(parts: Sequence[GroupCounts], starts: IntArray) -> GroupCounts:
    """The counts of the same group; the rows of part i are from ``starts[i]`` on."""
    placed = list(zip(parts, starts[:-1].astype(np.int32), offsets([len(part.tf) for part in parts])[:-1], strict=True))
    return GroupCounts(
        cliques=offsets(np.concatenate([np.diff(part.cliques) for part in parts])),
        multiplicity=np.concatenate([part.multiplicity for part in parts], axis=1),
        collection=np.concatenate([part.collection for part in parts], axis=1),
        offsets=offsets(np.concatenate([np.diff(part.offsets) for part in parts])),
        rows=np.concatenate([part.rows + row for part, row, _ in placed]),
        codes=np.concatenate([part.codes - (part.codes < 0) * np.int32(tf) for part, _, tf in placed]),
        tf=np.concatenate([part.tf for part in parts]),
    )
