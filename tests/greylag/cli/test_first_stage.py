"""The first stage of commands that are given no run."""

from __future__ import annotations

from pathlib import Path

from greylag import read_run, read_topics
from greylag.cli.first_stage import search_first


def test_bm25_and_for_a_stack_its_union_with_rm3(made: Path) -> None:
    topics = read_topics(made / "topics.tsv")
    bm25, both = (search_first(made / "index", topics, 1, stack=stack) for stack in (False, True))
    given = read_run(made / "bm25.run")
    assert {qid: own.docids for qid, own in bm25.items()} == {qid: own.docids for qid, own in given.items()}
    assert all(set(both[qid].docids) > set(own.docids) for qid, own in bm25.items() if len(own) < len(both[qid]))
    assert any(len(both[qid]) > len(own) for qid, own in bm25.items())
    assert (bm25.tag, both.tag) == ("bm25", "candidates")
