"""FAISS indexes as Pyserini writes them, made by FAISS itself."""

import numpy as np
import pytest

from greylag.index import FaissVectors

faiss = pytest.importorskip("faiss", reason="needs faiss-cpu")

ROWS = np.random.default_rng(1).standard_normal((200, 16)).astype(np.float32)


def ivf():
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(16), 16, 4, faiss.METRIC_INNER_PRODUCT)
    index.train(ROWS)
    return index


def write(folder, index, docids):
    index.add(ROWS)
    faiss.write_index(index, str(folder / "index"))
    (folder / "docid").write_text(docids, encoding="utf-8-sig")
    return folder


@pytest.mark.parametrize("make", [lambda: faiss.IndexFlatIP(16), lambda: faiss.IndexHNSWFlat(16, 8), ivf])
def test_reconstructs_the_vectors(tmp_path, make):
    folder = write(tmp_path, make(), "\n".join(["d\u00e9", *(f"d{i}" for i in range(199))]))
    vectors = FaissVectors(folder, queries={"q": ROWS[7]})
    assert vectors.knows(["d198", "d199", "d\u00e9"]).tolist() == [True, False, True]
    np.testing.assert_array_equal(vectors.documents(["d42", "d0"]), ROWS[[43, 1]])
    assert vectors.documents([]).shape == (0, 16)
    np.testing.assert_array_equal(vectors.query("q", ""), ROWS[7:8])
