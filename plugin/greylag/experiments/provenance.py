"""What results depend on: versions, code, and how a run was made (ir_metadata)."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from greylag.evaluation import parse_measure
from greylag.ranking import Run


@cache
def code() -> str:
    """A digest of the source of greylag and greylag_papers."""
    digest = hashlib.sha256()
    for package in ("greylag", "greylag_papers"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()


@cache  # reading them takes a quarter of a second
def versions() -> dict[str, str]:
    """The versions of Python, greylag and each installed package that greylag requires."""
    installed = {"Python": platform.python_version(), "greylag": version("greylag")}
    for requirement in sorted(requires("greylag") or ()):
        name = re.split(r"[^\w.-]", requirement)[0]
        try:
            installed[name] = version(name)
        except PackageNotFoundError:  # an optional package
            continue
    return installed


def describe(run: Run, description: Mapping[str, Any]) -> str:
    """The metadata of a run as YAML."""
    content = {
        "tag": run.tag,
        "platform": _platform(),
        "research goal": {
            "evaluation": {
                "reported measures": [parse_measure(measure).trec_name for measure in description["measures"]],
                "baseline": list(description["baselines"]),
                "significance test": [{"name": "one-tailed paired t-test", "correction method": "Holm"}],
            }
        },
        "implementation": {
            "executable": {"cmd": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])},
            "source": {"lang": ["python"]},
        },
        "method": {
            "automatic": True,
            "score ties": "order of the step before",
            "indexing": {
                "tokenizer": "org.apache.lucene.analysis.standard.StandardTokenizer",
                "stemmer": "org.apache.lucene.analysis.en.PorterStemFilter",
                "stopwords": "org.apache.lucene.analysis.en.EnglishAnalyzer.ENGLISH_STOP_WORDS_SET",
            },
            "retrieval": [dict(step) for step in description["retrieval"]],
        },
        "data": {"test collection": dict(description["collection"])},
    }
    return yaml.safe_dump(content, sort_keys=False, width=120, allow_unicode=True)


def _platform() -> dict[str, Any]:
    libraries = [f"{name.lower()}=={number}" for name, number in versions().items()]
    return {
        "hardware": {"cpu": {"architecture": platform.machine(), "number of cores": os.cpu_count()}},
        "operating system": {"kernel": f"{platform.system()} {platform.release()}"},
        "software": {"libraries": {"python": libraries}, "retrieval toolkit": [f"pyserini=={version('pyserini')}"]},
    }
