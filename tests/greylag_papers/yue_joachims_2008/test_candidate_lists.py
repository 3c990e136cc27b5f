from __future__ import annotations

from pathlib import Path

import numpy as np

import greylag
from greylag import Run
from greylag.experiments import Context
from greylag.trec import write_run
from greylag_papers.yue_joachims_2008.queries import CandidateSettings, open_candidates

DEMO = Path(greylag.__file__).parent / "demo"


def test_candidates_come_from_bm25_or_from_a_run(tmp_path: Path) -> None:
    settings = CandidateSettings(
        name="demo", docs="docs.jsonl", topics="topics.tsv", subtopic_qrels="qrels.subtopics.txt", depth=20,
        data_folder=DEMO,
    )  # fmt: skip
    found = open_candidates(settings, Context(tmp_path))
    assert max(len(ranking.docids) for ranking in found.rankings) == 20
    relevant, every = found.queries(), found.queries(relevant_only=False)
    assert [query.qid for query in relevant] == [query.qid for query in every]
    assert sum(len(query.relevance) for query in relevant) < sum(len(query.relevance) for query in every)
    write_run(Run(tuple(found.rankings), "bm25"), tmp_path / "bm25.run")
    read = settings.model_copy(update={"run": str(tmp_path / "bm25.run"), "depth": 10})
    for first, second in zip(found.rankings, open_candidates(read, Context(tmp_path)).rankings, strict=True):
        assert second.docids == first.docids[:10]
        np.testing.assert_allclose(second.scores, first.scores[:10], rtol=1e-5)
