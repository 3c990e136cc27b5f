"""Experiment files: YAML, checked field by field.

A relative path in a file is below its ``data`` folder, which the environment's GREYLAG_DATA overrides.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from greylag.errors import FormatError

Positive = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Collection(_Strict):
    """Documents: a file or folder, and Anserini's name for its form (found out where it is not given)."""

    docs: str
    type: Literal["JsonCollection", "TrecCollection", "HtmlCollection"] | None = None


class FirstStage(_Strict):
    """Which of the first stage's rankings is reranked, and how it is made."""

    model: Literal["bm25", "ql"] = "bm25"
    hits: Positive = 1000
    k1: float = 0.9
    b: float = 0.4
    mu: float = 1000.0


class Features(_Strict):
    """The pool that selection chooses from, and the features' parameters."""

    pool: Literal["sd", "fd", "full"] = "full"
    mu: float = 1000.0
    k1: float = 0.9
    b: float = 0.4
    idf: Literal["lucene", "robertson"] = "lucene"
    profile: Literal["indri", "galago"] = "indri"
    max_clique: int = 3


class Training(_Strict):
    """Cross-validated training of the linear model."""

    objective: str = "AP"
    max_features: Positive = 5
    epsilon: float = 0.0
    retrain: bool = False
    folds: Annotated[int, Field(ge=2)] = 5
    seed: int = 0


class Diversify(_Strict):
    """The diversity stage after the model; scored by `measures` on the subtopic qrels."""

    relevance_weight: float = 0.7
    depth: Positive = 100
    k: Positive = 20
    subtopic_qrels: str
    measures: tuple[str, ...] = ("alpha-nDCG@10", "S-recall@10")


class Experiment(_Strict):
    """A whole pipeline: collection, topics, judgements, stages, measures, and the scores that it is expected to give."""

    name: str
    data: str = "."
    collection: Collection
    topics: str
    qrels: str
    lenient: bool = False
    first_stage: FirstStage = FirstStage()
    features: Features = Features()
    training: Training = Training()
    diversify: Diversify | None = None
    measures: tuple[str, ...] = ("AP", "P@10", "nDCG@10")
    expected: dict[str, dict[str, float]] = {}
    folder: Path = Field(default=Path("."), exclude=True)

    def path(self, name: str) -> Path:
        """A file that the experiment names, found below its data folder."""
        return self.folder / name


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment file.

    Raises
    ------
    FormatError
        Where the file is missing, not YAML, or a field is unknown, missing or out of its domain: the first such field.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(path, None, "no such experiment file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(
            path, mark.line + 1 if mark else None, f"not YAML: {getattr(error, 'problem', error)}"
        ) from None
    if not isinstance(content, dict):
        raise FormatError(path, None, "an experiment file is a mapping with name, collection, topics and qrels")
    try:
        experiment = Experiment(**content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise FormatError(path, None, f"{place}: {first['msg'].lower()} (got {first['input']!r:.60})") from None
    data = os.environ.get("GREYLAG_DATA") if experiment.data != "." else None
    return experiment.model_copy(update={"folder": Path(data) if data else path.parent / experiment.data})
