"""Models among the files that a command reads, and the topics that they were trained on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from greylag.base import SEEN, ModelError, marked
from greylag.evaluation import run_tag
from greylag.learning import LIGHTGBM, XGBOOST, read_content, trained_topics

if TYPE_CHECKING:
    from greylag.diversity import DiversityModel
    from greylag.rankers import RankingModel

    Model = RankingModel | DiversityModel
_log = logging.getLogger("greylag")


def load_model(path: Path, inputs: Mapping[Path, Any]) -> Model:
    """Load a model that ranks or diversifies, whose content may be among the inputs."""
    model: Any = _load(path, inputs.get(path))
    if hasattr(model, "weight"):
        raise ModelError(f"{path}: a weight of hybrid search, which `greylag rerank --query-vectors` ranks by")
    return cast("Model", model)


def _load(path: Path, content: Any) -> Any:
    """Load a model of any kind, of a file that may have been read."""
    from greylag.rankers import RankingModel

    if not path.exists() and (kind := model_kind(str(path))):
        raise ModelError(
            f"{path} is not a file: a model is a file, which `greylag train --model {kind} --out FILE` writes"
        )
    content = content if isinstance(content, dict) else read_content(path)  # once: it may be a pipe
    if content.get("kind") in (RankingModel.kind, LIGHTGBM, XGBOOST):
        return RankingModel.of_content(path, content)
    from greylag.diversity import DiversityModel  # imports SciPy, which the other kind does not need

    if content.get("kind") == DiversityModel.kind:
        return DiversityModel.of_content(path, content)
    from greylag.recipes import HybridModel  # with all recipes

    if content.get("kind") == HybridModel.kind:
        return HybridModel.of_content(path, content)
    raise ModelError(f"{path}: neither a model that `greylag train` wrote nor one of LightGBM or XGBoost")


def model_kind(spelling: str) -> str | None:
    """Return the name in the spelling of a model to train, such as mrf(mu=500); None if there is no such model."""
    from greylag.recipes import MODEL_KINDS  # slow to import, for errors alone

    name = spelling.partition("(")[0].strip()
    return name if name in MODEL_KINDS else None


def seen_topics(inputs: Mapping[Path, Any], rankings: Iterable[str], fingerprint: str) -> str:
    """Return the training-topics mark if a model among the inputs saw these topics, or a run carries it."""
    # Topics of another collection, with another fingerprint, may have the same identifiers.
    qids, tags = list(rankings), list[str]()
    for path, content in inputs.items():
        model = content if isinstance(content, dict) else {}  # whatever uses the model says what is wrong with it
        trained = trained_topics(model.get("provenance"))
        if model.get("fingerprint") in ("", fingerprint) and (seen := sum(qid in trained for qid in qids)):
            tags.append(SEEN)
            command = "fuse" if model.get("runs") else "train"
            _log.warning(
                f"{seen} of {len(qids)} topics are among those that {path} was trained on: their scores say "
                f"nothing about other topics; for held-out rankings, use greylag {command} --folds"
            )
    return marked("", *tags, *(run_tag(path) for path, content in inputs.items() if content is None))
