"""The files of trec_eval 10's own tests, and what it prints for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from greylag.evaluation import evaluate
from greylag.trec import open_run, read_qrels, read_run

FILES = [
    ("qrels.test", "results.test", "out.test.aq"),
    ("qrels.comment.test.gz", "results.comment.test.gz", "out.comment.test"),
]


def printed(path: Path) -> dict[tuple[str, str], str]:
    """What trec_eval printed, by name of measure and query, with "all" for the mean."""
    return {
        (name.strip(), qid): value for name, qid, value in (line.split("\t") for line in path.read_text().splitlines())
    }


@pytest.mark.parametrize(("qrels", "results", "output"), FILES)
def test_files_of_trec_eval_10_are_read(data: Callable[[str], Path], qrels: str, results: str, output: str) -> None:
    """Lines of the first run are not sorted; the docids of the second have # in them."""
    expected = printed(data("trec_eval10") / output)
    run = read_run(data("trec_eval10") / results)
    assert [*open_run(data("trec_eval10") / results).rankings] == [*run.rankings]
    judged = read_qrels(data("trec_eval10") / qrels)
    scores = evaluate(run, judged, ["num_ret", "num_rel", "num_rel_ret", "AP"])
    *totals, average = scores.means
    names = "num_ret", "num_rel", "num_rel_ret"
    assert [*map(int, totals)] == [int(expected[name, "all"]) for name in names]
    assert f"{average:.4f}" == expected["map", "all"]
