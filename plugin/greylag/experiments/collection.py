"""Opening a test collection: index, topics, judgements, and the run of the first stage. Shared by all studies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as AnyOf
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from greylag.errors import CollectionError, DependencyError, ParameterError
from greylag.experiments.config import Experiment, InputFile, Positive, Settings
from greylag.experiments.study import Context
from greylag.index.analysis import STOP_LISTS, QueryForm, StopWords, read_stop_words
from greylag.index.expansion import EXPANSIONS
from greylag.index.positional import PositionalIndex
from greylag.lucene.build import build_index
from greylag.lucene.documents import read_documents, read_texts
from greylag.lucene.jvm import start_jvm
from greylag.lucene.lucene_index import LuceneIndex, SearchModel
from greylag.pipeline import Source
from greylag.ranking import Run
from greylag.runtime.files import file_stamps
from greylag.runtime.folders import read_mark
from greylag.trec import Qrels, read_qrels, read_topics


class Collection(Settings):
    """Documents."""

    docs: InputFile
    """A file or folder."""
    type: Literal["JsonCollection", "TrecCollection", "HtmlCollection", "TableCollection"] | None = None
    """The format, if the files do not tell it."""
    fields: str | None = None
    """The fields to index, ``id=FIELD,contents=FIELD+FIELD``."""
    language: str = "en"
    """The language of the texts, such as de, by Anserini's analyzers; or whitespace."""
    java: Literal["required", "optional"] = "required"
    """Whether documents are indexed in memory, and searched by BM25 alone, where there is no Java."""


class FirstStage(Settings):
    """The search whose rankings are reranked."""

    model: SearchModel = "bm25"
    """BM25, or query likelihood with Dirichlet smoothing; with a plus, expanded as in `greylag.index.RM3Search` or
    `greylag.index.RocchioSearch`.
    """
    hits: Positive = 1000
    """Number of documents per topic."""
    k1: Annotated[float, Field(ge=0)] = 0.9
    """Saturation of term frequency by BM25."""
    b: Annotated[float, Field(ge=0, le=1)] = 0.4
    """Length normalisation of BM25."""
    mu: Annotated[float, Field(gt=0)] = 1000.0
    """Parameter of query likelihood."""
    fb_terms: Positive = 10
    """Expansion terms."""
    fb_docs: Positive = 10
    """Feedback documents of the expansion."""
    original_query_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Weight of the query in RM3."""
    bottom_fb_terms: Positive = 10
    """Expansion terms of Rocchio from the last documents."""
    bottom_fb_docs: Positive = 10
    """Last documents as feedback of Rocchio, if gamma is above 0."""
    alpha: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the query in Rocchio."""
    beta: Annotated[float, Field(ge=0)] = 0.75
    """Weight of the top documents in Rocchio."""
    gamma: Annotated[float, Field(ge=0)] = 0.0
    """Weight of the last documents in Rocchio."""

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the model, by name."""
        names = ("k1", "b") if self.model.startswith("bm25") else ("mu",)
        return {**{name: getattr(self, name) for name in names}, **self._of_expansion(self.model)}

    def source(self, lucene: LuceneIndex | PositionalIndex, model: SearchModel | None = None) -> Source:
        """The search with this model, or with `model` if given. A positional index has BM25 alone."""
        model = model or self.model
        if model == "bm25":
            return lucene.bm25(self.hits, k1=self.k1, b=self.b)
        if isinstance(lucene, PositionalIndex):
            raise ParameterError(f"first_stage.model: {model} needs Java, without which bm25 alone searches")
        first = (
            lucene.bm25(self.hits, k1=self.k1, b=self.b)
            if model.startswith("bm25")
            else lucene.ql(self.hits, mu=self.mu)
        )
        expansion = model.partition("+")[2]
        return EXPANSIONS[expansion](first, **self._of_expansion(model)) if expansion else first

    def _of_expansion(self, model: SearchModel) -> dict[str, Any]:
        """The parameters of the model's expansion, by name."""
        expansion = model.partition("+")[2]
        known = [part.name for part in fields(EXPANSIONS[expansion]) if part.name != "first"] if expansion else []
        return {name: getattr(self, name) for name in known}


class Queries(Settings):
    """How the texts of topics become queries."""

    field: str = "title"
    """The field of a TREC topic that is searched for: title or desc."""
    first_sentence: bool = False
    """Whether to use only the first sentence."""
    stop_words: StopWords | None = None
    """A stop list, as in `read_stop_words`; a file is below the data folder. Its words are removed."""


