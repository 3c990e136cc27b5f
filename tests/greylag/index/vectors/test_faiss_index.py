"""FAISS indexes as Pyserini writes them, made by FAISS itself."""

import numpy as np
import pytest

from greylag.errors import CollectionError
from greylag.index.vectors import FaissVectors

faiss = pytest.importorskip("faiss", reason="needs faiss-cpu")

ROWS = np.random.default_rng(1).standard_normal((200, 16)).astype(np.float32)


def ivf():
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(16), 16, 4, faiss.METRIC_INNER_PRODUCT)
    index.train(ROWS)
    return index


def write(folder, index, docids, *, ids=False):
    index.add_with_ids(ROWS, np.arange(200)) if ids else index.add(ROWS)
    faiss.write_index(index, str(folder / "index"))
    (folder / "docid").write_text("".join(f"{docid}\n" for docid in docids))
    return folder


@pytest.mark.parametrize("make", [lambda: faiss.IndexFlatIP(16), lambda: faiss.IndexHNSWFlat(16, 8), ivf])
def test_reconstructs_the_vectors(tmp_path, make):
    folder = write(tmp_path, make(), [f"d{i}" for i in range(200)])
    vectors = FaissVectors(folder, queries={"q": ROWS[7]})
    assert vectors.knows(["d199", "d200"]).tolist() == [True, False]
    np.testing.assert_array_equal(vectors.documents(["d42", "d0"]), ROWS[[42, 0]])
    assert vectors.documents([]).shape == (0, 16)
    np.testing.assert_array_equal(vectors.query("q", ""), ROWS[7:8])


def test_the_encoding_of_docids(tmp_path):
    write(tmp_path, faiss.IndexFlatIP(16), [])
    docids = "\n".join(["d\u00e9", *(f"d{i}" for i in range(199))])
    (tmp_path / "docid").write_text(docids, encoding="utf-8-sig")
    assert FaissVectors(tmp_path).knows(["d\u00e9"]).all()
    (tmp_path / "docid").write_text(docids, encoding="latin-1")
    with pytest.raises(CollectionError, match=r"is not UTF-8 .* at byte 1"):
        FaissVectors(tmp_path)


def test_refuses_other_folders(tmp_path):
    with pytest.raises(CollectionError, match=r"FAISS.*'index'"):
        FaissVectors(tmp_path)
    with pytest.raises(CollectionError, match="has 200 vectors but 199 distinct docids"):
        FaissVectors(write(tmp_path, faiss.IndexFlatIP(16), ["d0", *(f"d{i}" for i in range(199))]))
    with pytest.raises(CollectionError, match="it has ids of its own"):
        FaissVectors(write(tmp_path, faiss.IndexIDMap(faiss.IndexFlatIP(16)), [], ids=True))
    (tmp_path / "index").write_bytes(b"x")
    with pytest.raises(CollectionError, match="cannot be read by FAISS"):
        FaissVectors(tmp_path)
