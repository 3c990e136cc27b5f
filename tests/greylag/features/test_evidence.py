"""Features that are not counted in the index: priors, the incoming ranking, other runs, and vectors."""

import json
import pickle
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest

from greylag.base import FormatError, ModelError, ParameterError, Ranking, Run
from greylag.diversity import PRESETS, CandidateMaker
from greylag.evaluation import write_run
from greylag.features.evidence import Prior, RunScore, Score, VectorCosine
from greylag.features.extract import FeatureExtractor
from greylag.features.learned.trees import LEAF, Trees
from greylag.features.spelling import parse_feature, parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.rankers import ModelRanker, RankingModel
from tests.refusals import refuses

OF_PRIORS = PositionalIndex.from_texts({"a": "cat dog", "b": "cat", "c": "dog dog", "d": "pig"})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "prior.tsv"
    path.write_text("c 0.5\nelsewhere 9\na\t2\nd 8e-1\n")
    return path


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        ("", [2, 0.5, 0.5, 0.8]),  # b has none and gets the least
        (":raw", [2, 0.5, 0.5, 0.8]),
        (":-3.5", [2, -3.5, 0.5, 0.8]),
        (":log", [log(2), log(0.5), log(0.5), log(0.8)]),
        (":log:1e-2", [log(2), log(0.01), log(0.5), log(0.8)]),
    ],
)
def test_values_of_priors(file, suffix, expected):
    prior = parse_feature(f" prior:{file}{suffix} ")
    assert isinstance(prior, Prior)
    assert parse_feature(str(prior)) == prior
    np.testing.assert_allclose(prior.values(OF_PRIORS), expected, rtol=1e-15)


def test_priors_beside_other_features(file):
    extract = FeatureExtractor(OF_PRIORS, parse_features(f"FI/term/LM,prior:{file}:log,FI/term/BM25"))
    alone = FeatureExtractor(OF_PRIORS, parse_features("FI/term/LM,FI/term/BM25"))
    ranking = Ranking("q", "cat pig", ("d", "x", "a", "c"), np.zeros(4))
    values = extract(ranking)
    np.testing.assert_allclose(values[:, 1], np.log([0.8, 0.5, 2, 0.5]))  # x, outside the index, gets the least
    np.testing.assert_array_equal(values[:, [0, 2]], alone(ranking))
    assert not extract.limits("cat dog pig cow")


@pytest.mark.parametrize(
    ("text", "suffix", "parts"),
    [
        ("a 1\nb x\n", "", "prior.tsv:2: 'x' finite"),
        ("a inf\n", "", "prior.tsv:1: 'inf'"),
        ("a 1_0\n", "", "prior.tsv:1: '1_0' finite"),
        ("a \u0661\n", "", "prior.tsv:1: '\u0661' finite"),
        ("a 1\nb 0\n", ":log", "prior.tsv:2: '0' above 0"),
        ("a 1\na 2\n", "", "prior.tsv:2: duplicate 'a'"),
        ("a 1 2\n", "", "prior.tsv:1: 3 columns"),
        ("x 1\n", "", "prior.tsv none index 'x'"),
    ],
)
def test_bad_files_of_priors(tmp_path, text, suffix, parts):
    (tmp_path / "prior.tsv").write_text(text)
    refuses(lambda: Prior.parse(f"prior:{tmp_path}/prior.tsv{suffix}").values(OF_PRIORS), FormatError, parts)


def trees(right):
    """A tree of a node and two leaves."""
    numbers = [np.array(n) for n in ([0], [0, LEAF, LEAF], [1, 0, 0], [right, 0, 0])]
    roots, split, left, below = numbers
    none = np.zeros(3, dtype=np.int64)
    return Trees((Score(),), FeatureParameters(), roots, split, none, left, below, none, np.zeros(1), none, none)


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: parse_feature("prior:"), "prior:FILE[:log][:DEFAULT]"),
        (lambda: parse_feature("prior:f:log:0"), "above 0"),
        (lambda: parse_feature("prior:f:log:-1"), "above 0"),
        (lambda: RunScore(""), "'' rename"),
        (lambda: RunScore("dense@z"), "'dense@z' rename"),
        (lambda: parse_feature("vectors:x.npz"), "vectors:"),
        (lambda: parse_feature("vectors:(documents=a)"), "vectors:"),
        (lambda: parse_feature("vectors:(queries=a,documents=b)"), "vectors:"),
        (lambda: VectorCosine("a b", "c"), "'a b' rename"),
        (lambda: parse_feature("document:age"), "document:age length entropy common"),
        (lambda: trees(3), "damaged"),  # a child outside
        (lambda: trees(0), "damaged"),
    ],
)
def test_refusals(make, parts):
    refuses(make, (ModelError, ParameterError), parts)
    assert trees(2).scores(np.ones((2, 1))).tolist() == [0.0, 0.0]


