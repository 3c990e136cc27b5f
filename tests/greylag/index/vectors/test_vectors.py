"""Vectors of documents and queries: given, of files, of FAISS indexes, and TF-IDF.

Tests `dense`, `protocol` and `vector_files`.
"""

import gzip

import numpy as np
import pytest

from greylag.base import FormatError, ParameterError
from greylag.index import ArrayVectors, FunctionVectors, PositionalIndex, TfidfVectors, Vectors, read_vectors
from greylag.index.vectors.protocol import unit_rows, vectors_of
from tests.refusals import refuses

ROWS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
IDS = ["d0", "d1", "d2", "d3"]


def test_rows_of_an_array_in_any_order():
    vectors = ArrayVectors(IDS, ROWS, queries={"q": ROWS[0]})
    assert vectors.knows(["d3", "x", "d0"]).tolist() == [True, False, True]
    np.testing.assert_array_equal(vectors.documents(["d3", "d0"]), ROWS[[3, 0]])
    assert vectors.documents([]).shape == (0, 3)
    np.testing.assert_array_equal(vectors.query("q", "any"), ROWS[:1])
    np.testing.assert_array_equal(ArrayVectors(IDS, ROWS, lambda text: ROWS[len(text)]).query("q", "ab"), ROWS[2:3])
    assert repr(vectors) == "ArrayVectors(4 documents, 3 dimensions)"


def test_types():
    for given, used in (("f8", "f8"), ("f4", "f4"), ("f2", "f4"), ("i8", "f4")):
        assert ArrayVectors(IDS, np.ones((4, 3), given)).documents(["d1"]).dtype == used


def test_a_memory_mapped_file_reads_the_rows_used(tmp_path):
    rows = ROWS.copy()
    rows[2] = np.nan
    np.save(tmp_path / "v.npy", rows)
    vectors = ArrayVectors(IDS, np.load(tmp_path / "v.npy", mmap_mode="r"))
    assert isinstance(vectors.array, np.memmap)
    np.testing.assert_array_equal(vectors.documents(["d1"]), ROWS[1:2])
    with pytest.raises(ParameterError, match="nan"):
        vectors.documents(["d1", "d2"])


def test_a_function_is_asked_once_and_tells_what_it_lacks():
    calls = []

    def look_up(docids):
        calls.append(docids)
        return np.array([ROWS[IDS.index(docid)] if docid in IDS else [np.nan] * 3 for docid in docids])

    vectors = FunctionVectors(look_up, queries={"q": [1, 2, 3]})
    assert vectors.knows(["d2", "x", "d1"]).tolist() == [True, False, True]
    np.testing.assert_array_equal(vectors.documents(["d1", "d2"]), ROWS[[1, 2]])
    assert calls == [["d2", "x", "d1"]]
    assert vectors.query("q", "").tolist() == [[1, 2, 3]]
    assert vectors.knows([]).shape == (0,)


def test_an_index_stands_for_its_tfidf_vectors():
    index = PositionalIndex.from_texts({"a": "cat"})
    assert vectors_of("MMR", index, None) == TfidfVectors(index)
    given = ArrayVectors(["a"], [[1.0]])
    assert vectors_of("MMR", None, given) is given
    assert isinstance(given, Vectors)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-155, 1e155, 1e200, 1e307])
def test_unit_rows_of_huge_and_tiny_vectors(scale):
    rows = np.array([[3 * scale, -4 * scale], [0, 0], [3, 4]])
    assert unit_rows(rows) == pytest.approx(
        np.array([[0.6, -0.8], [0, 0], [0.6, 0.8]]), abs=1e-3 if scale < 1e-300 else 1e-15
    )


TEXTS = {"a": "cat dog dog", "b": "", "c": "cat hen"}


def test_are_those_of_the_index_for_documents_and_queries_alike():
    vectors = TfidfVectors(PositionalIndex.from_texts(TEXTS))
    assert vectors.knows(["c", "x"]).tolist() == [True, False]
    rows = vectors.documents(["c", "b", "a"]).toarray()
    np.testing.assert_allclose(np.square(rows).sum(axis=1), [1, 0, 1])
    np.testing.assert_array_equal(vectors.query("q", "dog cat dog unheard").toarray(), rows[2:])
    assert vectors.query("q", "unheard").nnz == 0


