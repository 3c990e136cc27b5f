"""Fusion of rankings, and unions of first stages."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from greylag.base import ParameterError, Query, Ranking, Run
from greylag.evaluation import RRF, CombSUM, PooledSources, fuse_runs
from greylag.evaluation.fusion import FUSIONS, GivenRun, parse_fusion
from greylag.features.fused_runs import run_columns
from greylag.rankers.model import RankingModel
from greylag.rankers.stages import FusionRanker
from tests.processes import python
from tests.refusals import refuses

ONE = Run((Ranking("1", "tea", ("a", "b"), [2.0, 1.0]), Ranking("2", "mud", ("a",), [1.0])), "one")
TWO = Run((Ranking("1", "", ("c", "b"), [9.0, 8.0]), Ranking("3", "", ("d",), [1.0])), "two")


def ranking(docids):
    return Ranking("q", "tea", tuple(docids), np.arange(len(docids), 0.0, -1.0))


def by_docid(fused):
    return dict(zip(fused.docids, fused.scores, strict=True))


def test_ties_go_to_the_earlier_ranking_and_equal_scores_are_halfway():
    assert RRF()([ranking("ab"), ranking("ba")]).docids == ("a", "b")
    assert RRF()([ranking("ba"), ranking("ab")]).docids == ("b", "a")
    assert RRF()([ranking("a"), ranking("b")]).docids == ("a", "b")
    assert CombSUM()([Ranking("q", "", ("a", "b"), [3.0, 3.0])]).scores.tolist() == [0.5, 0.5]
    only, dense = [("manual", 9.0)], [("faq", 0.9), ("other", 0.85), ("manual", 0.8), ("last", 0.4)]
    found = by_docid(CombSUM()([only, dense]))
    assert found == pytest.approx({"manual": 0.5 + 0.8, "faq": 1.0, "other": 0.9, "last": 0.0})
    assert by_docid(CombSUM()([[("new", 9.0)], dense]))["new"] == 0.5, "above what neither run has"


def test_order_and_scale_of_the_rankings_do_not_matter():
    """With a single rounding, equal sums stay equal in any order of the terms."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        rankings = [ranking("".join(rng.permutation(list("abcdefgh")))) for _ in range(4)]
        exact = {d: sum(Fraction(1 / (61 + one.docids.index(d))) for one in rankings) for d in "abcdefgh"}
        for order in permutations(rankings):
            assert by_docid(RRF()(order)) == {d: float(score) for d, score in exact.items()}
    rankings = [Ranking.sort("q", "", list("abcdef"), rng.integers(0, 64, 6)) for _ in range(4)]
    scaled = [Ranking("q", "", r.docids, 2.0 * r.scores - 8.0) for r in rankings]
    for order in permutations(scaled):
        assert by_docid(CombSUM()(order)) == by_docid(CombSUM()(rankings))


def exact(method, constant, weights, rankings):
    """The formulas of fusion in fractions, from ranks and scores."""
    totals = {}
    for weight, one in zip(weights, rankings, strict=True):
        scores = [Fraction(score) for score in one.scores.tolist()]
        spread = max(scores) - min(scores)
        for rank, (docid, score) in enumerate(zip(one.docids, scores, strict=True), 1):
            term = 1 / (constant + rank) if method == "rrf" else (score - min(scores)) / spread
            totals[docid] = totals.get(docid, Fraction(0)) + weight * term
    if method != "combmnz":
        return totals
    return {docid: total * sum(docid in one.docids for one in rankings) for docid, total in totals.items()}


