from .assignment import Assignment as Assignment
from .coulomb import Coulomb as Coulomb
from .coulomb import Update as Update
from .coulomb_problem import Repulsion as Repulsion
from .cutting_plane import CuttingPlane as CuttingPlane
from .cutting_plane import Solution as Solution
from .electrostatics import directions as directions
from .electrostatics import lengths as lengths
from .electrostatics import riesz_energy as riesz_energy
from .ensemble import Ensemble as Ensemble
from .model import ComparingModel as ComparingModel
from .model import SignedModel as SignedModel
from .model import StructuredModel as StructuredModel
from .model import TrainingSet as TrainingSet
from .model import inner as inner
from .multiple_choice import MultipleChoice as MultipleChoice
from .multiple_choice import Start as Start

__all__ = [
    "Assignment",
    "ComparingModel",
    "Coulomb",
    "CuttingPlane",
    "Ensemble",
    "MultipleChoice",
    "Repulsion",
    "SignedModel",
    "Solution",
    "Start",
    "StructuredModel",
    "TrainingSet",
    "Update",
    "directions",
    "inner",
    "lengths",
    "riesz_energy",
]
