"""Two parts of the demonstration's topics as collections, and a stand-in for an encoder."""

import numpy as np

from tests.greylag.studies.samples import DEMO

COLLECTION = {"docs": str(DEMO / "docs.jsonl"), "type": "JsonCollection"}


def two_parts(folder, settings, second=COLLECTION, **fields):
    lines, parts = (DEMO / "topics.tsv").read_text().splitlines(keepends=True), {}
    for name, topics, collection in (("one", lines[:14], COLLECTION), ("two", lines[14:], second)):
        (folder / f"{name}.tsv").write_text("".join(topics))
        parts[name] = {"collection": collection, "topics": f"{name}.tsv", "qrels": str(DEMO / "qrels.txt")}
    made = settings.model_validate({"name": "small", "collections": parts, **fields})
    return made.model_copy(update={"data_folder": folder, "file_folder": folder})


def lengths(text):
    """Letters' frequencies, of unit length."""
    counts = np.array([text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"], dtype=float)
    return np.asarray(counts / np.linalg.norm(counts))
