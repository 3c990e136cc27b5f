"""Fixtures: the demonstration collection, indexed, and commands on it."""

from tests.greylag.cli.conftest import collection, command, made, ranked

__all__ = ["collection", "command", "made", "ranked"]
