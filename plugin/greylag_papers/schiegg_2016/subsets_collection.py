"""Ensembles for subset prediction on a test collection, each query tested by models trained on other queries.

Candidates are the documents that cover a subtopic, as in Yue & Joachims (2008), section 6.
"""

from __future__ import annotations

from greylag.experiments import Context, Study
from greylag_papers.schiegg_2016.subsets import OpenSplits, SubsetSettings, run
from greylag_papers.yue_joachims_2008.candidate_lists import CandidateSettings, open_candidates
from greylag_papers.yue_joachims_2008.splits import folds


class Settings(SubsetSettings, CandidateSettings):
    """A collection, and how ensembles learn from it."""


def open_splits(settings: Settings, context: Context) -> OpenSplits:
    """Open the collection, and split its queries so that each is tested once."""
    opened = open_candidates(settings, context)
    splits = folds(opened.queries(), settings.n_training, settings.n_validation)
    return OpenSplits(splits, {"fingerprint": opened.index.fingerprint})


STUDY = Study(Settings, open_splits, run)
