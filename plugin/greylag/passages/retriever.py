"""Hybrid retrieval for a service: passages and an encoder in, passages with all of their scores out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from greylag.base import (
    BoolArray,
    FormatError,
    IntArray,
    ParameterError,
    PassagesLike,
    Query,
    Stage,
    VectorsLike,
    as_identifier,
    as_passages,
    as_qrels,
    check_counts,
    check_fractions,
    check_number,
    check_sequences,
    check_text,
    group_name,
    guided,
    is_missing,
    map_arrays,
    naming,
    open_atomically,
    parallel_map,
    parse_json,
    refuse_attribute,
    shown,
    unique_ids,
    write_mappable,
)
from greylag.diversity import MMR, GroupLimit, NearDuplicates
from greylag.index import (
    ArrayVectors,
    Dense,
    Numbered,
    PositionalIndex,
    opened_index,
    packed_index,
    spliced,
    unit_rows,
)
from greylag.passages.held import PLAIN, HeldPassages, Passage
from greylag.passages.reranking import Encoder, check_field
from greylag.rankers import Explanation, explain
from greylag.recipes import Among, HybridScores, HybridSearch, general_model_for

Where = Mapping[str, Any] | Callable[[Mapping[str, Any]], bool]
"""Values by field, of which a passage has one, or a predicate over all fields; ``id`` and ``text`` are fields."""
_VERSION = b"4"  # of the file
_BATCH = 256  # texts for a call of the encoder, which services limit
_LONG = 4  # bytes of a number, which all longer or other types are read as
_ROUNDED = 2.0**-10  # what float16 may lose of a vector's greatest number
_SAME = 0.99  # minimum cosine between two encodings of one text, in batches of different sizes
_PROBE = "What do geese eat?"  # its vector is the fingerprint of the query encoder
_ITEM = "index", "embedding"  # of OpenAI's items
_Held = TypeVar("_Held")
_FEWEST = 10  # questions for a threshold
_COMPARED = 5  # times k passages are compared for near-duplicates


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage that `HybridRetriever.search` found."""

    doc_id: str
    text: str
    fields: Mapping[str, Any]  # a copy of all else that the passage came with
    score: float  # of `greylag.recipes.HybridSearch`; limits change the order, and no score
    bm25: float
    general: float  # by the general model
    cosine: float
    confidence: float  # that it answers the query, see `greylag.recipes.HybridScores.confidence`; no probability
    rank: int  # from 1


@dataclass(frozen=True, slots=True)
class _Options:
    """What all queries of a call have in common."""

    k: int
    among: Among | None  # which passages are wanted
    stages: Sequence[Stage]
    max_per_group: int | None
    group: str
    min_confidence: float


