"""How a run was made (ir_metadata)."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from greylag.evaluation import parse_measure
from greylag.ranking import Run
from greylag.runtime.software import versions


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
