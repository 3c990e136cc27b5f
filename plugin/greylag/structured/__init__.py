"""Structured models and their learners: predicting an object, such as a set of documents, from weighted joint features.

A model says what is predicted and how; a learner finds its weights. Each learner works with each model, and none knows
of documents.
"""

from greylag.structured.coulomb import Coulomb
from greylag.structured.cutting_plane import CuttingPlane, Solution
from greylag.structured.ensemble import Ensemble
from greylag.structured.model import StructuredModel, TrainingSet
from greylag.structured.multiple_choice import ComparingModel, MultipleChoice

__all__ = [
    "ComparingModel",
    "Coulomb",
    "CuttingPlane",
    "Ensemble",
    "MultipleChoice",
    "Solution",
    "StructuredModel",
    "TrainingSet",
]
