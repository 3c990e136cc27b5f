"""The cosine of given vectors as a feature."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import FormatError, ParameterError
from greylag.features import FeatureExtractor, VectorCosine, parse_feature, parse_features
from greylag.index.positional import PositionalIndex
from greylag.ltr import LinearModel, MRFRanker
from greylag.ranking import Ranking

INDEX = PositionalIndex.from_texts({"a": "cat", "b": "dog"})
DOCUMENTS = {"a": [3.0, 4.0], "b": [-1.0, 0.5], "z": [0.0, 0.0]}
QUERIES = {"q": [0.5, 2.0], "zero": [0.0, 0.0]}


@pytest.fixture
def spelt(tmp_path: Path) -> str:
    """The spelling of a feature whose files exist."""
    documents, queries = tmp_path / "documents.npz", tmp_path / "queries.jsonl"
    np.savez(documents, ids=np.array(list(DOCUMENTS)), vectors=np.array(list(DOCUMENTS.values()), dtype=np.float32))
    lines = [json.dumps({"id": qid, "contents": "words", "vector": vector}) for qid, vector in QUERIES.items()]
    queries.write_text("\n".join(lines))
    return f"vectors:(documents={documents},queries={queries})"


def cosine(q: list[float], d: list[float]) -> float:
    """The formula."""
    lengths = sum(x * x for x in q) ** 0.5 * sum(x * x for x in d) ** 0.5
    return sum(x * y for x, y in zip(q, d, strict=True)) / lengths if lengths else 0.0


def test_values_are_cosines(spelt: str) -> None:
    extractor = FeatureExtractor(INDEX, (parse_feature(spelt),))
    for qid, vector in QUERIES.items():
        values = extractor(Ranking(qid, "cat", tuple(DOCUMENTS), np.zeros(3)))
        assert values[:, 0] == pytest.approx([cosine(vector, own) for own in DOCUMENTS.values()])


def test_what_has_no_vector(spelt: str, caplog: pytest.LogCaptureFixture) -> None:
    extractor = FeatureExtractor(INDEX, parse_features(f"{spelt},{spelt}@minmax"))
    values = extractor(Ranking("q", "cat", ("a", "x", "b"), np.zeros(3)))
    assert values[1, 0] == values[2, 0] == pytest.approx(cosine(QUERIES["q"], DOCUMENTS["b"])), "the least value"
    assert values[:, 1].tolist() == [1.0, 0.0, 0.0]
    assert extractor(Ranking("p", "cat", ("a", "b"), np.zeros(2))).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert [message.split(" queries are ")[1].split(" ")[0] for message in caplog.messages] == ["not", "of"]


def test_one_spelling_in_lists_models_and_files(spelt: str, tmp_path: Path) -> None:
    (feature,) = parse_features(spelt)
    assert isinstance(feature, VectorCosine)
    assert str(feature) == spelt
    assert feature.files() == [feature.documents, feature.queries]
    assert str(feature.place_files(lambda file: "x.npz")) == "vectors:(documents=x.npz,queries=x.npz)"
    model = LinearModel((feature, parse_feature(f"{spelt}@minmax")), (1.0, 0.5))
    model.save(tmp_path / "model.json")
    loaded = LinearModel.load(tmp_path / "model.json")
    assert loaded == model
    ranked = MRFRanker(loaded, INDEX)(Ranking("q", "cat", ("b", "a"), [2.0, 1.0]))
    assert ranked.docids == ("a", "b")


def test_bad_spellings_and_files(spelt: str, tmp_path: Path) -> None:
    for text in ("vectors:x.npz", "vectors:(documents=a)", "vectors:(queries=a,documents=b)"):
        with pytest.raises(ParameterError, match="is not of the form vectors:"):
            parse_feature(text)
    with pytest.raises(ParameterError, match="cannot name a file of vectors here"):
        VectorCosine("a b", "c")
    feature = VectorCosine.parse(spelt)
    short = tmp_path / "short.jsonl"
    short.write_text('{"id": "q", "vector": [1, 2, 3]}')
    with pytest.raises(FormatError, match=r"short\.jsonl: vectors of 3 coordinates, but of 2 in"):
        VectorCosine(feature.documents, str(short)).bind(INDEX, {})
    with pytest.raises(FormatError, match=r"none\.npz"):
        VectorCosine(str(tmp_path / "none.npz"), feature.queries).bind(INDEX, {})
