"""Fixtures of the studies' tests."""

from tests.greylag.studies.conftest import own_data, sum_study

__all__ = ["own_data", "sum_study"]
