"""Topics and judgements of files, or by name: of Pyserini and of ir_datasets, as on the command line."""

from __future__ import annotations

from pathlib import Path

from greylag.base import CollectionError
from greylag.evaluation import Qrels, read_qrels, read_topics


def named_topics(
    path: str | Path, *, name: str | None = None, field: str = "title", lenient: bool = False
) -> dict[str, str]:
    """Read query texts by qid, of a file or, without such a file, of ``irds:NAME`` or Pyserini's topics of this name.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        The name, if it is not that of the path.
    field : str, default "title"
        The field to search for. Topics of ir_datasets that have no title are searched by their text.
    lenient : bool, default False
        Repair faults of a file and log them, instead of raising.
    """
    name = str(path) if name is None else name
    # A file of that name comes first, so that a new name of a package never changes what a command reads.
    if not Path(path).exists():
        from greylag.index import fetched, may_be_name, pyserini_module  # and what starts Java, for names alone
        from greylag.passages.adapters.ir_datasets import topics_from_ir_datasets
        from greylag.passages.adapters.pyserini import topics_from_pyserini

        if name.startswith("irds:"):
            return topics_from_ir_datasets(name, field=None if field == "title" else field)
        if may_be_name(name):
            topics = fetched(lambda: pyserini_module("search").get_topics(name), f"topics {name}", unknown="Not Found")
            if topics is not None:
                return topics_from_pyserini(topics, field=field)
    return read_topics(path, field=field, lenient=lenient)


def named_qrels(path: str | Path, *, name: str | None = None, lenient: bool = False) -> Qrels:
    """Read judgements by the parameters of `named_topics`: of a file, ``irds:NAME`` or Pyserini's of this name."""
    name = str(path) if name is None else name
    if Path(path).exists():
        return read_qrels(path, lenient=lenient)
    from greylag.index import fetched, may_be_name, pyserini_module
    from greylag.passages.adapters.ir_datasets import qrels_from_ir_datasets

    if not (name.startswith("irds:") or may_be_name(name)):
        return read_qrels(path, lenient=lenient)
    if name.startswith("irds:"):
        return qrels_from_ir_datasets(name)
    # The file that Pyserini downloads, as its get_qrels drops leading zeros of identifiers
    file = fetched(lambda: pyserini_module("search").get_qrels_file(name), f"judgements {name}", "no qrels file")
    if file and not Path(file).stat().st_size:  # Pyserini keeps an empty file of a failed download, and takes it next
        raise CollectionError(f"{file}, Pyserini's judgements {name}, is empty: delete it, and download it again")
    return read_qrels(file or path, lenient=lenient)
