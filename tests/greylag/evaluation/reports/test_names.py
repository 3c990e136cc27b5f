"""Names of runs that are given without one."""

from pathlib import Path

import pytest

from greylag.base import ParameterError, Run
from greylag.evaluation.reports.names import name_runs
from tests.refusals import refuses


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ("runs/a.run runs/b.run.gz c.txt d.v2", "a b c d.v2"),
        ("runs/a.run other/a.run b.trec", "runs/a.run other/a.run b"),
        (".run r.run.run a=b.res", ".run r.run a=b"),
    ],
)
def test_names_of_files_have_no_endings_and_differ(files, names):
    paths = [*map(Path, files.split())]
    named = name_runs([(None, path) for path in paths], "file")
    assert named == [*zip(names.split(), paths, strict=True)]


def test_runs_have_their_tags():
    runs = [Run((), "a"), Run((), "b")]
    assert name_runs([(None, run) for run in runs], "tag") == [("a", runs[0]), ("b", runs[1])]
    assert name_runs([("mine", runs[0]), (None, runs[0])], "tag") == [("mine", runs[0]), ("a", runs[0])]
    for tags in ("aa", ["a", ""]):
        call = [(None, Run((), tag)) for tag in tags]
        refuses(lambda call=call: name_runs(call, "tag"), ParameterError, f"'{tags[-1]}' name")
