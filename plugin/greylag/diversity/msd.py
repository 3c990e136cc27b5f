"""MSD, max-sum diversification (Gollapudi & Sharma 2009): relevance, and the sum of distances between the picks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greylag.diversity.vector_gain import CosineGain, VectorStage


class DistanceSum(CosineGain):
    """The gain of MSD: the statistic of a candidate is the sum of its cosines with the picks."""

    combine = np.add
    start = 0.0
    constant = 1.0
    adds_errors = True


@dataclass(frozen=True)
class MSD(VectorStage):
    """Pick documents that are relevant and far from each other.

    Each pick maximises

        w rel(d) + (1 - w) sum over picked s of (1 - cos(d, s)),

    the greedy algorithm of Borodin et al. (section 4) for the objective with lambda = (1 - w) / (2 w). With rel and cos
    as in `greylag.MMR`. The sum grows with the picks, so that the same w weighs relevance less than in MMR. The bound
    of 2 on the approximation holds for metric distances, which 1 - cos is not.

    Parameters
    ----------
    index, vectors, latent, relevance_weight, scale, depth, k
        See `greylag.MMR`.

    References
    ----------
    Gollapudi and Sharma, An axiomatic approach for result diversification, WWW 2009. Borodin, Lee and Ye, Max-sum
    diversification, monotone submodular functions and dynamic updates, PODS 2012.
    """

    kind = DistanceSum