def test_both_forms_hold_the_same(tmp_path):
    rows = [[0.5, -2.0], [1.0, 3.0]]
    np.savez(tmp_path / "v.npz", ids=np.array(["d1", "d2"]), vectors=np.array(rows, dtype=np.float32))
    lines = b'{"id": "d1", "contents": "x", "vector": [0.5, -2]}\n\n{"id": "d2", "vector": [1, 3.0]}\n'
    (tmp_path / "v.jsonl.gz").write_bytes(gzip.compress(lines))
    for name, kind in (("v.npz", np.float32), ("v.jsonl.gz", np.float64)):
        ids, vectors = read_vectors(tmp_path / name)
        assert (ids, vectors.tolist(), vectors.dtype) == (("d1", "d2"), rows, kind)
    np.savez(tmp_path / "whole.npz", ids=np.array([7, 8]), vectors=np.array([[1], [2]]))
    assert read_vectors(tmp_path / "whole.npz")[0] == ("7", "8")
    for kind, kept in (("f2", "f2"), ("i1", "i1"), ("i4", "f8")):
        np.savez(tmp_path / "short.npz", ids=np.array(["d1", "d2"]), vectors=np.array([[5, 1], [2, 3]], kind))
        assert read_vectors(tmp_path / "short.npz")[1].dtype == kept
    np.savez(tmp_path / "objects.npz", ids=np.array(["d1", "d2"], object), vectors=np.eye(2))
    refuses(lambda: read_vectors(tmp_path / "objects.npz"), FormatError, "objects.npz objects save ids as texts")


@pytest.mark.parametrize("name", ["v.ids", "v.ids.txt", "v.txt", "v.ids.npy", "ids.txt", "ids.npy", "docid"])
@pytest.mark.parametrize("form", ["{}/v.npy", "{}"])
def test_an_array_has_its_ids_beside_it(tmp_path, name, form):
    np.save(tmp_path / "v.npy", ROWS.astype(np.float16))
    path, names = form.format(tmp_path), tmp_path / name
    refuses(lambda: read_vectors(path), FormatError, "v.npy no ids v.ids")
    (tmp_path / "ids.tsv").write_text("d1\n")
    refuses(lambda: read_vectors(path), FormatError, "v.npy no ids v.ids 'ids.tsv' not read")

    def write(ids, end="\n"):
        np.save(names, np.array(ids)) if name.endswith(".npy") else names.write_text("\n".join(ids) + end)

    for end in ("\n", ""):
        write(IDS, end)
        ids, vectors = read_vectors(path)
        assert (ids, vectors.dtype, vectors.flags.writeable) == (tuple(IDS), np.float16, False)
        np.testing.assert_array_equal(vectors, ROWS.astype(np.float16))
    for wrong, parts in (
        (IDS[1:], "3 ids (4, 3)"),
        ([*IDS[1:], "d1"], "'d1' two vectors"),
        ([*IDS[1:], "a b"], "'a b'" if name.endswith(".npy") else f"{name}:{len(IDS)}: 'a b'"),
    ):
        write(wrong)
        refuses(lambda: read_vectors(path), FormatError, parts)
    write(IDS)
    (tmp_path / "ids.txt" if name != "ids.txt" else tmp_path / "docid").write_text("d\n")
    refuses(lambda: read_vectors(path), FormatError, "v.npy ids and leave one")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", "v.npy no NumPy"),
        (b"\x93NUMPY", "v.npy no NumPy"),
        (np.array([[1.0]], object), "an array of objects: save ids as texts"),
        (np.ones(4), "shape (4,) float64"),
        (np.array([["a"]]), "shape (1, 1) <U1"),
        (np.full((4, 3), np.inf), "'d0' not finite"),
    ],
)
def test_what_is_no_array_of_vectors_is_refused(tmp_path, content, parts):
    np.save(tmp_path / "v.npy", content) if isinstance(content, np.ndarray) else (tmp_path / "v.npy").write_bytes(
        content
    )
    (tmp_path / "ids.txt").write_text("\n".join(IDS))
    refuses(lambda: read_vectors(tmp_path / "v.npy"), FormatError, parts)
    np.save(tmp_path / "w.npy", ROWS)
    refuses(lambda: read_vectors(tmp_path), FormatError, "2 arrays")
    (tmp_path / "v.npy").rename(tmp_path / "v.ids.npy")  # only these names are those of ids
    (tmp_path / "w.npy").rename(tmp_path / "kids.npy")
    (tmp_path / "ids.txt").rename(tmp_path / "kids.ids")
    assert read_vectors(tmp_path)[0] == tuple(IDS)
