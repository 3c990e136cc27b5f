"""ir_datasets' named tuples and data sets, made from local files by its own classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from greylag.errors import CollectionError, ParameterError
from greylag.index import PositionalIndex
from greylag.interop import (
    qrels_from_ir_datasets,
    run_from_ir_datasets,
    texts_from_ir_datasets,
    topics_from_ir_datasets,
)
from tests.greylag.interop.data_set import registered

ir_datasets = pytest.importorskip("ir_datasets", reason="needs ir_datasets")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return registered(tmp_path, monkeypatch)


@pytest.mark.parametrize("by_name", [None, "greylag-test", "irds:greylag-test"])
def test_a_data_set_or_its_name(dataset: Any, by_name: str | None) -> None:
    source = by_name or dataset
    assert topics_from_ir_datasets(source) == {"1": "cat", "2": "dog run"}
    assert qrels_from_ir_datasets(source) == {"1": {"d1": 2, "d2": 0}, "2": {"d2": 1}}
    index = PositionalIndex.from_texts(texts_from_ir_datasets(source))
    assert index.documents(["d1", "d2"]).tolist() == [0, 1]
    (ranking,) = run_from_ir_datasets(source, topics={"1": "cat"}).rankings
    assert (ranking.docids, ranking.query) == (("d2", "d1"), "cat")


class TrecQuery(NamedTuple):
    query_id: str
    title: str
    description: str


class SubtopicQrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


def test_named_tuples_and_their_fields() -> None:
    queries = [TrecQuery("301", "cats", "What do cats do?")]
    assert topics_from_ir_datasets(queries) == {"301": "cats"}
    assert topics_from_ir_datasets(queries, field="description") == {"301": "What do cats do?"}
    judged = [SubtopicQrel("1", "d", grade, topic) for grade, topic in ((1, "a"), (2, "b"), (0, "c"))]
    assert qrels_from_ir_datasets(judged) == {"1": {"d": 2}}


@pytest.mark.parametrize(
    ("read", "source", "error", "message"),
    [
        (
            topics_from_ir_datasets,
            [SubtopicQrel("1", "d", 1, "a")],
            ParameterError,
            "no field text or title or query; its",
        ),
        (topics_from_ir_datasets, ["cat"], ParameterError, "str 'cat' is not one of the queries .*no query_id"),
        (topics_from_ir_datasets, 3, ParameterError, "int 3 is no data set"),
        (topics_from_ir_datasets, [TrecQuery("1", "a", "")] * 2, ParameterError, "query '1' occurs twice"),
        (
            qrels_from_ir_datasets,
            [SubtopicQrel("1", "d", "1", "a")],
            ParameterError,
            "the grade of document 'd' .*is str",
        ),
        (topics_from_ir_datasets, "no-such-data", CollectionError, "ir_datasets has no data set 'no-such-data'"),
    ],
)
def test_refuses_other_things(read, source, error, message):
    with pytest.raises(error, match=message):
        read(source)


def test_what_a_data_set_lacks_or_cannot_get(dataset: Any, tmp_path: Path) -> None:
    from ir_datasets import formats

    without = ir_datasets.Dataset(formats.TsvQueries(tmp_path / "queries", namespace="t", lang="en"))
    with pytest.raises(CollectionError, match="has no qrels"):
        qrels_from_ir_datasets(without)

    class NoNetwork:
        def stream(self) -> Any:
            raise ConnectionError("no route to host")

    unreachable = ir_datasets.Dataset(formats.TsvQueries(NoNetwork(), namespace="t", lang="en"))
    with pytest.raises(CollectionError, match=r"cannot be read by ir_datasets \(ConnectionError: no route to host\)"):
        topics_from_ir_datasets(unreachable)
