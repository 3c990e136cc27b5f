"""Ranking on data manifolds: affinity graphs of points, rankings on them, and a reranking stage.

The stage uses conjugate gradients and rounds f* to 1e-10 of its highest value, so equal documents keep their order.
"""
