"""Pools against their definition, rank by rank; teams of files and patterns.

Tests `teams`.
"""

import numpy as np
import pytest

from greylag.base import FormatError, ParameterError, Ranking, Run
from greylag.evaluation import pool_runs, write_run
from greylag.evaluation.scoring.teams import assign_teams
from tests.refusals import refuses

TEAMS = {"a": "one", "b": "two", "c": "one", "tag-d": "one"}


def some_runs(seed):
    rng, docids = np.random.default_rng(seed), [f"d{number}" for number in range(25)]

    def ranking(qid):
        size = rng.integers(4, 12)
        return Ranking(qid, "", tuple(rng.permutation(docids)[:size].tolist()), np.arange(size, 0.0, -1.0))

    topics = {"a": "qr", "b": "rs", "c": "q", "d": "qrs"}
    return {name: Run(tuple(map(ranking, of_run)), f"tag-{name}") for name, of_run in topics.items()}


@pytest.mark.parametrize("teams", [None, TEAMS])
@pytest.mark.parametrize("seed", range(8))
def test_a_pool_is_the_first_documents_of_each_team(seed, teams):
    runs, depth = some_runs(seed), 5
    judged = {"q": {"d1": 0, "d2": 1, "d3": 0}, "x": {"d4": 1}}
    found = pool_runs(runs, depth, teams=teams, judged=judged)
    assert ("team's merged list" in str(found)) == (teams is not None)
    team = {name: teams.get(name) or teams[f"tag-{name}"] if teams else name for name in runs}
    pooled = {}
    for one in set(team.values()):
        for q in "qrs":
            taken = [
                runs[name][q].docids[rank]
                for rank in range(12)
                for name in runs
                if team[name] == one and q in runs[name] and rank < len(runs[name][q])
            ]
            pooled[one, q] = set(list(dict.fromkeys(taken))[:depth])
    whole = {q: set().union(*(pooled[one, q] for one in set(team.values()))) for q in "qrs"}
    assert found.documents == {q: tuple(sorted(whole[q] - judged.get(q, {}).keys())) for q in "qrs"}
    assert found.judged == len(whole["q"] & judged["q"].keys())
    for name, run in runs.items():
        mine = {(q, d) for q in run for d in run[q].docids[:depth] if d in pooled[team[name], q]}
        others = {(q, d) for (one, q), docids in pooled.items() if one != team[name] for d in docids}
        known = {(q, d) for q, d in mine if d in judged.get(q, {})}
        expected = (team[name], len(mine), len(mine - others), len(known), len(mine - known))
        assert found.counts[name] == expected
    assert found.omitted == 0


def test_a_sample_is_drawn_for_each_topic_by_itself():
    runs = some_runs(3)
    whole, found = pool_runs(runs, 9), pool_runs(runs, 9, sample=4, seed=1)
    assert {q: len(docids) for q, docids in found.documents.items()} == dict.fromkeys("qrs", 4)
    assert all(set(found.documents[q]) < set(whole.documents[q]) for q in "qrs")
    assert found.omitted == sum(map(len, whole.documents.values())) - 12
    assert found.documents == pool_runs(runs, 9, sample=4, seed=1).documents
    assert found.documents != pool_runs(runs, 9, sample=4, seed=2).documents
    for_q = pool_runs({name: run.select_queries(["q"]) for name, run in runs.items()}, 9, sample=4, seed=1)
    assert for_q.documents == {"q": found.documents["q"]}
    drawn = [pool_runs({"a": runs["a"]}, 3, sample=1, seed=seed).documents["q"][0] for seed in range(300)]
    assert min(map(drawn.count, set(drawn))) > 70  # each of three


def test_files_are_read_for_their_top_alone(tmp_path):
    runs = some_runs(0)
    for name, run in runs.items():
        write_run(run, tmp_path / name)
    found = pool_runs({name: tmp_path / name for name in runs}, 3)
    assert found.lines == pool_runs(runs, 3).lines
    assert found.lines.startswith(f"q {found.documents['q'][0]}\n")


def test_teams_of_a_file_and_by_patterns(tmp_path):
    known = {"a/x-1.run": ("x-1", "a/x-1.run"), "a/x-2.run": ("x-2", "a/x-2.run"), "y": ("other", "y")}
    path = tmp_path / "teams"
    path.write_text("# of the task\nx-1 geese\nother ducks\na/x-2.run geese\n")
    assert assign_teams(known, path) == {"a/x-1.run": "geese", "a/x-2.run": "geese", "y": "ducks"}
    assert assign_teams(known, str(path)) == assign_teams(known, path)
    assert [*assign_teams(known, "^[a-z]+").values()] == ["x", "x", "other"]
    assert [*assign_teams(known, "^(?:x-)?(.)").values()] == ["1", "2", "o"]
    path.write_text("x-1 geese\nx-1 ducks\n")
    refuses(lambda: assign_teams(known, path), FormatError, "teams:2: x-1")
    path.write_text("x-1 geese\n")
    refuses(lambda: assign_teams(known, path), ParameterError, "a/x-2.run y")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: pool_runs({"a": Run(())}, 0), "depth"),
        (lambda: pool_runs({"a": Run(())}, 1, sample=0), "sample"),
        (lambda: pool_runs([Run(())], 1), "by name"),
        (lambda: pool_runs(some_runs(0), 1, judged={"goose": {"d": 1}}), "no topic in common|goose"),
        (lambda: pool_runs(some_runs(0), 1, teams="nothere.txt"), "nothere.txt does not exist"),
        (lambda: pool_runs(some_runs(0), 1, teams={"a": "x"}), "no team of b, c, d"),
        (lambda: pool_runs(some_runs(0), 1, teams="^q"), "^q|a, b, c, d"),
        (lambda: pool_runs(some_runs(0), 1, teams="("), "'('|regular expression"),
    ],
)
def test_refused(call, parts):
    refuses(call, ParameterError, parts, "|")