@pytest.mark.parametrize("method", FUSIONS)
def test_weights_and_the_rank_constant_by_the_formulas_in_fractions(method):
    rng = np.random.default_rng(1)
    for number in (1, 2, 3, 5):
        rankings = []
        for _ in range(number):
            docids = rng.permutation(list("abcdefgh"))[: rng.integers(2, 9)]
            rankings.append(Ranking.sort("q", "", list(docids), rng.permutation(20)[: len(docids)]))
        weights = rng.integers(0, 9, number) / 8
        weights[0] += 0.125
        options = {"weights": weights, "rank_constant": 2.5} if method == "rrf" else {"weights": weights}
        fused = parse_fusion(method, **options)(rankings)
        expected = exact(method, Fraction(5, 2), [Fraction(weight) for weight in weights.tolist()], rankings)
        assert by_docid(fused) == pytest.approx({d: float(score) for d, score in expected.items()}, rel=1e-15)
        assert [expected[docid] for docid in fused.docids] == sorted(expected.values(), reverse=True)


@pytest.mark.parametrize("method", FUSIONS)
def test_equal_weights_change_nothing_and_a_weight_of_0_silences_a_run(method):
    rankings = [ranking("abcd"), ranking("cae"), ranking("dcb")]
    assert parse_fusion(method, weights=[1, 1, 1])(rankings) == parse_fusion(method)(rankings)
    two, alone = fuse_runs([ONE, TWO], method, weights=[0.5, 0]), fuse_runs([ONE], method, weights=[0.5])
    assert set(two["1"].docids) == {"a", "b", "c"}
    assert by_docid(two["1"])["c"] == 0
    assert by_docid(two["1"])["a"] == by_docid(alone["1"])["a"]


def test_a_method_is_spelt_named_with_options_or_a_value():
    expected = fuse_runs([ONE, TWO], RRF(rank_constant=10, weights=(0.7, 0.3)))
    assert expected.tag == "rrf"
    assert expected["1"].docids == ("b", "a", "c")  # 1/12, .7/11 and .3/11
    for spelt in ("rrf(rank_constant=10,weights=[.7,.3])", " RRF(weights=[0.7, 3e-1], rank_constant=10.0)"):
        assert fuse_runs([ONE, TWO], spelt) == expected
    assert fuse_runs([ONE, TWO], rank_constant=10, weights=[0.7, 0.3]) == expected
    assert fuse_runs([ONE, TWO], "rrf(rank_constant=99)", rank_constant=10, weights=np.array([0.7, 0.3])) == expected
    source = PooledSources((GivenRun(ONE), GivenRun(TWO)), method="rrf(rank_constant=10,weights=[.7,.3])")
    assert source(Query("1", "tea")) == expected["1"]


def test_scored_lists_are_runs():
    one, two = [("a", 2.0), ("b", 1.0)], (["c", 9], ("b", np.float32(8.5)))
    rankings = [Ranking("query", "", ("a", "b"), [2.0, 1.0]), Ranking("query", "", ("c", "b"), [9.0, 8.5])]
    fused = fuse_runs([one, two], "combsum", weights=[1, 2])
    assert fused["query"] == CombSUM(weights=(1, 2))(rankings) == CombSUM(weights=(1, 2))([one, two])
    assert [*fused["query"]] == [("c", 2.0), ("a", 1.0), ("b", 0.0)]
    assert fuse_runs([[*ranking] for ranking in rankings]) == fuse_runs([one, two])
    by_query = fuse_runs([{"1": one, "2": []}, {"1": dict(two)}, ONE])
    assert by_query["1"] == fuse_runs([{"1": dict(one)}, {"1": dict(two)}, Run((ONE["1"],))])["1"]
    assert fuse_runs([[], one])["query"].docids == ("a", "b")


LEARNED_FUSION = FusionRanker(
    RankingModel(run_columns(("bm25", "dense")), (1.0, 0.0, 3.0, 0.0), runs=("bm25", "dense"))
)


def test_named_runs_meet_weights_and_models_by_name():
    expected = fuse_runs([ONE, TWO], "combsum", weights=[1, 3])
    for names in (("bm25", "dense"), ("dense", "bm25")):
        runs = {name: {"bm25": ONE, "dense": TWO}[name] for name in names}
        assert by_docid(fuse_runs(runs, "combsum", weights={"bm25": 1, "dense": 3})["1"]) == by_docid(expected["1"])
        assert by_docid(fuse_runs(runs, LEARNED_FUSION)["1"]) == by_docid(expected["1"])
    assert fuse_runs({"bm25": ONE, "dense": TWO}) == fuse_runs([ONE, TWO])
    assert fuse_runs({"bm25": ONE, "dense": TWO}, "combsum", weights=[1, 3]) == expected
    assert fuse_runs({"a": [("x", 1.0)], "b": [("y", 1.0)]}) == fuse_runs([[("x", 1.0)], [("y", 1.0)]])


