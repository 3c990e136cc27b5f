"""A small collection and its Lucene index."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from greylag.lucene.build import build_index

TEXTS = {
    "d3": "New York city and the Bank of America's tower",
    "d1": "the big apple: New York, New Jersey",
    "d2": "York minster, york; YORK 3.5 re-indexed",
}


def make_index(folder: Path, texts: dict[str, str]) -> Path:
    docs = folder / "docs.jsonl"
    docs.write_text("".join(json.dumps({"id": docid, "contents": text}) + "\n" for docid, text in texts.items()))
    shutil.rmtree(folder / "index", ignore_errors=True)
    build_index(docs, folder / "index")
    return folder / "index"