@guided
class HybridRetriever:
    """Retrieves passages by words and vectors: `greylag.recipes.HybridSearch` over passages in memory.

    It never changes, so that threads may share it. When passages come or go, `with_passages` makes another one.

    Parameters
    ----------
    passages : sequence or mapping
        Texts, or mappings with a ``text`` and any other fields, such as ``source``; in a sequence also with an ``id``,
        by default the passage's number. The keys of a mapping, or the index of a Series of pandas, are identifiers.
        Integers become strings.
    encode, encode_query : callable, or an object with ``encode`` or ``embed``
        From a list of up to 256 texts to their vectors: ``encode`` of sentence-transformers, ``embed`` of fastembed, or
        a function that returns the answer of OpenAI's embeddings endpoint, whose items are put in the order of their
        ``index``. By default, `encode` encodes queries, too.
    vectors : array-like of float, shape (n, m), optional
        The passages' vectors, copied unless they are read-only, and kept in their type if that is shorter than float32;
        only three are then computed, to compare.
    language : str, default "en"
        See `greylag.PositionalIndex.from_texts`.
    depth : int >= 1, default 100
        The number of candidates by BM25, and of those by cosine.
    weight : float > 0, default 1
        How much cosines count, see `greylag.recipes.HybridSearch`; `learn_weight` finds it from judged questions.

    Raises
    ------
    ParameterError
        If a passage has no text, two have one identifier, or vectors are missing, not finite or not the encoder's.

    Examples
    --------
    >>> letters = lambda texts: [[text.count(letter) for letter in "acdgrost"] for text in texts]
    >>> retriever = HybridRetriever(["a cat sat", {"id": "p2", "text": "a dog ran", "source": "dogs.md"}], letters)
    >>> [(passage.doc_id, passage.fields) for passage in retriever.search("dogs", k=1)]
    [('p2', {'source': 'dogs.md'})]
    """

    def __init__(
        self,
        passages: PassagesLike,
        encode: Encoder | Any,
        *,
        encode_query: Encoder | Any = None,
        vectors: VectorsLike | None = None,
        language: str = "en",
        depth: int = 100,
        weight: float = 1.0,
    ) -> None:
        check_counts(depth=depth)
        given = _some(_passages(passages))
        docids, texts = tuple(given), [text for text, _ in given.values()]
        own = ArrayVectors(docids, _encoded(encode, texts) if vectors is None else vectors)
        rows = np.ascontiguousarray(own.array) if own.array.dtype.itemsize < _LONG else own.documents(docids)
        if vectors is not None:
            _compare_some(encode, given, own)
            rows = rows.copy() if rows.flags.writeable else rows  # the caller may write to its own
        index = PositionalIndex.from_texts(dict(zip(docids, texts, strict=True)), language=language)
        self._hold(HeldPassages.of(given), encode, encode_query, rows, index, language, depth, weight)
        self.search(texts[0], 1)  # compiles and decomposes now, and not for the first query

    def _hold(
        self,
        passages: HeldPassages,
        encode: Encoder | Any,
        encode_query: Encoder | Any,
        rows: Dense,
        index: PositionalIndex,
        language: str,
        depth: int,
        weight: float,
    ) -> None:
        """Hold passages with their vectors and the index of their texts."""
        self._passages, self._index = passages, index
        self._encode, self._encode_query = encode, encode_query or encode
        self._depth, self._language = int(depth), language
        self._fields = [*{"id", "text"}.union(passages.fields)]
        self._nested = [*passages.nested]  # those that a function could change; the others need no copy for each
        docids = Numbered.of(passages, index, np.arange(len(passages)))
        self._vectors = ArrayVectors(docids, rows, self._query_vector)
        self._hybrid = HybridSearch(index, self._vectors, k=depth, weight=weight)
        self._encoded: dict[str, Dense] = {}  # queries of the batches under way
        self._fields_read: dict[str, Any] = {}  # that were filtered by

    def __len__(self) -> int:
        return len(self._passages)

    def __repr__(self) -> str:
        return f"HybridRetriever({len(self)} passages, {self._vectors.array.shape[1]} dimensions)"

    def __contains__(self, doc_id: object) -> bool:
        return (str(doc_id) if isinstance(doc_id, Integral) else doc_id) in self._passages

    def __getitem__(self, doc_id: Any) -> dict[str, Any]:
        """Return a passage as it is given: a copy of its fields, with ``id`` and ``text``."""
        return {name: _copied(value) for name, value in self._own(self._known(doc_id)).items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._passages)

    @property
    def ids(self) -> list[str]:
        """The identifiers of all passages, in their order."""
        return [*self]

    def vectors(self, doc_ids: Iterable[Any]) -> Dense:
        """Return a copy of passages' vectors, such as of those found, shape (n, m); nothing is encoded again."""
        return self._vectors.documents([*map(self._known, _members(doc_ids))]).copy()

    if not TYPE_CHECKING:
        __getattr__ = refuse_attribute

    @guided
    def search(
        self,
        query: str,
        k: int = 10,
        *,
        where: Where | None = None,
        max_per_group: int | None = None,
        group: str | None = None,
        near_duplicates: float | None = None,
        mmr: float | None = None,
        min_confidence: float | None = None,
    ) -> list[RetrievedPassage]:
        """Retrieve passages, best first.

        Parameters
        ----------
        query : str
        k : int >= 1, default 10
            The number of passages; fewer if there are no more candidates.
        where : mapping or callable, optional
            Which passages are candidates: values by field, such as ``{"source": ["a.md", "b.md"]}``, or a function of a
            passage's fields; both with ``id`` and ``text`` included. An iterable, other than a string or a mapping,
            lists values: a passage has one of them, or a list with one. Numbers equal their text, as Python writes it.
        max_per_group : int >= 1, optional
            See `greylag.diversity.GroupLimit`.
        group : str, default "group"
            The field whose values are names of groups, as in `greylag.base.GroupsLike`; some passage has it.
        near_duplicates : float in [0, 1], optional
            The share of 3-grams of words from which `greylag.diversity.NearDuplicates` moves a passage behind others.
            The best 5 k passages are compared.
        mmr : float in [0, 1], optional
            The relevance weight of `greylag.diversity.MMR`, which picks k of the best 5 k passages by the passages'
            vectors: 1 keeps the order, less moves passages like those above them down.
        min_confidence : float, optional
            Passages with less `RetrievedPassage.confidence` are left out: where no passage has as much, nothing is
            found. `threshold` finds it from questions.
        """
        return self._search(query, self._options(k, where, max_per_group, group, near_duplicates, mmr, min_confidence))

    def _options(
        self,
        k: int,
        where: Where | None,
        max_per_group: int | None,
        group: str | None,
        near_duplicates: float | None,
        mmr: float | None,
        min_confidence: float | None,
    ) -> _Options:
        """Check the options of a search, for all of its queries."""
        check_counts(k=k)
        least = -math.inf if min_confidence is None else check_number(min_confidence, "min_confidence")
        if max_per_group is None:
            if group is not None:
                raise ParameterError(
                    f"group is {shown(group)}, which limits nothing by itself: give max_per_group=, too"
                )
        else:
            check_counts(max_per_group=max_per_group)
            check_field("group" if group is None else group, self._fields, "max_per_group")
        stages: list[Stage] = []
        if near_duplicates is not None:
            compared = _COMPARED * k
            with naming("near_duplicates"):
                stages.append(NearDuplicates(self._index, threshold=near_duplicates, depth=compared, k=compared))
        if mmr is not None:
            with naming("mmr"):
                stages.append(MMR(vectors=self._vectors, relevance_weight=mmr, depth=_COMPARED * k, k=k))
        return _Options(k, self._among(where), stages, max_per_group, "group" if group is None else group, least)

    def _search(self, query: str, options: _Options) -> list[RetrievedPassage]:
        scores = self._scores(query, options.among)
        confidence = scores.confidence
        ranking, every = scores.ranking(), max(1, len(scores.docids))
        if options.min_confidence > -math.inf:
            ranking = ranking.select(confidence >= options.min_confidence)
        for stage in options.stages:
            ranking = stage(ranking)
        if options.max_per_group is not None:
            if groups := self._groups(options.group, ranking.docids):
                ranking = GroupLimit(groups, options.max_per_group, depth=every, k=every)(ranking)
            elif not self._groups(options.group, self._passages):
                raise ParameterError(
                    f"max_per_group: the field {options.group!r} has no value, so that no limit would apply"
                )
        docids, places = ranking.docids[: options.k], dict(zip(scores.docids, count(), strict=False))
        columns = np.array([scores.scores, scores.bm25, scores.general, scores.cosines, confidence])
        rows = columns[:, [places[docid] for docid in docids]].T.tolist()
        passages = []
        for rank, (docid, (score, bm25, general, cosine, sure)) in enumerate(zip(docids, rows, strict=True), 1):
            text, fields = self._passages[docid]
            own = {name: _copied(value) for name, value in fields.items()}
            passages.append(RetrievedPassage(docid, text, own, score, bm25, general, cosine, sure, rank))
        return passages

    @guided
    async def asearch(self, query: str, k: int = 10, **options: Any) -> list[RetrievedPassage]:
        """Retrieve passages as `search` does, in a thread, so that an event loop goes on meanwhile."""
        from asyncio import to_thread  # which few need

        return await to_thread(self.search, query, k, **options)

    @guided
    def batch_search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        where: Where | None = None,
        max_per_group: int | None = None,
        group: str | None = None,
        near_duplicates: float | None = None,
        mmr: float | None = None,
        min_confidence: float | None = None,
        n_jobs: int | None = None,
    ) -> list[list[RetrievedPassage]]:
        """Retrieve passages for several queries, encoded together, in `n_jobs` threads; see `search`."""
        check_sequences(queries=queries)
        texts = [check_text(query, "a query") or " " for query in queries]
        options = self._options(k, where, max_per_group, group, near_duplicates, mmr, min_confidence)
        with self._encoding(texts):
            return list(parallel_map(partial(self._search, options=options), texts, what="search", n_jobs=n_jobs))

    @guided
    def explain(self, query: str, doc_id: Any, *, where: Where | None = None) -> Explanation:
        """Break down `RetrievedPassage.general` of one of the query's candidates by features and words."""
        candidates = self._scores(query, self._among(where)).candidates
        return explain(general_model_for(self._index), self._index, candidates, self._known(doc_id))

    @guided
    def learn_weight(self, questions: Mapping[str, Any]) -> HybridRetriever:
        """Return a retriever of the same passages with the weight that is learned from judged questions.

        Parameters
        ----------
        questions : mapping
            By question, the identifiers of relevant passages, or their grades by identifier. Passages without a grade
            are not relevant. Some twenty questions are worth judging, see `greylag.recipes.HybridSearch`.
        """
        texts, qrels = self._judged(questions)
        learned = copy(self)
        with self._encoding([*texts.values()]):
            learned._hybrid = self._hybrid.learn_weight(texts, qrels)
        return learned

    @guided
    def threshold(self, questions: Sequence[str], *, keep: float = 0.9) -> float:
        """Return the `min_confidence` by which this share of questions still finds a passage.

        It is the quantile 1 - `keep`, linear between neighbours, of the highest confidence that each question finds.
        Confidences by another encoder have another range: find it again with each.

        Parameters
        ----------
        questions : sequence of str, at least 10
            Some twenty that have an answer among the passages; which passage it is need not be judged.
        keep : float in [0, 1], default 0.9
        """
        check_sequences(questions=questions)
        check_fractions(keep=keep)
        if len(questions) < _FEWEST:
            raise ParameterError(f"{len(questions)} questions are too few for a threshold: give {_FEWEST}, better 20")
        texts = [check_text(question, "a question") or " " for question in questions]
        with self._encoding(texts):
            highest = [max(self._scores(text, None).confidence, default=math.nan) for text in texts]
        if lacking := [text for text, value in zip(texts, highest, strict=True) if math.isnan(value)]:
            raise ParameterError(f"question {lacking[0]!r:.80} finds no passage by words or vectors: leave it out")
        return float(np.quantile(highest, 1 - keep))

    @guided
    def with_passages(
        self, passages: PassagesLike | None = None, *, add: PassagesLike | None = None, remove: Any = None
    ) -> HybridRetriever:
        """Return a retriever over other passages; only texts that come are encoded and analysed.

        It is the retriever that is made anew, but for latent semantics, which the general model reads: above 1,000
        passages, new texts are folded into those of before (Deerwester et al. 1990) until a tenth of the passages has
        come or gone since they were computed. Until then, general scores depend on what was called; the page of
        performance says how much.

        Parameters
        ----------
        passages : sequence or mapping, optional
            All passages that there shall be. By default, those that there are.
        add : sequence or mapping, optional
            Passages that come behind these, each with an identifier that is not among them.
        remove : str, int or iterable of them, optional
            The identifiers of passages that go first: one that is added, too, is replaced.
        """
        entries = dict[str, Passage | int](self._passages.entries if passages is None else _passages(passages))
        for docid in [] if remove is None else _members(remove):
            if entries.pop(as_identifier(docid, "remove: an id"), None) is None:
                raise ParameterError(f"remove: no passage has the id {docid!r}, or it is given twice")
        for docid, passage in ({} if add is None else _passages(add, named=True)).items():
            if entries.setdefault(docid, passage) is not passage:
                raise ParameterError(f"add: there is a passage {docid!r}: give another id, or remove= that one, too")
        held = self._passages.changed(_some(entries))
        sources, new = self._sources(held)
        rows = self._vectors.array
        if new:
            fresh = _encoded(self._encode, new)
            if (size := fresh.shape[1]) != (width := rows.shape[1]):
                raise ParameterError(f"the encoder's vectors have {size} dimensions, and the retriever's {width}")
            rows = np.concatenate([rows, _shortened(ArrayVectors(new, fresh).documents(new), rows.dtype)])
        rows = rows[sources]
        _compare_some(self._encode, held, ArrayVectors([*held], rows))
        index = spliced(self._index, [*held], sources, new)
        made = HybridRetriever.__new__(HybridRetriever)
        settings: dict[str, Any] = {"language": self._language, "depth": self._depth, "weight": self.weight}
        made._hold(held, self._encode, self._encode_query, rows, index, **settings)
        made.search(held[next(iter(held))][0], 1)
        return made

    def _sources(self, held: HeldPassages) -> tuple[IntArray, list[str]]:
        """Return the place of a passage with the same text for each of others, and the new texts, which follow."""
        old, sources, others = self._passages, np.full(len(held), -1), dict[int, str]()
        places = dict(zip(old, range(len(old)), strict=True))
        for number, (docid, entry) in enumerate(held.entries.items()):
            if docid in places and (entry is old.entries[docid] or old[docid][0] == held[docid][0]):
                sources[number] = places[docid]  # its own, as two of one text may have been given two vectors
            else:
                others[number] = held[docid][0]
        gone = {*places.values()}.difference(sources.tolist()) if others else ()
        by_text = {old[self._vectors.docids[place]][0]: place for place in sorted(gone)}
        new = [text for text in dict.fromkeys(others.values()) if text not in by_text]
        by_text |= zip(new, range(len(old), len(old) + len(new)), strict=True)
        sources[[*others]] = [*map(by_text.__getitem__, others.values())]
        return sources, new

    @guided
    def save(self, path: str | Path) -> None:
        """Write passages, whose fields have to be what JSON has, with vectors and index to one file, as a whole."""
        _check_path(path)
        content = {"language": self._language, "depth": self._depth, "weight": self.weight}
        arrays = {
            "content": np.frombuffer(json.dumps(content).encode(), np.uint8),
            **self._passages.packed(),
            "vectors": self._vectors.array,
            "query": _encoded(self._encode_query, [_PROBE]),
            **packed_index(self._index),
        }
        with open_atomically(path, binary=True) as file:
            write_mappable(file, {"digest": _digest(arrays), **arrays})

    @classmethod
    def load(cls, path: str | Path, encode: Encoder | Any, *, encode_query: Encoder | Any = None) -> HybridRetriever:
        """Open what `save` wrote, mapped; `FormatError` if it has changed, or is of other encoders."""
        _check_path(path)

        def check(arrays: dict[str, Any]) -> None:
            if not np.array_equal(arrays.pop("digest", []), _digest(arrays)):
                raise FormatError(path, None, "has changed, or another version of greylag wrote it: save it again")

        arrays = map_arrays(path, "content", "vectors", "query", check=check)
        with naming(Path(path)):
            try:
                content = parse_json(arrays["content"].tobytes())
                language, depth, weight = (content[name] for name in ("language", "depth", "weight"))
                check_counts(depth=depth)
                index, rows = opened_index(arrays, language), arrays["vectors"]
                passages = HeldPassages.opened(index.docids_of(np.arange(len(rows))), arrays)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ParameterError(f"is no retriever that was saved: {error}") from None
            some = next(iter(passages))
            _compare(encode, {f"passage {some!r}": passages[some][0]}, rows[:1])
            _compare(encode_query or encode, {"a query": _PROBE}, arrays["query"])
            retriever = cls.__new__(cls)
            retriever._hold(passages, encode, encode_query, rows, index, language, depth, weight)
        return retriever

    @property
    def weight(self) -> float:
        """How much cosines count: 1 without judgements."""
        return self._hybrid.weight

    def _judged(self, questions: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
        """Return questions by their number, and the grades of their passages."""
        if not isinstance(questions, Mapping):
            raise ParameterError(f"questions are {shown(questions)}: give relevant passages by question")
        texts = {str(n): check_text(text, "a question") or " " for n, text in enumerate(questions)}
        grades = [
            value if isinstance(value, Mapping) else {as_identifier(docid, "an id"): 1 for docid in _members(value)}
            for value in questions.values()
        ]
        qrels = as_qrels(dict(zip(texts, grades, strict=True)))
        for qid, judged in qrels.items():
            if unknown := [docid for docid in judged if docid not in self._passages]:
                raise ParameterError(f"question {texts[qid]!r:.80}: no passage has the id {unknown[0]!r}")
        return texts, qrels

    @contextmanager
    def _encoding(self, texts: list[str]) -> Iterator[None]:
        """Encode queries together, for as long as they are searched."""
        self._encoded.update(zip(texts, _encoded(self._encode_query, texts), strict=True))
        try:
            yield
        finally:
            for text in texts:
                self._encoded.pop(text, None)  # another batch with this query encodes it again

    def _query_vector(self, text: str) -> Dense:
        row = self._encoded.get(text)
        return _encoded(self._encode_query, [text])[0] if row is None else row

    def _scores(self, query: str, among: Among | None) -> HybridScores:
        """Score the candidates of a query among the passages that are wanted."""
        text = check_text(query, "the query") or " "  # "" would be a text that is unknown
        return self._hybrid.scores(Query(text, text), among)

    def _among(self, where: Where | None) -> Among | None:
        """Return which passages are wanted, by their numbers."""
        if where is None:
            return None
        where = _listed(where)
        if callable(where):
            ids, nested = self._vectors.docids, self._nested

            def holds(number: int) -> bool:
                own = self._own(ids[number])
                if nested:
                    own |= {name: _copied(own[name]) for name in nested if name in own}
                return bool(where(own))

            return holds
        wanted = np.ones(len(self), dtype=bool)
        for name, values in where.items():
            if not str(name).startswith("$"):
                check_field(name, self._fields, "where")
            mappings = [value for value in values if isinstance(value, Mapping)]
            ours = (_members(self._own(docid).get(name)) for docid in self._passages) if mappings else ()
            is_unlike = bool(mappings) and not any(isinstance(value, Mapping) for value in chain.from_iterable(ours))
            if is_unlike or any(str(key).startswith("$") for key in chain([name], *mappings)):
                raise ParameterError(
                    f"where: {name!r} is {shown(values)}: operators are not read; pass values, or a function of a "
                    "passage's fields, such as lambda fields: fields['year'] > 2020"
                )
            wanted &= self._having(name, values)
        return wanted

    def _having(self, field: str, values: Sequence[Any]) -> BoolArray:
        """Return which passages have one of these values in a field, shape (N,)."""
        places, entries, numbers, others = self._members_of(field)
        asked, having = np.zeros(len(places), dtype=bool), np.zeros(len(self), dtype=bool)
        for value in values:
            with suppress(KeyError, TypeError):  # of what no passage has, and of what cannot be a key
                asked[places[value]] = True
        having[numbers[asked[entries]]] = True
        having[[number for number, member in others if member in values]] = True
        return having

    def _members_of(self, field: str) -> tuple[dict[Any, int], IntArray, IntArray, list[tuple[int, Any]]]:
        """Return the different values of a field, numbered, and which one and whose each is; also those without key."""
        if field not in self._fields_read:
            places: dict[Any, int] = {}
            entries, numbers, others = list[int](), list[int](), list[tuple[int, Any]]()
            for number, docid in enumerate(self._passages):
                value = self._own(docid).get(field)
                for member in (value,) if type(value) is str else chain.from_iterable(map(_forms, _members(value))):
                    try:
                        entries.append(places.setdefault(member, len(places)))
                        numbers.append(number)
                    except TypeError:
                        others.append((number, member))
            self._fields_read[field] = places, np.array(entries, np.int64), np.array(numbers, np.int64), others
        read: tuple[dict[Any, int], IntArray, IntArray, list[tuple[int, Any]]] = self._fields_read[field]
        return read

    def _known(self, doc_id: Any) -> str:
        """Return the identifier of a passage that there is."""
        docid = as_identifier(doc_id, "an id")
        if docid not in self._passages:
            raise ParameterError(f"no passage has the id {docid!r}: the ids of a retriever list all")
        return docid

    def _own(self, docid: str) -> dict[str, Any]:
        """Return the fields of a passage, `id` and `text` among them."""
        text, others = self._passages[docid]
        return {"id": docid, "text": text, **others}

    def _groups(self, field: str, docids: Iterable[str]) -> dict[str, str]:
        """Return the groups of those of some passages that have one."""
        named = ((docid, group_name(self._own(docid).get(field), f"the group of passage {docid}")) for docid in docids)
        return {docid: name for docid, name in named if name}


def _listed(where: Where) -> Where:
    """List the values by field of a filter that is no function."""
    if callable(where):
        return where
    if not isinstance(where, Mapping):
        raise ParameterError(f"where is {shown(where)}: give values by field, or a function of a passage's fields")
    listed = dict[str, list[Any]]()
    for name, values in where.items():
        read = _as_id if name == "id" else _forms
        listed[name] = [*chain.from_iterable(map(read, _members(values)))]
    return listed


def _as_id(value: Any) -> tuple[str]:
    return (as_identifier(value, "where: an id"),)


def _members(value: Any) -> Iterable[Any]:
    """Return the values of a list or another iterable; a string or a mapping is one."""
    value = _plain(value)
    return value if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else [value]


def _plain(value: Any) -> Any:
    """Return the lists and scalars of Python in place of NumPy's, whose comparisons are arrays."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _forms(value: Any) -> tuple[Any, ...]:
    """Return a number or truth value as its texts, as files and forms have them; None for what is missing."""
    if type(value) is int:
        return (str(value),)
    value = _plain(value)
    if is_missing(value):
        return (None,)
    if isinstance(value, bool):
        return str(value).lower(), str(value)
    if not isinstance(value, Real):
        return (value,)
    number = int(value) if isinstance(value, Integral) else float(value)
    return (str(int(number)), str(number)) if number == number // 1 else (str(number),)


def _copied(value: Any) -> Any:
    """Copy what somebody could change."""
    return value if type(value) in PLAIN else deepcopy(value)  # which takes its time


def _some(passages: dict[str, _Held]) -> dict[str, _Held]:
    if not passages:
        raise ParameterError("there are no passages: give one at least")
    return passages


def _passages(given: PassagesLike, *, named: bool = False) -> dict[str, Passage]:
    """Return texts and other fields of passages by identifier, which all must have if `named`."""
    passages = as_passages(given, named=named)
    keys = [as_identifier(passage.key, "a passage's identifier") for passage in passages]
    copies = []
    for key, passage in zip(keys, passages, strict=True):
        try:
            copies.append({name: _copied(value) for name, value in passage.fields.items()})
        except (TypeError, RecursionError) as error:
            raise ParameterError(f"passage {key}: a field cannot be copied: {error}") from None
    texts = [passage.text for passage in passages]
    return unique_ids(zip(keys, zip(texts, copies, strict=True), strict=True), "passage")


def _encoded(encode: Encoder | Any, texts: list[str]) -> Dense:
    """Encode texts, a batch at a time, in float32, shape (n, m)."""
    function = encode if isinstance(encode, str) else getattr(encode, "encode", getattr(encode, "embed", encode))
    if not callable(function):
        raise ParameterError(f"the encoder is {shown(encode)}: give a function of texts, such as model.encode")
    batches: list[Dense] = []
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    distinct = [*places]
    for start in range(0, len(distinct), _BATCH):
        batch = distinct[start : start + _BATCH]
        answer = function(batch)
        data = answer.get("data") if isinstance(answer, Mapping) else getattr(answer, "data", None)
        if isinstance(data, list):  # as OpenAI's endpoint answers
            answer = _in_order(data)
        try:
            given = np.asarray(answer if hasattr(answer, "shape") else list(answer))
            # No complex numbers, and no texts; objects may be numbers of any kind.
            rows = given.astype(np.float32, casting="unsafe" if given.dtype == object else "same_kind", copy=False)
        except (TypeError, ValueError):
            raise ParameterError(f"the encoder returned {shown(answer)}, and no vector for each text") from None
        if rows.ndim != 2 or len(rows) != len(batch) or rows.shape[1:] != (batches or [rows])[0].shape[1:]:
            raise ParameterError(f"the encoder returned an array of shape {rows.shape} for {len(batch)} texts")
        batches.append(rows)
    rows = np.concatenate(batches or [np.empty((0, 0), np.float32)])
    return rows if len(distinct) == len(texts) else rows[[places[text] for text in texts]]


def _in_order(items: list[Any]) -> list[Any]:
    """Return the vectors of OpenAI's items in the order of the texts, by the items' index if they have any."""
    entries = [item if isinstance(item, Mapping) else {n: getattr(item, n, None) for n in _ITEM} for item in items]
    places, vectors = ([item.get(name) for item in entries] for name in _ITEM)
    if all(place is None for place in places):
        return vectors
    if {*places} != {*range(len(items))}:
        raise ParameterError(f"the encoder returned items with the indexes {shown(places)}: each text has one, from 0")
    by_place = dict(zip(places, vectors, strict=True))
    return [by_place[n] for n in range(len(items))]


def _shortened(rows: Dense, kind: np.dtype[Any]) -> Dense:
    """Return rows in another type, but as they are if it cannot hold them: integers only what the encoder rounds."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        same = rows.astype(kind)
        lost, share = np.abs(same - rows).max(axis=1), _ROUNDED if kind.kind == "f" else 0.0
    return same if (lost <= share * np.abs(rows).max(axis=1)).all() else rows


def _compare_some(encode: Encoder | Any, passages: Mapping[str, Passage], vectors: ArrayVectors) -> None:
    """Raise `ParameterError` unless vectors are the encoder's of passages: the first, the middle and the last one."""
    # Vectors in another order, or of another encoder, differ in one of them.
    docids = [*passages]
    some = [docids[n] for n in sorted({0, len(docids) // 2, len(docids) - 1})]
    _compare(encode, {f"passage {docid!r}": passages[docid][0] for docid in some}, vectors.documents(some))


def _compare(encode: Encoder | Any, texts: Mapping[str, str], rows: Dense) -> None:
    """Raise `ParameterError` unless vectors are the encoder's of texts, given by what they are called."""
    again = _encoded(encode, [*texts.values()])
    if again.shape != rows.shape:
        raise ParameterError(f"the encoder's vectors have {again.shape[1]} dimensions, and these {rows.shape[1]}")
    cosines = 1 - np.square(unit_rows(again) - unit_rows(rows)).sum(axis=1) / 2  # 1 of two zeros, too
    for name, cosine in zip(texts, cosines.tolist(), strict=True):
        if not cosine >= _SAME:  # NaN, too
            raise ParameterError(f"{name} has another vector by this encoder (cosine {cosine:.3f}): encode all again")


def _check_path(path: Any) -> None:
    """Raise `ParameterError` if a value names no file."""
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"path is {shown(path)}: name the file of a retriever")


def _digest(arrays: Mapping[str, Any]) -> Any:
    """Return the SHA-256 of arrays and their shapes, shape (32,)."""
    digest = hashlib.sha256(_VERSION)
    for array in arrays.values():
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return np.frombuffer(digest.digest(), np.uint8)
