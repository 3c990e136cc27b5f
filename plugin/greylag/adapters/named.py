"""Topics and judgements by name, of Pyserini and of ir_datasets, as on the command line."""

from __future__ import annotations

from pathlib import Path

from greylag.adapters.ir_datasets import qrels_from_ir_datasets, topics_from_ir_datasets
from greylag.adapters.pyserini import topics_from_pyserini
from greylag.errors import CollectionError
from greylag.index.lucene.prebuilt import fetched, may_be_name, pyserini_module
from greylag.trec import Qrels, read_qrels


def named_topics(path: str | Path, *, field: str = "title") -> dict[str, str] | None:
    """Read query texts by qid, of ``irds:NAME`` or of Pyserini's topics of this name; None if it is no such name.

    Parameters
    ----------
    path : str or Path
    field : str, default "title"
        The field to search for. Topics of ir_datasets that have no title are searched by their text.
    """
    name = str(path)
    if name.startswith("irds:"):
        return topics_from_ir_datasets(name, field=None if field == "title" else field)
    if not may_be_name(path):
        return None
    topics = fetched(lambda: pyserini_module("search").get_topics(name), f"topics {name}", unknown="Not Found")
    return None if topics is None else topics_from_pyserini(topics, field=field)


def named_qrels(path: str | Path) -> Qrels | None:
    """Read judgements of ``irds:NAME`` or Pyserini's of this name; None if `path` is no such name.

    They are read from the file that Pyserini downloads, as its ``get_qrels`` drops leading zeros of identifiers.
    """
    name = str(path)
    if name.startswith("irds:"):
        return qrels_from_ir_datasets(name)
    if not may_be_name(path):
        return None
    downloaded = fetched(
        lambda: pyserini_module("search").get_qrels_file(name), f"judgements {name}", unknown="no qrels file"
    )
    if downloaded is None:
        return None
    file = Path(downloaded)
    if not file.stat().st_size:  # Pyserini leaves an empty file behind if a download fails, and takes it next time
        raise CollectionError(f"{file}, Pyserini's judgements {name}, is empty: delete it, and download it again")
    return read_qrels(file)
