"""The files of the study `mrf`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greylag.evaluation import to_dict
from greylag.experiments.ir_metadata import command, write_described_run
from greylag.experiments.report import provenance, write_report, write_results
from greylag.files import write_text
from greylag.ranking import Run
from greylag_papers.metzler_2007 import report as mrf_report
from greylag_papers.metzler_2007.findings import Findings
from greylag_papers.metzler_2007.learning import BASELINES

FIRST = "first stage"


def write(findings: Findings, runs: Mapping[str, Run], seconds: Mapping[str, float], out: Path) -> None:
    """Write the study's files."""
    settings = findings.settings
    for name, ranked in runs.items():
        write_described_run(
            ranked,
            out / f"{ranked.tag}.run",
            retrieval=retrieval(findings, name),
            measures=list(findings.means[name]),
            baselines=[runs[model.name].tag for model in BASELINES],
            collection={
                "name": settings.collection.docs,
                "topics": settings.topics,
                "qrels": settings.qrels,
                "fingerprint": findings.index.fingerprint,
            },
        )
    for name, models in findings.models.items():
        folder = out / "models" / runs[name].tag
        folder.mkdir(parents=True, exist_ok=True)
        for fold, model in zip(findings.folds, models, strict=True):
            model.save(folder / f"fold-{fold.number}.json")
    more = {"fingerprint": findings.index.fingerprint, "command": command()}
    results = {**provenance(settings, **more), **findings.as_dict(), **to_dict(findings.scores)}
    write_results(out, results)
    write_text(out / "times.json", json.dumps(seconds, indent=1) + "\n")
    title = f"Selected features against hand-picked ones: {settings.name}"
    write_report(out / "report.html", title, mrf_report.sections(findings, seconds), provenance(settings, **more))


def retrieval(findings: Findings, system: str) -> list[dict[str, Any]]:
    """The steps that a system's run comes from, as ir_metadata has them."""
    stage = findings.settings.first_stage
    similarity, parameters = {
        "bm25": ("BM25Similarity", {"k1": stage.k1, "b": stage.b}),
        "ql": ("LMDirichletSimilarity", {"mu": stage.mu}),
    }[stage.model]
    method = f"org.apache.lucene.search.similarities.{similarity}"
    steps: list[dict[str, Any]] = [{"name": FIRST, "method": method, "hits": stage.hits, **parameters}]
    if system in findings.models:
        own = {"models": f"models/{file_name(system)}", "seed": findings.settings.training.seed}
        steps.append({"name": system, "method": "greylag.ltr.MRFRanker", **own, "reranks": FIRST})
    return steps


def file_name(system: str) -> str:
    """A system's name in files, which is its run's tag too."""
    return system.lower().replace(" ", "-")
