"""The documentation's code blocks, run: those of the README and of every page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import greylag

ROOT = Path(__file__).parents[2]
DEMO = Path(greylag.__file__).parent / "demo"


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def lay_out(folder: Path) -> None:
    """Put the files that the blocks read into a folder: the demonstration collection and files made from it."""
    for name in ("docs.jsonl", "topics.tsv", "qrels.txt", "qrels.subtopics.txt"):
        shutil.copy(DEMO / name, folder)
    docids = [json.loads(line)["id"] for line in (folder / "docs.jsonl").read_text().splitlines()]
    (folder / "pagerank.tsv").write_text("".join(f"{docid}\t{1 / n}\n" for n, docid in enumerate(docids[:600], 1)))
