"""Ensembles for subset prediction on a test collection, each query tested by models trained on others.

Candidates are the documents that cover a subtopic, as in Yue & Joachims (2008).
"""

from __future__ import annotations

from pathlib import Path

from greylag.diversity import read_titles
from greylag.experiments.report import check_dependencies
from greylag.experiments.study import Result, Say
from greylag.trec import read_subtopic_qrels
from greylag_papers.schiegg_2016 import subsets as cssvm_subsets
from greylag_papers.yue_joachims_2008.collection import CandidateFiles, read_candidates
from greylag_papers.yue_joachims_2008.comparison import index_queries


class Settings(cssvm_subsets.SubsetSettings, CandidateFiles):
    """A collection, and how ensembles are learned from it."""


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    index, rankings = read_candidates(settings, out, n_jobs, say)
    qrels = read_subtopic_qrels(settings.path(settings.subtopic_qrels))
    queries = index_queries(index, rankings, qrels, titles=read_titles(settings.path(settings.docs)))
    splits = cssvm_subsets.fold_splits(queries, settings.n_training, settings.n_validation)
    found = cssvm_subsets.find(splits, settings, n_jobs, say)
    return cssvm_subsets.write(settings, found, out, {"fingerprint": index.fingerprint})
