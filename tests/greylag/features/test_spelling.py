"""Features: spelling, the pool, the files they name, Python functions, the operator ``**``, and normalisation.

Tests `feature`, `named_files` and `spec`.
"""

import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import zscore
from sklearn.preprocessing import minmax_scale

from greylag.base import ParameterError, Ranking
from greylag.base.runtime.inputs import named_files
from greylag.diversity import MMR
from greylag.features.evidence import Prior, Score
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import (
    NORMALISATIONS,
    Evidence,
    FeatureUnion,
    Normalised,
    PythonFeature,
    derive,
    supply,
)
from greylag.features.fused_runs import FusedRuns
from greylag.features.named_files import FeatureText, followed
from greylag.features.spec import UNLIMITED, FeatureSpec, Window, candidate_pool
from greylag.features.spelling import parse_feature, parse_features
from greylag.index.positional import PositionalIndex
from greylag.rankers.model import RankingModel
from tests.refusals import refuses


def test_the_pool():
    pool = candidate_pool()
    assert len(pool) == len(set(pool)) == 2 + 2 * 2 * 13
    assert parse_features(",".join(map(str, pool))) == pool
    assert sum(spec.window.width == UNLIMITED for spec in pool) == 4
    assert {name: len(candidate_pool(name)) for name in ("sd", "fd", "full")} == {"sd": 28, "fd": 28, "full": 54}


def odd(result):
    return FeatureExtractor(INDEX, (PythonFeature("odd", lambda ranking: result),))(RANKING)


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: parse_features(["score"]), "features list"),
        (lambda: parse_features({"score"}), "features set"),
        (lambda: parse_features("SD/ordered"), "'SD/ordered' form"),
        (lambda: parse_features("XX/term/LM"), "'XX' FI, SD, FD"),
        (lambda: parse_features("SD/pairs/LM-O-1"), "'pairs' term, ordered, unordered, expansion"),
        (lambda: parse_features("SD/ordered/TF-O-1"), "'TF-O-1' LM, BM25, early"),
        (lambda: parse_features("SD/ordered/LM-O-0"), "'LM-O-0'"),
        (lambda: parse_features("SD/ordered/LM"), "'ordered' needs window LM-O-1"),
        (lambda: parse_features("FI/term/LM-O-1"), "'term' no window BM25-F-10"),
        (lambda: parse_features("FI/ordered/LM-O-1"), "FI SD FD"),
        (lambda: parse_features("SD/expansion/LM"), "use FI"),
        (lambda: parse_features("FI/expansion/LM-O-1"), "'expansion' no window"),
        (lambda: parse_features("FI/term/LM,FI/term/LM"), "FI/term/LM twice"),
        (lambda: FeatureExtractor(INDEX, {Score(), BM25}), "features set"),
        (lambda: FeatureExtractor(INDEX, BM25), "FI/term/BM25 tuple"),
        (lambda: FeatureExtractor(INDEX, {BM25: 1.0}), "features dict"),
        (lambda: RankingModel({Score()}, (1.0,)), "features set"),
        (lambda: RankingModel((Score(),), {"score": 1.0}), "weights dict"),
        (lambda: FusedRuns("rrf", "ab"), "runs 'ab'"),
        (lambda: candidate_pool("fi"), "'fi' sd, fd, full"),
        (lambda: Score() ** (lambda ranking: ranking.scores), "'<lambda>'"),
        (lambda: FeatureExtractor(INDEX, (PythonFeature("bert"),))(RANKING), "python:bert supply({'bert': function})"),
        (lambda: supply(parse_features("python:bert@z"), {"bart": len}), "python:bart bert"),
        (lambda: Normalised(Score(), "l2"), "'l2' score@l2 minmax, z, rank"),
        (lambda: parse_feature("score@z@rank"), "score@z@rank twice"),
        (lambda: odd([1.0]), "python:odd (1,) query q 3 documents"),
        (lambda: odd([1.0, np.inf, 2.0]), "python:odd finite"),
        (lambda: odd(["x", "y", "z"]), "python:odd list"),
        (lambda: odd(None), "python:odd shape"),
        (lambda: First.parse("first:2.5:1:x"), "first:2.5:1:x terms '2.5' integer"),
        (lambda: First.parse("first:2"), "first:TERMS:SHARE:NAME"),
        *(
            (lambda text=text: parse_feature(text), "")
            for text in ("scores", "score:1", "@z", "run:", "python:", "python:a b", "runs:x", "score@", "x@z")
        ),
        *(
            (lambda text=text: parse_feature(text), "fused:")
            for text in ("fused:rrf", "fused:rrf()", "fused:borda(a)", "fused:rrf(a,,b)", "fused:rrf(a(b))")
        ),
    ],
)
def test_refusals(make, parts):
    refuses(make, ParameterError, parts)


