"""Fixtures: the demonstration collection, indexed."""

from __future__ import annotations

from tests.greylag.cli.conftest import made

__all__ = ["made"]
