"""Ensembles for subset prediction on synthetic candidate sets, after Yue & Joachims (2008), section 6."""

from __future__ import annotations

from dataclasses import asdict

from greylag.experiments import Context, Study
from greylag_papers.schiegg_2016.subsets import OpenSplits, SubsetSettings, run
from greylag_papers.yue_joachims_2008.queries import synthetic_queries
from greylag_papers.yue_joachims_2008.splits import first_split
from greylag_papers.yue_joachims_2008.synthetic import SyntheticSettings


class Settings(SubsetSettings, SyntheticSettings):
    """Synthetic sets, and how ensembles learn from them."""


def open_splits(settings: Settings, context: Context) -> OpenSplits:
    """Draw the sets; those that are neither trained nor validated on are tested."""
    split = first_split(synthetic_queries(settings.sets), settings.n_training, settings.n_validation)
    return OpenSplits([split], {"data": asdict(settings.sets)})


STUDY = Study(Settings, open_splits, run)
