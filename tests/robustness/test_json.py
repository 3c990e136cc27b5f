"""Our own JSON with another value at any place: it is read as what it says, or refused in one line."""

import copy
import json
import random
import zlib

import numpy as np
import pytest

from greylag.base import GreylagError, write_mappable
from greylag.diversity import DiversityModel
from greylag.diversity.coverage_model import CoverageFeatures
from greylag.evaluation import compare, read_evaluation
from greylag.features import parse_features
from greylag.index import QueryForm, offsets
from greylag.learning import SavedModel
from greylag.passages import HybridRetriever
from greylag.passages import retriever as retriever_file
from greylag.rankers import RankingModel
from greylag.recipes import HybridModel
from greylag.studies import runner
from greylag.studies.runner import run_study
from tests.greylag.features.learned.test_xgboost_trees import a_model
from tests.greylag.recipes.test_lambdamart import random_trees
from tests.greylag.studies.samples import STUDY, Settings
from tests.robustness.source import TEXTS, MemorySource

VALUES = (
    None, True, 0, -1, 1.5, 1e308, float("nan"), float("inf"), 10**400, "", "x", "x\ny", "\ud800", [], [[1]], [None, 1],
    {}, {"x": []}, {"documents": "x"}, [{"feature": 1}], {"first_sentence": 1},
)  # fmt: skip
SAMPLE = {
    "export": 40,
    "study": 80,
    "retriever": 80,
    **dict.fromkeys(("linear model", "fusion", "diversity model"), 10**9),
}
"""Each export is made again; of others, 200 are tried, 80 of what takes longest."""
LINEAR = RankingModel(
    parse_features("FI/term/LM,score@z"), (1.0, -0.5), training_scores=(0.2, 0.3), objective="AP",
    query_form=QueryForm(True, frozenset({"what"})), collection={"documents": 9.0, "tokens": 90.0},
    provenance={
        "learner": "x", "baseline": "BM25", "tuned": ["k1"], "training_score": 0.25, "queries": ["1"],
        "held_out": {"folds": 3, "AP": 0.5}, "searched": True,
    },
)  # fmt: skip
FUSION = RankingModel(
    parse_features("fused:rrf(a),fused:combsum(b)"), (1.0, -0.5), objective="AP", runs=("a", "b"),
    provenance={
        "learner": "x", "queries": ["1"], "validation": ["2"], "validation_score": 0.5, "spreads": [0.1, 0.2],
        "baselines": {"RM3": {"stage:rm3": 1.0}}, "columns": ["1"], "held_out": {"folds": 3},
    },
)  # fmt: skip
DIVERSITY = DiversityModel(
    CoverageFeatures([("count", 1)], [0.5], document_features=["score"]), ((1.0, 2.0),), 3,
    provenance={"method": "svmdiv", "queries": ["1"], "validation": ["2"]},
)  # fmt: skip


def encode(texts):
    return np.array([[text.count(letter) + 1 for letter in "abc"] for text in texts])


def changed(value, place=()):
    """Yield the JSON with each node replaced by other values, and without it, each with its place."""
    nodes = [(place, key) for key in (value if isinstance(value, dict) else range(len(value)))]
    for _, key in nodes:
        for other in VALUES:
            yield (
                (*place, key),
                {**value, key: other} if isinstance(value, dict) else [*value[:key], other, *value[key + 1 :]],
            )
        if isinstance(value, dict):
            yield (*place, key), {name: part for name, part in value.items() if name != key}
        else:
            yield (*place, key), value[:key] + value[key + 1 :]
        if isinstance(value[key], dict | list):
            for where, part in changed(value[key], (*place, key)):
                other = copy.copy(value)
                other[key] = part
                yield where, other


def normal(text):
    """The JSON as a text to compare, in which 1 is 1.0, but not true."""
    return json.dumps(json.loads(text, parse_int=float), sort_keys=True)


def write_model(path, content):
    path.write_text(json.dumps(content))


def write_retriever(path, content):
    """A file whose digest is right."""
    if not isinstance(content, dict):
        content = {"content": content, "passages": [], "fields": None}
    HybridRetriever(["a cat", "b dog"], encode).save(path)
    with np.load(path) as opened:
        arrays = {name: opened[name] for name in opened.files if name != "digest"}
    passages = content.get("passages")
    texts = [json.dumps(one).encode() for one in (passages if isinstance(passages, list) else [])]
    given = {name: json.dumps(content.get(name)).encode() for name in ("content", "fields")}
    given["passages"] = b"".join(texts)
    arrays |= {name: np.frombuffer(part, np.uint8) for name, part in given.items()}
    arrays["passage_offsets"] = offsets([*map(len, texts)])
    with path.open("wb") as file:
        write_mappable(file, {"digest": retriever_file._digest(arrays), **arrays})