INDEX = PositionalIndex.from_texts({"a": "cat", "b": "dog"})
RANKING = Ranking("q", "cat", ("b", "x", "a"), [7.0, 5.0, 5.0])


def test_scores_and_ranks_of_the_incoming_ranking(caplog):
    values = FeatureExtractor(INDEX, parse_features("score,reciprocal-rank,score@minmax"))(RANKING)
    assert values.T.tolist() == [[7.0, 5.0, 5.0], [1.0, 1 / 2, 1 / 3], [1.0, 0.0, 0.0]]
    assert not caplog.records, "x is not in the index, but these features do not need it"


def test_scores_of_another_run(tmp_path, caplog):
    path = tmp_path / "dense.run"
    write_run(Run((Ranking("q", "", ("a", "b", "c"), [0.75, -0.5, -2.0]),)), path)
    extractor = FeatureExtractor(INDEX, parse_features(f"run:{path},run:{path}@minmax"))
    assert extractor(RANKING).T.tolist() == [[-0.5, -0.5, 0.75], [0.0, 0.0, 1.0]], "x has the least value of a and b"
    other = extractor(Ranking("p", "cat", ("a", "b"), np.zeros(2)))
    assert other.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert caplog.messages == [
        f"query q: 1 of 3 documents of 1 queries are not in {path}, such as x (query q, with 1 of 3): "
        f"feature run:{path} gives them its least value",
        f"query p: 2 of 2 documents of 1 queries are of queries not in {path}, such as a (query p, with 2 of 2): "
        f"feature run:{path} is the same for all documents",
    ]
    alone = Ranking("q", "cat", ("b", "x"), np.zeros(2))
    assert extractor(alone).T.tolist() == [[-0.5, -0.5], [0.5, 0.0]], "the only document of the run is above x"


DOCUMENTS = {"a": [3.0, 4.0], "b": [-1.0, 0.5], "z": [0.0, 0.0]}
QUERIES = {"q": [0.5, 2.0], "zero": [0.0, 0.0]}


@pytest.fixture
def spelt(tmp_path):
    """The spelling of a feature whose files exist."""
    documents, queries = tmp_path / "documents.npz", tmp_path / "queries.jsonl"
    np.savez(documents, ids=np.array(list(DOCUMENTS)), vectors=np.array(list(DOCUMENTS.values()), dtype=np.float32))
    lines = [json.dumps({"id": qid, "contents": "words", "vector": vector}) for qid, vector in QUERIES.items()]
    queries.write_text("\n".join(lines))
    return f"vectors:(documents={documents},queries={queries})"


def cosine(q, d):
    """The formula."""
    lengths = sum(x * x for x in q) ** 0.5 * sum(x * x for x in d) ** 0.5
    return sum(x * y for x, y in zip(q, d, strict=True)) / lengths if lengths else 0.0


def test_values_are_cosines(spelt):
    extractor = FeatureExtractor(INDEX, (parse_feature(spelt),))
    for qid, vector in QUERIES.items():
        values = extractor(Ranking(qid, "cat", tuple(DOCUMENTS), np.zeros(3)))
        assert values[:, 0] == pytest.approx([cosine(vector, own) for own in DOCUMENTS.values()])


