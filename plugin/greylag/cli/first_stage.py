"""The first stage of commands that are given no run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from greylag.cli.options import Reading
from greylag.fusion import Union
from greylag.index.rm3 import RM3Search
from greylag.lucene.lucene_index import LuceneIndex
from greylag.ranking import Run


def search_first(index: Sequence[Path], topics: Mapping[str, str], jobs: int, *, stack: bool = False) -> Run:
    """The top 1000 documents of each topic by BM25; for a stack, those of the union of BM25 and BM25+RM3."""
    bm25 = LuceneIndex(index).bm25()
    if not stack:
        return bm25.run(topics, n_jobs=jobs, tag="bm25")
    return Union((bm25, RM3Search(bm25)), k=1000).run(topics, n_jobs=jobs, tag="candidates")


def first_stage(
    run: Path | None, index: Sequence[Path], topics: Path, reading: Reading, jobs: int, *, stack: bool = False
) -> Run:
    """The rankings of a run's file, or what `search_first` finds if there is none."""
    if run is not None:
        return reading.run(run, topics)
    return search_first(index, reading.topics(topics), jobs, stack=stack)