class CollectionSettings(Experiment):
    """A test collection and how it is searched."""

    collection: Collection
    topics: InputFile
    """Path of the topics (TSV or TREC)."""
    qrels: InputFile
    """Path of the relevance judgements (TREC)."""
    lenient: bool = False
    """Repair and log faults in topics and judgements instead of raising an error."""
    queries: Queries = Queries()
    first_stage: FirstStage = FirstStage()

    def read(self) -> tuple[dict[str, str], Qrels, tuple[str, ...]]:
        """Topics, judgements, and which of the topics the results are of."""
        topics, qrels = self.judged(self.topics, self.qrels)
        return topics, qrels, tuple(topics)

    def judged(self, topics: str, qrels: str) -> tuple[dict[str, str], Qrels]:
        """The topics and the judgements of these files, which have topics in common."""
        texts = read_topics(self.path(topics), field=self.queries.field, lenient=self.lenient)
        judgements = read_qrels(self.path(qrels), lenient=self.lenient)
        if not any(qid in judgements for qid in texts):
            raise ParameterError(
                f"{self.path(qrels)} and {self.path(topics)} have no topic in common "
                f"({next(iter(judgements), 'none')!r} against {next(iter(texts), 'none')!r})"
            )
        return texts, judgements

    def search(self, lucene: LuceneIndex | PositionalIndex, topics: Mapping[str, str], context: Context) -> Run:
        """The rankings of the first stage."""
        stage = self.first_stage
        run = stage.source(lucene).run(topics, n_jobs=context.n_jobs, tag=stage.model)
        context.progress(f"search: {len(topics)} topics, top {stage.hits} documents by {stage.model}")
        return run

    def check(self, topics: Sequence[str]) -> None:
        """Check what can be checked before any work. Studies add to it.

        Parameters
        ----------
        topics : sequence of str
            The topics of the collection.
        """


@dataclass(frozen=True)
class OpenCollection:
    """An open test collection.

    Parameters
    ----------
    lucene : LuceneIndex or PositionalIndex
        What is searched; where Java is missing, `index`.
    index : PositionalIndex
    topics : dict of qid to text
    qrels : Qrels
    first : Run
        The rankings of the first stage.
    query_form : QueryForm
        How the texts of topics became queries.
    texts : callable, default knows none
        From docids to the texts of documents, read again from their files.
    tested : tuple of str, default ()
        The topics that the results are of.
    """

    lucene: LuceneIndex | PositionalIndex
    index: PositionalIndex
    topics: dict[str, str]
    qrels: Qrels
    first: Run
    query_form: QueryForm
    texts: Callable[[AnyOf[str]], dict[str, str]] = field(default=lambda docids: {}, repr=False)
    tested: tuple[str, ...] = ()


def open_collection(settings: CollectionSettings, context: Context) -> OpenCollection:
    """Read topics and judgements, check the settings, open the index (building it if necessary), and search."""
    form = QueryForm(settings.queries.first_sentence, stop_words_of(settings))
    texts_of, qrels, test = settings.read()
    topics = {qid: form.shorten(text) for qid, text in texts_of.items()}
    settings.check(list(topics))
    made = settings.collection
    lucene = _open_index(settings, context)
    first = settings.search(lucene, topics, context)
    texts = partial(read_texts, settings.path(made.docs), collection=made.type, fields=made.fields)
    index = lucene if isinstance(lucene, PositionalIndex) else PositionalIndex.from_lucene(lucene)
    return OpenCollection(lucene, index, topics, qrels, first, form, texts, test)


def _open_index(settings: CollectionSettings, context: Context) -> LuceneIndex | PositionalIndex:
    """The index of the collection, in memory if Java may be missing and is."""
    made = settings.collection
    docs = settings.path(made.docs)
    try:
        if made.java == "optional":
            start_jvm()
    except DependencyError:
        texts = read_documents(docs, collection=made.type, fields=made.fields)
        index = PositionalIndex.from_texts(texts, language=made.language)
        how = "in memory and for BM25 alone, as Java is missing (greylag doctor says more)"
        context.progress(f"index: {index.n_documents} documents, {how}")
        return index
    return open_index(docs, made.type, context, fields=made.fields, language=made.language)


def stop_words_of(settings: CollectionSettings) -> frozenset[str]:
    """The stop list that the settings name."""
    name = settings.queries.stop_words
    if name is None:
        return frozenset()
    return read_stop_words(name if name in STOP_LISTS else settings.path(name))


def open_index(
    docs: Path, form: str | None, context: Context, *, fields: str | None = None, language: str = "en"
) -> LuceneIndex:
    """The index of `docs` in the study's folder, built if it is missing or if the documents have changed.

    Only an index that a study built is ever replaced.

    Parameters
    ----------
    docs : Path
        A file or folder.
    form : str or None
        The collection class, as for `build_index`.
    fields, language
        As for `build_index`.

    Raises
    ------
    CollectionError
        If `docs` does not exist or cannot be indexed.
    ParameterError
        If the study's folder has something else under the name of the index.
    """
    if not docs.exists():
        where = "paths are relative to the experiment file, or its folder 'data', which GREYLAG_DATA replaces"
        raise CollectionError(f"{docs}: no such documents; {where}")
    folder = context.folder / "index"
    origin = json.dumps(
        {"docs": docs.name, "type": form, "fields": fields, "language": language, "files": file_stamps(docs)}
    )
    built = read_mark(folder)
    if built == origin:
        context.progress(f"index: {folder}, built before")
    else:
        build = partial(build_index, docs, folder, collection=form, fields=fields, language=language)
        n = build(origin=origin, overwrite=built.startswith("{"))
        context.progress(f"index: {n} documents, in {folder}")
    return LuceneIndex(folder)
