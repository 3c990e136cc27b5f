"""Fixtures: the demonstration collection, indexed."""

from tests.greylag.cli.conftest import made

__all__ = ["made"]