def read_retriever(path):
    retriever = HybridRetriever.load(path, encode)
    retriever.search("cat")
    assert all(isinstance(retriever[docid]["text"], str) for docid in retriever)


def trees():
    return RankingModel((random_trees(1, 2),), (2.0,))


def evaluation(folder):
    run, other = ({"1": {"a": 2.0, "b": 1.0}, "2": {"a": 1.0, "c": 0.5}}, {"1": {"b": 2.0}, "2": {"c": 2.0, "a": 1.0}})
    qrels = {"1": {"a": 1}, "2": {"a": 2, "c": 0}}
    return compare({"x": run, "y": other}, qrels, ["AP", "nDCG@10"], baseline="y").format("json")


def export(folder):
    """The open export of an index, the content of its ``meta.json``, and the other way."""
    (folder / "index").mkdir(exist_ok=True)
    return MemorySource(folder / "index", TEXTS).open()


def write_manifest(path, content):
    text = json.dumps(content)
    (meta,) = (path.parent).glob("index.greylag/*/meta.json")
    meta.write_text(f"{text}\n{zlib.crc32(text.encode())}\n")


def manifest(folder):
    (meta,) = export(folder).folder.glob("meta.json")
    return json.loads(meta.read_bytes().split(b"\n")[0])


def read_export(path):
    assert isinstance(export(path.parent).fingerprint, str)


def record(folder):
    """The record of a finished study."""
    (folder / "numbers.txt").write_text("1")
    settings = Settings(name="sum", data_folder=folder, file_folder=folder, numbers="numbers.txt")
    run_study(STUDY, settings, folder / "out")
    return json.loads((folder / "out" / runner.FINISHED).read_text())


def read_record(path):
    out = path.parent / "out"
    runner._earlier_files(out)
    if content := runner._read_finished(out):
        assert all(isinstance(score, float | int) for scores in content["scores"].values() for score in scores.values())


FILES = {
    "linear model": (lambda folder: saved(LINEAR, folder), write_model, RankingModel.load),
    "trees": (lambda folder: saved(trees(), folder), write_model, RankingModel.load),
    "XGBoost's trees": (lambda folder: a_model(), write_model, RankingModel.load),
    "XGBoost's dart": (lambda folder: a_model(kind="dart"), write_model, RankingModel.load),
    "diversity model": (lambda folder: saved(DIVERSITY, folder), write_model, DiversityModel.load),
    "hybrid weight": (lambda folder: saved(HybridModel(2.0), folder), write_model, HybridModel.load),
    "fusion": (lambda folder: saved(FUSION, folder), write_model, RankingModel.load),
    "evaluation": (lambda folder: json.loads(evaluation(folder)), write_model, read_evaluation),
    "retriever": (
        lambda folder: {
            "content": {"language": "en", "depth": 5, "weight": 2.0},
            "fields": [{"tags": 1}, {"tags": 1}],
            "passages": [{"text": "a cat", "tags": ["x", {"y": 1}]}, {"text": "b dog"}],
        },
        write_retriever,
        read_retriever,
    ),
    "export": (manifest, write_manifest, read_export),
    "study": (record, lambda path, content: write_model(path.parent / "out" / runner.FINISHED, content), read_record),
}


def saved(model, folder):
    model.save(folder / "model.json")
    return json.loads((folder / "model.json").read_text())


@pytest.mark.parametrize("name", FILES)
def test_any_value_at_any_place(name, tmp_path):
    make, write, read = FILES[name]
    content, path, refused = make(tmp_path), tmp_path / "file", 0
    others = [*changed(content), *(((), value) for value in VALUES)]
    for place, other in random.Random(0).sample(others, min(SAMPLE.get(name, 200), len(others))):
        write(path, other)
        try:
            value = read(path)
            if isinstance(value, RankingModel | DiversityModel):  # which can be used
                value.summary()
                set(value.provenance.get("queries", ()))
        except GreylagError as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(f"{place}: {other!r:.300}") from error
        else:
            if isinstance(value, SavedModel) and not name.startswith("XGBoost"):
                assert normal(value.as_json()) == normal(json.dumps(other)), f"{place}: {other!r:.300}"
            continue
        refused += 1
        assert "\n" not in message, place
        assert write is not write_model or message.startswith(f"{path}: "), place
    assert refused > 200 or SAMPLE.get(name, 0) < 200