@dataclass(frozen=True)
class First(Evidence):
    """A feature with parameters, as another package may register it."""

    form = "first:{terms}:{share}:{name}"

    terms: int
    share: float
    name: str

    def bind(self, index):
        raise NotImplementedError


def test_fields_are_read_by_their_types():
    assert First.parse("first:2:.5:7") == First(2, 0.5, "7")
    assert str(First(2, 1.0, "x")) == "first:2:1.0:x"


def test_windows_round_trip():
    for text in ("O-4", "U-unlimited", "U-12"):
        assert str(Window.parse(text)) == text
    for text in ("", "O-0", "X-1", "O-04", "U-4-4"):
        assert Window.parse(text) is None


@pytest.mark.parametrize("width", ["1000000", "99999999999999999999", "9" * 5000, "\u0661", "01", "-1"])
def test_widths_are_bounded(width):
    assert Window.parse(f"O-{width}") is None
    with pytest.raises(ParameterError):
        FeatureSpec.parse(f"SD/ordered/LM-O-{width}")
    assert FeatureSpec.parse("SD/ordered/LM-O-999999").window.width == 999_999


def test_features_of_all_kinds_round_trip():
    texts = (
        "score reciprocal-rank@rank run:runs/dense.run@z prior:pagerank.tsv:log:1e-06@minmax prior:a@z:raw "
        "stage:manifold(alpha=0.8,graph=knn)@z python:bert@rank SD/ordered/LM-O-4@z"
    ).split()
    assert [str(parse_feature(text)) for text in texts] == texts
    assert parse_features(", ".join(texts)) == tuple(map(parse_feature, texts))


def test_a_prior_whose_file_ends_like_a_normalisation_keeps_its_meaning():
    assert parse_feature(str(Prior("a@z"))) == Prior("a@z")
    assert parse_feature("prior:a@z") == Normalised(Prior("a"), "z")


def test_files_of_features():
    features = parse_features("score,run:a.run@z,prior:b.tsv,stage:mrf(model=c.json,transfer=true),stage:mmr")
    assert [file for feature in features for file in feature.files()] == ["a.run", "b.tsv", "c.json"]
    placed = [feature.place_files("x/{}".format) for feature in features]
    assert ",".join(map(str, placed)) == (
        "score,run:x/a.run@z,prior:x/b.tsv,stage:mrf(model=x/c.json,transfer=true),stage:mmr"
    )


INDEX = PositionalIndex.from_texts({"a": "new york city", "b": "york", "c": "city of dreams"})
RANKING = Ranking("q", "york city", ("b", "c", "a"), [3.0, 2.0, 1.0])
BM25 = FeatureSpec("FI", "term", "BM25")


def lengths(ranking):
    return [len(INDEX.query_terms(docid)) for docid in ranking.docids]


def test_the_operator_puts_features_side_by_side():
    stage = MMR(INDEX)
    union = Score() ** BM25**lengths
    assert isinstance(union, FeatureUnion)
    assert list(map(str, union)) == ["score", "FI/term/BM25", "python:lengths"]
    assert list(map(str, stage ** Score())) == ["python:MMR", "score"]
    assert union ** parse_feature("score@z") == FeatureUnion([*union, parse_feature("score@z")])
    with pytest.raises(TypeError):
        Score() ** 2


def test_a_union_is_extracted_as_any_features():
    values = FeatureExtractor(INDEX, Score() ** BM25**lengths)(RANKING)
    assert values[:, 0].tolist() == [3.0, 2.0, 1.0]
    assert values[:, 1:2].tolist() == FeatureExtractor(INDEX, (BM25,))(RANKING).tolist()
    assert values[:, 2].tolist() == lengths(RANKING)
    assert PythonFeature("bert") == PythonFeature("bert", lengths), "functions are not compared"


def test_a_stage_gives_its_scores_and_what_it_leaves_out_has_the_least():
    def best_two(ranking):
        return ranking.rescore([1.0, 5.0, 3.0]).head(2)

    extractor = FeatureExtractor(INDEX, (PythonFeature("best-two", best_two),))
    assert extractor(RANKING)[:, 0].tolist() == [3.0, 5.0, 3.0]


