"""Feature files beyond LETOR text, read as that text with the same rows; missing values, as LightGBM reads them.

Tests `greylag.base.doors.features` and `feature_files`.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from greylag.base import FormatError, ModelError, ParameterError
from greylag.evaluation.trec import letor as letor_text
from greylag.features import parse_features
from greylag.learning import ListwiseRegression, RankingData, listed_run, read_letor
from greylag.rankers import ModelRanker, RankingModel
from tests.refusals import refuses

ROWS = [("b", 2, [1.5, 0.0, -3.0]), ("b", 0, [0.0, 2.0, 0.25]), ("a", 1, [1.5, 0.0, -3.0]), ("a", 1, [1.5, 0.0, -3.0])]
SIZES = "2\n2\n"


def letor(path, *, qids=True, names="", cell=str):
    cells = [" ".join(f"{n}:{cell(x)}" for n, x in enumerate(values, 1) if cell(x)) for *_, values in ROWS]
    asked = [f" qid:{qid}" if qids else "" for qid, *_ in ROWS]
    lines = [f"{ROWS[row][1]}{asked[row]} {cells[row]}{f' # d{names}' if names else ''}\n" for row in range(len(ROWS))]
    path.write_text("".join(lines))
    return path


def frame(**more):
    columns = {"qid": [row[0] for row in ROWS], "label": [row[1] for row in ROWS]}
    return columns | {str(n): [values[n - 1] for *_, values in ROWS] for n in (1, 2, 3)} | more


def same(found, expected, qids=None):
    assert found.qids == (qids or expected.qids)
    assert (found.names, found.docids, found.y.tolist()) == (expected.names, expected.docids, expected.y.tolist())
    np.testing.assert_array_equal(found.X, expected.X)
    assert found.groups.tolist() == expected.groups.tolist()


@pytest.mark.parametrize("ending", [".group", ".query"])
def test_text_without_qids_has_the_sizes_of_queries_beside_it(tmp_path, ending):
    expected = read_letor(letor(tmp_path / "own.txt"))
    path = letor(tmp_path / "f.txt", qids=False)
    refuses(lambda: read_letor(path), FormatError, "f.txt:1: no qid")
    sizes = tmp_path / f"f.txt{ending}"
    sizes.write_text(SIZES)
    same(read_letor(path), expected, ("1", "2"))
    path.write_text("# 1=x\n\n" + path.read_text())
    assert read_letor(path).names == ("x", "2", "3")
    whole = path.read_text()
    path.write_text(whole.replace("\n2 ", "\n2 qid:9 "))  # one line of four has a qid
    refuses(lambda: read_letor(path), FormatError, f"f.txt{ending} 4 documents 3 without a qid")
    path.write_text(whole)
    for text, parts in (("2\n1\n", "3 documents 4"), ("2\n0\n2\n", ":2: '0' no number"), ("4 1\n", ":1: 2 columns")):
        sizes.write_text(text)
        refuses(lambda: read_letor(path), FormatError, f"f.txt{ending} {parts}")
    sizes.write_text(SIZES)
    path.write_text(path.read_text().replace("2:2.0", "2:x"))
    refuses(lambda: read_letor(path), FormatError, f"{path}:4: 'x'")
    same(read_letor(letor(path)), expected)  # its own qids, whatever stands beside it


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_and_parquet_are_the_same_as_text(tmp_path, library):
    expected = read_letor(letor(tmp_path / "f.txt"))
    same(read_letor(library(frame())), expected)
    pl.DataFrame(frame()).write_parquet(tmp_path / "f.parquet")
    same(read_letor(tmp_path / "f.parquet"), expected)
    same(read_letor(library(frame(qid=[7, 7, 9, 9]))), expected, ("7", "9"))
    assert read_letor(library(frame(docno=list("abcd")))).docids == tuple("abcd")
    ones = [1, None, 3, 4]
    refuses(lambda: read_letor(library(frame(x=ones))), ParameterError, "row 1 lacks x absent=0.0")
    found = read_letor(library(frame(x=ones)), absent=0.0)
    np.testing.assert_array_equal(found.X[:, 3], np.array(ones, dtype=float))
    assert found.docids == read_letor(library(frame(x=[1, 0, 3, 4]))).docids


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"x": ["1", "2", "3", "4"]}, "x texts '1' drop"),
        ({"qid": list("abab")}, "not contiguous"),
        ({"qid": [0.5, 1, 1, 2]}, "identifier 0.5"),
        ({"label": [0.5, 1, 1, 2]}, "grade row 0 0.5"),
        ({"docno": list("aabb")}, "document twice"),
        ({"x": [1.0, 2.0, 3.0, np.inf]}, "feature x inf"),
    ],
)
def test_refusals_of_frames(tmp_path, change, parts):
    refuses(lambda: read_letor(pd.DataFrame(frame(**change))), ParameterError, parts)
    pl.DataFrame(frame(**change)).write_parquet(tmp_path / "f.parquet")
    error = ParameterError if "inf" in parts else FormatError
    refuses(lambda: read_letor(tmp_path / "f.parquet"), error, parts)


def test_columns_that_lack():
    refuses(lambda: read_letor(pd.DataFrame({"qid": ["a"], "x": [1]})), ParameterError, "no column label")
    refuses(lambda: read_letor(pd.DataFrame({"qid": [], "label": [], "x": []})), ParameterError, "no rows")


def test_files_and_arguments_that_are_neither(tmp_path):
    refuses(lambda: read_letor(tmp_path / "none.parquet"), FormatError, "none.parquet No such file")
    (tmp_path / "f.parquet").write_text("1 qid:1 1:1\n")
    refuses(lambda: read_letor(tmp_path / "f.parquet"), FormatError, "f.parquet cannot be read as Parquet")
    refuses(lambda: read_letor(letor(tmp_path / "f.txt"), absent=5), ParameterError, "absent 5 0.0 math.nan")
    np.testing.assert_array_equal(read_letor(tmp_path / "f.txt", absent=0).X, read_letor(tmp_path / "f.txt").X)


@pytest.mark.parametrize("scanned", [0, letor_text.MIN_BYTES])
def test_what_is_left_out_is_what_the_model_takes_it_for(tmp_path, monkeypatch, scanned):
    monkeypatch.setattr(letor_text, "MIN_BYTES", scanned)
    path = letor(tmp_path / "f.txt", cell=lambda x: "NaN" if x == 2 else "" if x == 0 else str(x))
    refuses(lambda: read_letor(path), FormatError, "f.txt:2: feature 2 'NaN'")
    zeros, gaps = read_letor(path, absent=0.0), read_letor(path, absent=np.nan)
    X = np.array([values for *_, values in ROWS])
    np.testing.assert_array_equal(zeros.X, np.where(X == 2, np.nan, X))
    np.testing.assert_array_equal(gaps.X, np.where((X == 0) | (X == 2), np.nan, X))
    assert zeros.docids == gaps.docids == read_letor(letor(path, cell=lambda x: "0" if x == 2 else str(x))).docids
    path.write_text("1 qid:1 0:1 2:nan\n0 qid:1 2:3\n0 qid:1 # 2:nan\n")
    nan, found = np.nan, read_letor(path, absent=np.nan)
    np.testing.assert_array_equal(found.X, [[1, nan, nan], [nan, nan, 3], [nan, nan, nan]])
    assert found.docids[2] == "2:nan"
    path.write_text("1 qid:1 1:1 # a\n0 qid:1 2:3 # b\n")
    np.testing.assert_array_equal(read_letor(path, absent=nan).X, [[1, nan], [nan, 3]])
    path.write_text("1 1:2\n0\n0 # d\n")
    path.with_name("f.txt.group").write_text("1\n2\n")
    np.testing.assert_array_equal(read_letor(path, absent=np.nan).X, [[2], [nan], [nan]])
    np.testing.assert_array_equal(read_letor(path).X, [[2], [0], [0]])


def test_learners_and_linear_models_refuse_what_is_missing():
    data = RankingData.from_arrays([[1.0, np.nan], [2.0, 3.0]], [0, 1], [2])
    refuses(lambda: ListwiseRegression("nDCG@10").fit(data), ParameterError, "feature 2 document 1 NaN")
    linear = RankingModel(parse_features("column:2"), (1.0,))
    refuses(lambda: linear.with_columns(data), ModelError, "column:2 NaN trees")


def test_missing_values_go_as_in_lightgbm(tmp_path):
    """Also in trees that were trained without any, where LightGBM takes them as 0."""
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)).round(2)
    gaps, y = np.where(rng.random(X.shape) < 0.3, np.nan, X), (X[:, 0] > X[:, 1]).astype(int)
    lines = [
        f"{grade} qid:{row // 20} {' '.join(f'{n}:{x}' for n, x in enumerate(values, 1))} # d{row}\n"
        for row, (grade, values) in enumerate(zip(y, gaps.tolist(), strict=True))
    ]
    (tmp_path / "f.txt").write_text("".join(lines))
    settings = {"objective": "lambdarank", "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1}
    for trained in (X, gaps):
        booster = lightgbm.train(settings, lightgbm.Dataset(trained, label=y, group=[20] * 15), 9)
        booster.save_model(tmp_path / "m.txt")
        model = RankingModel.load(tmp_path / "m.txt")
        data = read_letor(tmp_path / "f.txt", absent=model.absent)
        scores = [*map(ModelRanker(model.with_columns(data)).scores, listed_run(data, "x").rankings)]
        np.testing.assert_array_equal(np.concatenate(scores), booster.predict(gaps))
