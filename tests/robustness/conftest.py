"""Fixtures: the demonstration collection, indexed, and commands on it."""

from tests.greylag.cli.conftest import collection, command, made, made_by_greylag, ranked

__all__ = ["collection", "command", "made", "made_by_greylag", "ranked"]