def normalise(values, method):
    return derive(parse_feature(f"score@{method}"), values)


VALUES = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=12)
CATS = PositionalIndex.from_texts({f"d{i}": "cat " * i + "dog" for i in range(1, 6)})


@settings(deadline=None)
@given(VALUES)
def test_other_implementations_agree(values):
    x = np.array(values)
    lower = [sum(other < own for other in values) + 0.5 * (values.count(own) - 1) for own in values]
    assert normalise(x, "rank").tolist() == pytest.approx([count / (len(x) - 1) for count in lower])
    assert normalise(x, "minmax") == pytest.approx(np.full(len(x), 0.5) if np.ptp(x) == 0 else minmax_scale(x))
    assert normalise(x, "z") == pytest.approx(np.zeros(len(x)) if np.ptp(x) == 0 else zscore(x))


@settings(deadline=None)
@given(VALUES, st.floats(0.1, 10), st.floats(-100, 100))
def test_order_is_kept_and_scale_and_origin_do_not_matter(values, scale, origin):
    x = np.array(values)
    for method in NORMALISATIONS:
        found = normalise(x, method)
        assert all((x[i] < x[j]) == (found[i] < found[j]) for i, j in product(range(len(x)), repeat=2))
        assert normalise(scale * x + origin, method) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(("method", "constant"), [("minmax", 0.5), ("z", 0.0), ("rank", 0.5)])
def test_equal_values(method, constant):
    assert normalise(np.full(3, 0.1), method).tolist() == [constant] * 3
    assert normalise(np.full(1, 0.1), method).tolist() == [constant]
    assert normalise(np.empty(0), method).tolist() == []


def test_documents_without_a_value_have_no_part_and_get_the_least():
    ranking = Ranking("q", "cat", ("d1", "gone", "d2", "d3"), np.zeros(4))
    alone = Ranking("q", "cat", ("d1", "d2", "d3"), np.zeros(3))
    for method in NORMALISATIONS:
        extractor = FeatureExtractor(CATS, (parse_feature(f"FI/term/BM25@{method}"),))
        values, own = extractor(ranking)[:, 0], extractor(alone)[:, 0]
        assert values[[0, 2, 3]].tolist() == own.tolist()
        assert values[1] == own.min()


def test_what_is_normalised_in_several_ways_is_computed_once():
    calls = []

    def record(ranking):
        calls.append(ranking.qid)
        return list(range(len(ranking)))

    base = PythonFeature("record", record)
    extractor = FeatureExtractor(CATS, (Normalised(base, "z"), base, Normalised(base, "rank")))
    values = extractor(Ranking("q", "cat", ("d1", "d2"), np.zeros(2)))
    assert calls == ["q"]
    assert values.tolist() == [[-1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def test_functions_are_supplied_by_name():
    bert, plain = supply(
        (parse_feature("python:bert@z"), parse_feature("python:bert")), {"bert": lambda r: range(len(r))}
    )
    assert (str(bert), str(plain)) == ("python:bert@z", "python:bert")
    two = Ranking("q", "cat", ("d1", "d2"), np.zeros(2))
    assert FeatureExtractor(CATS, (bert, plain))(two).tolist() == [[-1.0, 0.0], [1.0, 1.0]]


def test_files_of_features_are_named():
    settings = {"index": "folder", "features": ["run:a.run@z", "prior:b.tsv:log@z", "FI/term/BM25"], "k": 3}
    assert list(named_files(list[FeatureText], settings["features"])) == ["a.run", "b.tsv"]
    assert list(named_files(dict[str, str], settings)) == []
    assert list(named_files(FeatureText | None, None)) == []


def test_models_are_followed_and_circles_end(tmp_path):
    one, two, prior = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "prior.tsv"
    prior.write_text("a 1\n")
    RankingModel((parse_feature(f"stage:mrf(model={two})"),), (1.0,)).save(one)
    RankingModel(tuple(map(parse_feature, (f"stage:mrf(model={one})", f"prior:{prior}"))), (1.0, 1.0)).save(two)
    (tmp_path / "damaged.json").write_text('{"kind": ')
    os.mkfifo(tmp_path / "pipe")
    given = [one, tmp_path / "absent", tmp_path / "damaged.json", tmp_path / "pipe", tmp_path, Path("x" * 5000)]
    assert list(followed(given)) == [one, tmp_path / "damaged.json", tmp_path / "pipe", tmp_path, two, prior]
