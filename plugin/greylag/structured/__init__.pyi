from .coulomb import Assignment as Assignment
from .coulomb import Coulomb as Coulomb
from .coulomb import Update as Update
from .cutting_plane import CuttingPlane as CuttingPlane
from .cutting_plane import Solution as Solution
from .electrostatics import coulomb_energy as coulomb_energy
from .electrostatics import directions as directions
from .electrostatics import displacements as displacements
from .electrostatics import lengths as lengths
from .ensemble import Ensemble as Ensemble
from .model import ComparingModel as ComparingModel
from .model import StructuredModel as StructuredModel
from .model import TrainingSet as TrainingSet
from .model import inner as inner
from .multiple_choice import MultipleChoice as MultipleChoice

__all__ = [
    "Assignment",
    "ComparingModel",
    "Coulomb",
    "CuttingPlane",
    "Ensemble",
    "MultipleChoice",
    "Solution",
    "StructuredModel",
    "TrainingSet",
    "Update",
    "coulomb_energy",
    "directions",
    "displacements",
    "inner",
    "lengths",
]
