"""Opening a test collection: index, topics, judgements, and the run of the first stage. Shared by all studies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as AnyOf
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from greylag.base import (
    CollectionError,
    DependencyError,
    Names,
    ParameterError,
    Run,
    file_stamps,
    marked,
    naming,
    read_mark,
    scratch_folder,
)
from greylag.evaluation import FUSIONS, Qrels, SubtopicQrels, fuse_runs, parse_fusion, read_run
from greylag.index import (
    STOP_LISTS,
    LuceneIndex,
    PositionalIndex,
    QueryForm,
    Search,
    StopWords,
    build_index,
    folders,
    read_documents,
    read_stop_words,
    start_jvm,
)
from greylag.passages import named_qrels, named_topics, write_documents
from greylag.studies.config import Experiment, InputFile, Positive, Settings, readable_by
from greylag.studies.study import Context

IRDS, RUN = "irds:", "run:"  # before the name of a data set of ir_datasets, and the file of a run


class Collection(Settings):
    """Documents: files, which the study indexes, or an index."""

    docs: InputFile | None = None
    """A file or folder of documents, or irds:NAME, the documents of a data set of ir_datasets."""
    index: InputFile | None = None
    """Instead of documents: a folder with an index of greylag, Anserini or Pyserini, or a name of Pyserini's prebuilt
    indexes, such as msmarco-v1-passage-full.
    """
    type: Literal["JsonCollection", "TrecCollection", "HtmlCollection", "TableCollection"] | None = None
    """The format of the documents, if the files do not tell it."""
    fields: str | None = None
    """The fields to index, ``id=FIELD,contents=FIELD+FIELD``."""
    language: str = "en"
    """The language of the documents, such as German or de; or whitespace, which keeps words unchanged."""
    java: Literal["required", "optional"] = "required"
    """With optional, documents are indexed in memory and searched by BM25 alone where there is no Java."""

    @property
    def name(self) -> str:
        """The documents or the index, as the file names them."""
        return self.docs or self.index or ""  # `check` has seen that there is one

    @model_validator(mode="after")
    def check(self) -> Self:
        """Check that there are documents or an index."""
        if (self.docs is None) == (self.index is None):
            raise ValueError("give docs, which are indexed, or an index, and not both")
        indexing = {"type", "fields", "language", "java"} & self.model_fields_set
        if indexing and (self.index is not None or (self.name.startswith(IRDS) and indexing != {"language"})):
            raise ValueError(
                f"{', '.join(sorted(indexing))}: these say how files are indexed, and {self.name} is no file"
            )
        return self


def read_source(text: str) -> Search | None:
    """Read the search that a first stage names; None for ``run:FILE``."""
    return None if text.startswith(RUN) else Search.parse(text)


def names_of(spellings: Sequence[str], short: Sequence[str]) -> list[str]:
    """Return the short names of spellings; those that share one are named in full, as a file may be."""
    return [
        spelling.replace(" ", "").replace("/", "-") if short.count(name) > 1 else name
        for name, spelling in zip(short, spellings, strict=True)
    ]


SourceText = Annotated[
    str, readable_by(read_source), Names(lambda text: [text.removeprefix(RUN)] if text.startswith(RUN) else [])
]
"""A search as `Search.parse` reads it, or ``run:FILE``."""


class FirstStage(Settings):
    """The rankings that are reranked: a search, a run, or the union of several."""

    model: Annotated[
        tuple[SourceText, ...],
        Field(min_length=1),
        BeforeValidator(lambda one: (one,) if isinstance(one, str) else tuple(one) if isinstance(one, list) else one),
    ] = ("bm25",)
    """A search as for greylag search --model: bm25 or ql, with parameters, as in bm25(k1=1.2,b=0.75), and expanded, as
    in bm25+rm3(fb_docs=5). Or run:FILE, a TREC run. Of several in a list, documents of any are candidates.
    """
    hits: Positive = 1000
    """Number of documents per topic, of each search and of the union; a run alone is reranked as it is."""
    fusion: Annotated[str, readable_by(parse_fusion)] = "rrf"
    """The fusion of several rankings, as for greylag fuse --method: rrf, rrf(rank_constant=10), combsum or combmnz."""

    @model_validator(mode="after")
    def check(self) -> Self:
        """Check that rankings differ in their names, and that there is a weight for each, or none."""
        parse_fusion(self.fusion).check_number(len(self.model))
        names = [name for name, _ in self.sources]
        for name, text in self.sources:
            # Two searches of a name are told apart by their parameters, but run:PATH cannot be the tag of a run.
            if name.startswith(RUN) or names.count(name) > 1 or (len(names) > 1 and name in FUSIONS):
                raise ValueError(f"model: {text} has the name of another ranking: rename the file, or leave one out")
        return self

    @property
    def sources(self) -> list[tuple[str, str]]:
        """The name of each ranking, and its spelling."""
        short = [
            search.name if (search := read_source(text)) else Path(text[len(RUN) :]).name.split(".")[0]
            for text in self.model
        ]
        return list(zip(names_of(self.model, short), self.model, strict=True))

    @property
    def name(self) -> str:
        """The tag of the rankings: the name of a search without its parameters, of a run, or of a fusion."""
        sources = self.sources
        return sources[0][0] if len(sources) == 1 else parse_fusion(self.fusion).name

    @property
    def search(self) -> Search:
        """The search, of a study that needs a single one."""
        search = read_source(self.model[0]) if len(self.model) == 1 else None
        if search is None:
            raise ParameterError(f"first_stage.model: this study has a single search, not {', '.join(self.model)}")
        return search


class Queries(Settings):
    """Shortening of topics to queries, for the searches and all systems."""

    field: str = "title"
    """The field of a TREC topic that is searched for: title or desc."""
    first_sentence: bool = False
    """Use only the first sentence."""
    stop_words: StopWords | None = None
    """Words to leave out: the list lucene or scikit-learn, or a file with one word per line."""


class CollectionSettings(Experiment):
    """A test collection and its search."""

    collection: Collection
    topics: InputFile
    """The topics: a file (TSV, TREC or BEIR's), irds:NAME, or a name of Pyserini."""
    qrels: InputFile
    """The relevance judgements: a file (TREC's or BEIR's), irds:NAME, or a name of Pyserini."""
    lenient: bool = False
    """Skip lines of topics, judgements and runs that cannot be read, with a warning each, instead of ending."""
    queries: Queries = Queries()
    first_stage: FirstStage = FirstStage()

    def read(self) -> tuple[dict[str, str], Qrels, tuple[str, ...]]:
        """Read topics, judgements, and which of the topics the results are of."""
        topics, qrels = self.judged(self.topics, self.qrels)
        return topics, qrels, tuple(topics)

    def judged(self, topics: str, qrels: str) -> tuple[dict[str, str], Qrels]:
        """Read the topics and the judgements of these files or names, which have topics in common."""
        texts = named_topics(self.path(topics), name=topics, field=self.queries.field, lenient=self.lenient)
        judgements = named_qrels(self.path(qrels), name=qrels, lenient=self.lenient)
        if not any(qid in judgements for qid in texts):
            raise ParameterError(
                f"{qrels} and {topics} have no topic in common "
                f"({next(iter(judgements), 'none')!r} against {next(iter(texts), 'none')!r})"
            )
        return texts, judgements

    def search(
        self, lucene: LuceneIndex | PositionalIndex, topics: Mapping[str, str], context: Context
    ) -> tuple[Run, ...]:
        """Search the rankings of the first stage, each a run."""
        stage, runs = self.first_stage, []
        for name, text in stage.sources:
            if (search := read_source(text)) is not None:
                with naming(f"first_stage.model {text}"):
                    source = search.source(lucene, stage.hits)
                run = source.run(topics, n_jobs=context.n_jobs, tag=name)
                context.progress(f"search: {len(topics)} topics, top {stage.hits} documents by {name}")
            else:
                path = self.path(text.removeprefix(RUN))
                read = read_run(path, topics, lenient=self.lenient)
                run = Run(read.rankings, marked(name, read.tag))
                context.progress(f"first stage: {len(run)} of {len(topics)} topics, {path}")
            runs.append(run)
        return tuple(runs)

    def read_subtopics(self, tested: Sequence[str]) -> SubtopicQrels:
        """Read judgements by subtopic, of these topics; a study without any has none."""
        return {}


@dataclass(frozen=True)
class OpenCollection:
    """An open test collection."""

    lucene: LuceneIndex | PositionalIndex
    """The index that is searched; `index` itself where Java is missing."""
    index: PositionalIndex
    topics: dict[str, str]
    """Texts by qid."""
    qrels: Qrels
    first: Run
    """The rankings of the first stage."""
    query_form: QueryForm
    """The shortening of topics to queries."""
    texts: Callable[[AnyOf[str]], dict[str, str]] = field(default=lambda docids: {}, repr=False)
    """From docids to the texts of documents; none if the index does not store them."""
    tested: tuple[str, ...] = ()
    """The topics that the results are of."""
    sources: tuple[Run, ...] = ()
    """The rankings that `first` is the union of, or `first` alone."""
    subtopics: SubtopicQrels = field(default_factory=dict)
    """The judgements by subtopic, if the study has any."""


def open_collection(settings: CollectionSettings, context: Context) -> OpenCollection:
    """Read topics and judgements, check the settings, open the index (building it if necessary), and search."""
    stop = settings.queries.stop_words
    words = frozenset() if stop is None else read_stop_words(stop if stop in STOP_LISTS else settings.path(stop))
    form = QueryForm(settings.queries.first_sentence, words)
    # Files are read before an index is built, which may take hours.
    texts_of, qrels, tested = settings.read()
    topics = {qid: form.shorten(text) for qid, text in texts_of.items()}
    subtopics = settings.read_subtopics(tested)
    documents = settings.collection
    lucene, known = open_documents(documents, settings.path, context)
    sources, stage = settings.search(lucene, topics, context), settings.first_stage
    first = sources[0] if len(sources) == 1 else fuse_runs(sources, stage.fusion).head(stage.hits)
    index = lucene if isinstance(lucene, PositionalIndex) else PositionalIndex.from_lucene(lucene)
    # An index need not store texts, so a report reads those that it shows from the documents.
    texts = partial(texts_of_documents, lucene, index, known)
    return OpenCollection(lucene, index, topics, qrels, first, form, texts, tested, sources, subtopics)


def open_documents(
    named: Collection, place: Callable[[str], Path], context: Context
) -> tuple[LuceneIndex | PositionalIndex, Mapping[str, str]]:
    """Open an index, or that of documents, built if it is missing: in memory, with texts, if Java may be, and is."""
    try:
        if named.java == "optional":
            start_jvm()
    except DependencyError:
        texts = dict(read_documents(place(named.name), collection=named.type, fields=named.fields))
        index = PositionalIndex.from_texts(texts, language=named.language)
        how = "in memory and for BM25 alone, as Java is missing (greylag doctor says more)"
        context.progress(f"index: {index.n_documents} documents, {how}")
        return index, texts
    if named.index is not None:
        path = place(named.index)
        return LuceneIndex(folders(path if path.exists() else named.index, positions=True)), {}
    docs = named.name if named.name.startswith(IRDS) else place(named.name)
    return open_index(docs, named.type, context, fields=named.fields, language=named.language), {}


def texts_of_documents(
    lucene: LuceneIndex | PositionalIndex, index: PositionalIndex, known: Mapping[str, str], docids: AnyOf[str]
) -> dict[str, str]:
    """Return texts by docid: of an index in memory those that are known, of Lucene's those that it stores."""
    if isinstance(lucene, PositionalIndex):
        return {docid: known[docid] for docid in docids if docid in known}
    # Numbers of unknown documents are negative, and Lucene has no text of them.
    numbers = index.documents([*docids])
    texts = lucene.texts_of(numbers[numbers >= 0].tolist())
    return dict(zip(compress(docids, (numbers >= 0).tolist()), texts, strict=False))


def open_index(
    docs: Path | str, form: str | None, context: Context, *, fields: str | None = None, language: str = "en"
) -> LuceneIndex:
    """Open the index of `docs` in the study's folder, built if it is missing or if the documents have changed.

    Only an index that a study built is ever replaced. Documents are a file or folder, or ``irds:NAME``; `form` is their
    collection class. The others are as for `build_index`.

    Raises
    ------
    CollectionError
        If `docs` does not exist or cannot be indexed.
    ParameterError
        If the study's folder has something else under the name of the index.
    """
    named = str(docs).startswith(IRDS)
    if not named and not Path(docs).exists():
        where = "paths are relative to the experiment file, or its folder 'data', which GREYLAG_DATA replaces"
        raise CollectionError(f"{docs}: no such documents; {where}")
    folder = context.folder / "index"
    stamps = [] if named else file_stamps(Path(docs))
    name = str(docs) if named else Path(docs).name
    origin = json.dumps({"docs": name, "type": form, "fields": fields, "language": language, "files": stamps})
    # The mark says what the index was built of. Without a study's mark, it is the user's, and is never replaced.
    built = read_mark(folder)
    if built == origin:
        context.progress(f"index: {folder}, built before")
    else:
        build = partial(build_index, out=folder, language=language, origin=origin, overwrite=built.startswith("{"))
        with scratch_folder() as scratch:  # Anserini indexes files alone
            written = write_documents(str(docs), scratch / "docs.jsonl") if named else Path(docs)
            n = build(written, collection=form, fields=fields)
        context.progress(f"index: {n} documents, in {folder}")
    return LuceneIndex(folder)
