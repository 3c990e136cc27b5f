"""A test collection, opened: index, topics, judgements and the first stage's run. The one opening for all studies."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from greylag.errors import CollectionError
from greylag.experiments.config import Experiment, Positive, Settings
from greylag.experiments.study import Context
from greylag.files import write_text
from greylag.index.positional import PositionalIndex
from greylag.lucene.build import build_index
from greylag.lucene.lucene_index import BM25, LuceneIndex, QueryLikelihood
from greylag.ranking import Run
from greylag.trec import Qrels, read_qrels, read_topics


class Collection(Settings):
    """Documents.

    Parameters
    ----------
    docs : str
        A file or folder.
    type : str, default: recognised from the files
        Anserini's name for their format.
    """

    docs: str
    type: Literal["JsonCollection", "TrecCollection", "HtmlCollection"] | None = None


class FirstStage(Settings):
    """The ranking that is reranked.

    Parameters
    ----------
    model : "bm25" (default) or "ql"
        BM25, or query likelihood with Dirichlet smoothing.
    hits : int, default 1000
        Documents per topic.
    k1, b : float, default 0.9 and 0.4
        BM25's parameters.
    mu : float, default 1000
        Query likelihood's parameter.
    """

    model: Literal["bm25", "ql"] = "bm25"
    hits: Positive = 1000
    k1: float = 0.9
    b: float = 0.4
    mu: float = 1000.0

    def source(self, lucene: LuceneIndex, model: str | None = None) -> BM25 | QueryLikelihood:
        """The search with this model, or with the named one."""
        if (model or self.model) == "bm25":
            return lucene.bm25(self.hits, k1=self.k1, b=self.b)
        return lucene.ql(self.hits, mu=self.mu)


class CollectionSettings(Experiment):
    """A test collection, and how it is searched.

    Parameters
    ----------
    collection : Collection
    topics, qrels : str
        Paths below the data folder.
    lenient : bool, default False
        Repair faults in topics and judgements that can be repaired, and log them.
    first_stage : FirstStage
    """

    collection: Collection
    topics: str
    qrels: str
    lenient: bool = False
    first_stage: FirstStage = FirstStage()


@dataclass(frozen=True)
class OpenCollection:
    """An open test collection.

    Parameters
    ----------
    lucene : LuceneIndex
    index : PositionalIndex
    topics : dict of qid to text
    qrels : Qrels
    first : Run
        The first stage's rankings.
    """

    lucene: LuceneIndex
    index: PositionalIndex
    topics: dict[str, str]
    qrels: Qrels
    first: Run


def open_collection(settings: CollectionSettings, context: Context) -> OpenCollection:
    """Read topics and judgements, open the index (building it first if need be), and search."""
    topics = read_topics(settings.path(settings.topics), lenient=settings.lenient)
    qrels = read_qrels(settings.path(settings.qrels), lenient=settings.lenient)
    lucene = open_index(settings.path(settings.collection.docs), settings.collection.type, context)
    stage = settings.first_stage
    first = stage.source(lucene).run(topics, n_jobs=context.n_jobs, tag=stage.model)
    context.progress(f"search: {len(topics)} topics, top {stage.hits} documents by {stage.model}")
    return OpenCollection(lucene, PositionalIndex.from_lucene(lucene), topics, qrels, first)


def open_index(docs: Path, form: str | None, context: Context) -> LuceneIndex:
    """The index of `docs` in the study's folder, built if it is missing or if the documents have changed since.

    Parameters
    ----------
    docs : Path
        A file or folder.
    form : str or None
        The collection class, as for `build_index`.
    """
    if not docs.exists():
        raise CollectionError(f"{docs}: no such documents; set GREYLAG_DATA to the folder that holds the collections")
    folder = context.folder / "index"
    made_from = json.dumps({"docs": docs.name, "type": form, "files": _listing(docs)}) + "\n"
    note = folder.with_name(f"{folder.name}.json")
    if folder.exists() and note.exists() and note.read_text(encoding="utf-8") == made_from:
        context.progress(f"index: {folder}, built before")
        return LuceneIndex(folder)
    shutil.rmtree(folder, ignore_errors=True)
    n = build_index(docs, folder, collection=form)
    write_text(note, made_from)
    context.progress(f"index: {n} documents, in {folder}")
    return LuceneIndex(folder)


def _listing(docs: Path) -> list[tuple[str, int, int]]:
    """The name, size and time of change of each file."""
    files = sorted(path for path in docs.rglob("*") if path.is_file()) if docs.is_dir() else [docs]
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