def test_runs_may_come_one_after_another():
    assert fuse_runs(run for run in (ONE, TWO)) == fuse_runs([ONE, TWO])


def test_a_union_has_the_documents_of_all_sources():
    union = PooledSources((GivenRun(ONE), GivenRun(TWO)))
    fused = union(Query("1", "tea"))
    assert fused == RRF()([ONE["1"], Ranking("1", "tea", ("c", "b"), [9.0, 8.0])])
    assert set(fused.docids) == {"a", "b", "c"}
    assert PooledSources(union.sources, k=2)(Query("1", "tea")) == fused.head(2)
    assert union(Query("9", "none")).docids == ()
    assert [len(ranking) for ranking in union.run({"1": "tea", "2": "mud"}).values()] == [3, 1]


@pytest.mark.parametrize("method", FUSIONS)
def test_runs_with_different_queries(method):
    fused = fuse_runs([ONE, TWO], method)
    assert fused.tag == method
    assert {qid: (ranking.query, sorted(ranking.docids)) for qid, ranking in fused.items()} == {
        "1": ("tea", ["a", "b", "c"]),
        "2": ("mud", ["a"]),
        "3": ("", ["d"]),
    }
    assert fuse_runs([ONE, TWO], method, tag="top").head(1).rankings[0] == fused["1"].head(1)


ROWS = {"a": 2.0, "b": 1.0}


@pytest.mark.parametrize(
    ("fuse", "parts"),
    [
        (lambda: PooledSources(()), "at least one source"),
        (lambda: fuse_runs(None), "runs: NoneType None"),
        (lambda: PooledSources((GivenRun(ONE),), k=0), "k 0"),
        (lambda: PooledSources({len, sum}), "sources set"),
        (lambda: PooledSources({"bm25": GivenRun(ONE)}), "sources dict"),
        (lambda: RRF()([]), "none"),
        (lambda: RRF()([Ranking("q", "", (), []), Ranking("p", "", (), [])]), "'q', 'p'"),
        (lambda: RRF()({"bm25": ONE["1"], "dense": TWO["1"]}), "rankings dict"),
        (lambda: fuse_runs([ONE], "borda"), "'borda' rrf, combsum, combmnz"),
        (lambda: fuse_runs([ONE, TWO], weights=[0.5]), "rrf weights=[0.5] 2 runs"),
        (lambda: fuse_runs([ONE, TWO], "combsum(weights=[1,2,3])"), "combsum weights=[1.0,2.0,3.0] 2 runs"),
        (lambda: fuse_runs([ONE, TWO], weights=[0.5, -1]), "weights [0.5,-1.0] at least 0"),
        (lambda: fuse_runs([ONE, TWO], weights=[0.5, float("nan")]), "weights [0.5,nan]"),
        (lambda: fuse_runs([ONE, TWO], weights=[float("inf"), 1]), "weights [inf,1.0]"),
        (lambda: fuse_runs([ONE, TWO], weights=["a", "b"]), "weights [a,b]"),
        (lambda: fuse_runs([ONE, TWO], weights={"bm25": 1.0, "dense": 2.0}), "weights one number"),
        (lambda: fuse_runs([ONE, TWO], "rrf(weights=[a,b])"), "weights '[a,b]'"),
        (lambda: fuse_runs([ONE, TWO], weights=[0, 0]), "weights all 0"),
        (lambda: fuse_runs([ONE, TWO], "rrf(rank_constant=-1)"), "rank_constant at least 0 -1"),
        (lambda: fuse_runs([ONE, TWO], rank_constant=None), "rank_constant at least 0 None"),
        (lambda: fuse_runs([ONE, TWO], rank_constant="10"), "rank_constant at least 0 10"),
        (lambda: fuse_runs([ONE, TWO], "rrf(k=10)"), "rrf 'k' rank_constant"),
        (lambda: fuse_runs([ONE, TWO], "combsum(rank_constant=10)"), "combsum 'rank_constant' weights"),
        (lambda: fuse_runs([ONE, TWO], weight=[1, 2]), "rrf 'weight' weights"),
        (lambda: fuse_runs([ONE, TWO], "rrf("), "NAME(OPTION=VALUE,...)"),
        (lambda: fuse_runs([ONE, TWO], RRF(), weights=[1, 2]), "weights 'rrf'"),
        (lambda: fuse_runs([[("a", 1.0), ("b", 2.0)]]), "rank 2 minus"),
        (lambda: fuse_runs([[("a", 1.0), ("a", 0.5)]]), "duplicate 'a'"),
        (lambda: fuse_runs([[("a", 1.0)], ONE]), "list Run {qid: [(docid, score), ...]}"),
        (lambda: fuse_runs([("a", 1.0)]), "tuple"),
        (lambda: fuse_runs([{"1": [("a", "high")]}]), "dict"),
        (lambda: fuse_runs({"1": ROWS, "2": ROWS}), "dict {qid: {docid: score}}"),  # a run alone
        (lambda: fuse_runs(ONE), "runs"),
        (lambda: fuse_runs("a.run"), "runs 'a.run'"),
        (lambda: fuse_runs({"a.run", "b.run"}), "runs set"),
        (lambda: fuse_runs({"bm25": ONE, "dense": TWO}, weights={"bm25": 1.0}), "weights bm25, dense"),
        (lambda: fuse_runs({"bm25": ONE, "other": TWO}, LEARNED_FUSION), "other bm25, dense"),
    ],
)
def test_refusals(fuse, parts):
    refuses(fuse, ParameterError, parts)


