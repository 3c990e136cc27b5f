from .collection import CollectionSettings as CollectionSettings
from .collection import OpenCollection as OpenCollection
from .collection import open_collection as open_collection
from .collection import open_index as open_index
from .config import Experiment as Experiment
from .config import Folds as Folds
from .config import MeasureName as MeasureName
from .config import ObjectiveName as ObjectiveName
from .config import Positive as Positive
from .config import Seed as Seed
from .config import Settings as Settings
from .config import readable_by as readable_by
from .figures import Figure as Figure
from .figures import Panel as Panel
from .figures import draw_figure as draw_figure
from .figures import line_figure as line_figure
from .figures import plain_text as plain_text
from .pipeline_report import models_table as models_table
from .queries import QueryChanges as QueryChanges
from .queries import query_changes as query_changes
from .queries import reasons as reasons
from .report import Section as Section
from .report import write_report as write_report
from .runner import Finished as Finished
from .runner import run_study as run_study
from .study import Context as Context
from .study import Model as Model
from .study import Outcome as Outcome
from .study import Progress as Progress
from .study import Study as Study
from .study import deviations as deviations
from .study import load as load
from .tables import Table as Table
from .tables import as_text as as_text
from .tables import comparison_table as comparison_table
from .tables import means as means
from .tables import means_table as means_table
from .tables import merge_scores as merge_scores

__all__ = [
    "CollectionSettings",
    "Context",
    "Experiment",
    "Figure",
    "Finished",
    "Folds",
    "MeasureName",
    "Model",
    "ObjectiveName",
    "OpenCollection",
    "Outcome",
    "Panel",
    "Positive",
    "Progress",
    "QueryChanges",
    "Section",
    "Seed",
    "Settings",
    "Study",
    "Table",
    "as_text",
    "comparison_table",
    "deviations",
    "draw_figure",
    "line_figure",
    "load",
    "means",
    "means_table",
    "merge_scores",
    "models_table",
    "open_collection",
    "open_index",
    "plain_text",
    "query_changes",
    "readable_by",
    "reasons",
    "run_study",
    "write_report",
]
