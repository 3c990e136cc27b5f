"""Each guess of another tool's command or option is answered with what works, which exists."""

import re

import pytest

import greylag
from greylag.cli.guesses import COMMANDS, OPTIONS


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name, refused, command):
    help_ = command(name, "--help")[1]
    for guess, way in OPTIONS[name].items():
        dashes = "-" if len(guess) == 1 else "--"
        told = way if way.startswith("leave it out: ") else f"write {way}"
        assert f"No such option: {dashes}{guess}; {told} (see" in refused(name, f"{dashes}{guess}")
        assert f" {dashes}{guess} " not in help_
        for option in re.findall(r"--[a-z-]+", way.partition("greylag rerank")[0]):
            assert f"{option} " in help_, way


def test_words_of_an_option(refused):
    for guess, way in (
        ("cohens-kappa", "--other-qrels"),
        ("baseline_file", "--baseline"),
        ("latex-table", "--format latex"),
    ):
        assert f"No such option: --{guess}; write {way} (see" in refused("evaluate", f"--{guess}")


def test_commands(refused, command):
    for guess, way in COMMANDS.items():
        assert f"No such command {guess!r}: {way} (see" in refused(guess, "x")
    for name, options in {re.search(r"greylag (\w+)(.*)", way).groups() for way in COMMANDS.values()}:
        help_ = command(name, "--help")[1]
        assert all(f"{option} " in help_ for option in re.findall(r"--[a-z-]+", options))


@pytest.mark.parametrize(
    ("name", "wing"),
    [
        ("pool_runs", "evaluation"), ("RankEstimator", "learning"), ("RankingModel", "rankers"),
        ("GreedySelection", "learning"), ("CoordinateAscent", "learning"),
    ],
)  # fmt: skip
def test_a_name_of_a_wing_says_where_it_is(name, wing):
    told = f"; write from greylag.{wing} import {name}$"
    with pytest.raises(AttributeError, match=told):
        getattr(greylag, name)
    with pytest.raises(ImportError, match=told):
        exec(f"from greylag import {name}")
    exec(f"from greylag.{wing} import {name}")
    assert not hasattr(greylag, "few_names")
    with pytest.raises(AttributeError, match=r"no attribute 'few_names'$"):  # between wings alone
        greylag.few_names  # noqa: B018
