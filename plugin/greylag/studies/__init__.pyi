from .collection import Collection as Collection
from .collection import CollectionSettings as CollectionSettings
from .collection import FirstStage as FirstStage
from .collection import OpenCollection as OpenCollection
from .collection import Queries as Queries
from .collection import open_collection as open_collection
from .collection import open_index as open_index
from .config import Experiment as Experiment
from .config import FileName as FileName
from .config import Folds as Folds
from .config import InputFile as InputFile
from .config import MeasureName as MeasureName
from .config import ObjectiveName as ObjectiveName
from .config import Positive as Positive
from .config import Seed as Seed
from .config import Settings as Settings
from .config import readable_by as readable_by
from .study import Context as Context
from .study import Outcome as Outcome
from .study import Progress as Progress
from .study import Study as Study
from .study import deviations as deviations
from .study import load as load
from .tables import Table as Table
from .tables import comparison_table as comparison_table
from .tables import means as means
from .tables import means_table as means_table
from .tables import models_table as models_table

# isort: split
# Between wings, not public:
from .config import shipped_file as shipped_file
from .runner import STUDY_FORMS as STUDY_FORMS
from .runner import run_study as run_study