def test_what_has_no_vector(spelt, caplog):
    extractor = FeatureExtractor(INDEX, parse_features(f"{spelt},{spelt}@minmax"))
    values = extractor(Ranking("q", "cat", ("a", "x", "b"), np.zeros(3)))
    assert values[1, 0] == values[2, 0] == pytest.approx(cosine(QUERIES["q"], DOCUMENTS["b"])), "the least value"
    assert values[:, 1].tolist() == [1.0, 0.0, 0.0]
    assert extractor(Ranking("p", "cat", ("a", "b"), np.zeros(2))).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert [message.split(" queries are ")[1].split(" ")[0] for message in caplog.messages] == ["not", "of"]


def test_one_spelling_in_lists_models_and_files(spelt, tmp_path):
    (feature,) = parse_features(spelt)
    assert isinstance(feature, VectorCosine)
    assert str(feature) == spelt
    assert feature.files() == [feature.documents, feature.queries]
    assert str(feature.place_files(lambda file: "x.npz")) == "vectors:(documents=x.npz,queries=x.npz)"
    model = RankingModel((feature, parse_feature(f"{spelt}@minmax")), (1.0, 0.5))
    model.save(tmp_path / "model.json")
    loaded = RankingModel.load(tmp_path / "model.json")
    assert loaded == model
    ranked = ModelRanker(loaded, INDEX)(Ranking("q", "cat", ("b", "a"), [2.0, 1.0]))
    assert ranked.docids == ("a", "b")


def test_bad_spellings_and_files(spelt, tmp_path):
    feature = VectorCosine.parse(spelt)
    short = tmp_path / "short.jsonl"
    short.write_text('{"id": "q", "vector": [1, 2, 3]}')
    wrong, absent = (
        VectorCosine(feature.documents, str(short)),
        VectorCosine(str(tmp_path / "none.npz"), feature.queries),
    )
    refuses(lambda: wrong.bind(INDEX), FormatError, "short.jsonl 3 2")
    refuses(lambda: absent.bind(INDEX), FormatError, "none.npz")


def test_a_worker_with_another_file_of_the_name_refuses_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index, docid, ranking = OF_PRIORS, "a", Ranking("q", "cat", ("a",), np.zeros(1))
    for name, line in (("a.run", "q Q0 {} 1 {} t\n"), ("a.prior", "{} {}\n")):
        Path(name).write_text(line.format(docid, 2))
    for text in ("run:a.run", "run:a.run@z", "prior:a.prior", "stage:rm3>>manifold(feedback=a.run)"):
        extractor = FeatureExtractor(index, parse_features(text))
        maker = CandidateMaker(index, replace(PRESETS["svmdiv"], document_features=(text,)))
        sent = [pickle.dumps(extractor), pickle.dumps(maker)]
        if "stage" not in text:
            assert pickle.loads(sent[0])(ranking).tolist() == extractor(ranking).tolist()
        files = {path: path.read_text() for path in tmp_path.iterdir()}
        for change in (lambda path: path.write_text(path.read_text().replace("2", "3")), Path.unlink):
            for path in files:
                change(path)
            for content in sent:
                refuses(lambda content=content: pickle.loads(content)(ranking), FormatError, "a. is another file")
        for path, content in files.items():
            path.write_text(content)


def test_statistics_of_documents_are_those_of_their_definitions():
    texts = {
        f"d{i}": " ".join(["often", *(["rare"] * i), f"w{i}x", *([f"w{i}x", "often"] * (i % 2))]) for i in range(12)
    }
    index = PositionalIndex.from_texts({**texts, "empty": ""})
    ranking = Ranking("q", "rare", ("d3", "empty", "d0", "d7"), np.zeros(4))
    features = parse_features("document:length,document:entropy,document:common")
    values = FeatureExtractor(index, features)(ranking)
    for docid, row in zip(ranking.docids, values.tolist(), strict=True):
        words = texts.get(docid, "").split()
        counts = [words.count(word) for word in set(words)]
        entropy = -sum(n / len(words) * log(n / len(words)) for n in counts)
        common = sum(word in ("often", "rare") for word in words) / max(1, len(words))  # in 12 and 11 of 13 documents
        assert row == pytest.approx([log(1 + len(words)), entropy, common])
    assert [str(feature) for feature in features] == ["document:length", "document:entropy", "document:common"]