BORDA = """
from dataclasses import dataclass
import numpy as np
from greylag.evaluation import FusionRule

@dataclass(frozen=True, kw_only=True)
class Borda(FusionRule):
    name = "borda"
    power: float = 1.0

    def terms(self, pooled):
        ranked = np.isfinite(pooled.ranks)
        return np.where(ranked, ranked.sum(axis=0) + 1 - pooled.ranks, 0.0) ** self.power
"""


def test_rules_of_other_packages_are_entry_points(tmp_path):
    """By name, with their options, in a process that finds the package; learned fusion's columns stay greylag's."""
    (tmp_path / "theirs.py").write_text(BORDA)
    (tmp_path / "theirs-1.0.dist-info").mkdir()
    (tmp_path / "theirs-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (tmp_path / "theirs-1.0.dist-info" / "entry_points.txt").write_text("[greylag.fusions]\nborda = theirs:Borda\n")
    (tmp_path / "a.run").write_text("1 Q0 x 1 3 a\n1 Q0 y 2 2 a\n1 Q0 z 3 1 a\n")
    (tmp_path / "b.run").write_text("1 Q0 z 1 2 b\n1 Q0 w 2 1 b\n")
    code = (
        "from greylag import fuse_runs, read_run; from greylag.evaluation import FUSIONS\n"
        "runs = [read_run(name) for name in ('a.run', 'b.run')]\n"
        "for spelt in ('borda', 'Borda(power=2,weights=[1,0.1])'): print(dict(fuse_runs(runs, spelt)['1']))\n"
        "print('borda' in FUSIONS)"
    )
    done = python("-c", code, cwd=tmp_path, check=True)
    assert done.stdout.splitlines() == [
        "{'x': 3.0, 'z': 3.0, 'y': 2.0, 'w': 1.0}",
        "{'x': 9.0, 'y': 4.0, 'z': 1.4, 'w': 0.1}",
        "False",
    ]
    refuses(lambda: parse_fusion("borda"), ParameterError, "use rrf, combsum, combmnz, or a learned model", "|")
