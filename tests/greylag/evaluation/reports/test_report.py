"""Reports, parsed as HTML and compared with what they were made from: tables, figures, queries before and after.

Tests `greylag.rankers.explanation_tables`, `queries` and `greylag.studies.tables`.
"""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from greylag import Ranking, Run
from greylag.base import ParameterError
from greylag.base.core.tables import Table, as_html, as_text, html_text
from greylag.evaluation import Figure, Scores, Section, line_figure, parse_measure
from greylag.evaluation.reports.queries import Place, QueryChange, QueryChanges, most_changed, query_changes
from greylag.evaluation.reports.report import report_page
from greylag.features.spelling import parse_feature
from greylag.learning.data import RankingData, measure_spreads
from greylag.rankers import RankingModel
from greylag.rankers.explanation import CliqueShare, Explanation, FeatureShare
from greylag.rankers.explanation_tables import comparison_of_documents, explanation_dict, explanation_table
from greylag.studies import means, means_table, models_table
from tests.greylag.rankers.test_export import stump
from tests.greylag.studies.samples import Page


def sections():
    table = Table(
        "Means <over> queries", ("system", "AP", "n", "note"), [("a <b>", 0.25, 7, None), ("c", 1.0, 12, "x")]
    )
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><circle cx="1" cy="3" r="2.5"/></svg>'
    figures = [Figure(caption, svg) for caption in ("One figure", "The same drawing")]
    empty = Table("No rows", ("a", "b"), [])
    return [
        Section("Scores & more", "First paragraph.\n\nSecond <one>.", [table, empty, *figures]),
        Section("Empty", " ", [empty, QueryChanges("No queries", "AP", ("a", "b"), ())]),
    ]


def queries():
    left = (Place(1, "d<1>", 2, "down to 2"), Place(2, "d2", None, "up to 1"))
    text = ("A title", (("words of a ", False), ("wing", True)), (("1", True), ("2", False)))
    why = "+1 FI/term/LM (new & old)"
    right = (Place(1, "d2", None, "up from 2", why, *text), Place(2, "d<1>", 2, "down from 1", "-1"))
    changes = (("q1", "wing <flow>", 0.25, 0.75), ("q2", "boundary layer", 0.5, 0.125))
    found = tuple(QueryChange(*change, left, right) for change in changes)
    return Section("Queries", "", [QueryChanges("Before & after", "AP", ("bm25", "mrf"), found)])


def test_a_page_has_all_content_and_loads_nothing(tmp_path):
    for name in ("report", "again"):
        page = report_page("A <title>", sections(), {"seed": 3, "settings": {"name": "x"}})
        (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    parsed = Page(page)
    assert parsed.open == []
    assert parsed.texts["title"] == parsed.texts["h1"] == ["A <title>"]
    assert parsed.texts["h2"] == ["Scores & more", "Provenance"]
    assert parsed.texts["p"] == ["First paragraph.", "Second <one>.", "Means <over> queries"]
    assert parsed.texts["figcaption"] == ["One figure", "The same drawing"]
    assert parsed.texts["th"] == ["system", "AP", "n", "note", "a <b>", "c", "seed", "settings"]
    assert parsed.texts["td"][:6] == ["0.2500", "7", "", "1.0000", "12", "x"]
    assert parsed.texts["pre"] == ["3", '{\n "name": "x"\n}']
    values = {}
    for tag, name, value in parsed.attributes:
        values.setdefault((tag, name), []).append(value)
        assert name.startswith("xmlns") or "//" not in (value or "")
        assert name not in ("src", "href", "xlink:href") or value.startswith("#")
    assert values["td", "class"] == ["number"] * 4
    assert values["th", "scope"] == ["col"] * 4 + ["row"] * 4
    assert values["svg", "aria-label"] == ["One figure", "The same drawing"]
    assert not {"link", "img", "iframe", "image"} & {*parsed.texts, *(tag for tag, _ in values)}
    assert ("script", "src") not in values
    assert "@import" not in page
    links = {str(value)[1:] for _, name, value in parsed.attributes if name in ("href", "xlink:href")}
    links |= {str(value) for _, name, value in parsed.attributes if name == "aria-labelledby"}
    links |= set(re.findall(r"url\(#(\w+)\)", page))
    assert Counter(value for _, name, value in parsed.attributes if name == "id") == Counter(links) != Counter()
    with pytest.raises(ParameterError, match="parts: str 'words'"):
        Section("Title", "", "words")


def test_queries_with_both_rankings(tmp_path):
    (tmp_path / "report.html").write_text(report_page("t", [queries()], {}), encoding="utf-8")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    parsed = Page(text)
    assert parsed.open == []
    assert parsed.texts["caption"] == ["bm25, query q1", "mrf, query q1", "bm25, query q2", "mrf, query q2"]
    assert [value for tag, name, value in parsed.attributes if name == "data-change"] == ["0.5", "-0.375"]
    assert parsed.rows[1:3] == [["1", "d<1>", "2", "down to 2"], ["2", "d2", "not judged", "up to 1"]]
    assert parsed.rows[4] == ["1", "d2", " words of a ", ", 2", "not judged", "up from 2"]
    assert parsed.texts["small"] == ["+1 FI/term/LM (new & old)", "-1"] * 2
    assert "AP 0.2500 to 0.7500" in text
    assert "<script>" in text


def run(tag, **rankings):
    made = (Ranking(qid, f"text of {qid}", tuple(ids), np.arange(len(ids), 0.0, -1.0)) for qid, ids in rankings.items())
    return Run(tuple(made), tag)


def scores(*values):
    return Scores((parse_measure("AP"),), ("q1", "q2", "q3")[: len(values)], np.array(values)[:, None], (), ())


def test_documents_with_their_moves_and_reasons():
    before, after = run("old", q1="abcd", q2="ab", unjudged="ab"), run("new", q1="caxb", q2="ab", unjudged="ba")
    qrels = {"q1": {"c": 2, "a": 0}, "q2": {"b": 1}, "q3": {"z": 1}}
    seen = []

    def why(qid, old, new):
        seen.append((qid, tuple(old), tuple(new)))
        return [f"{qid} {docid}" for docid in new]

    by_tag = {"old": scores(0.25, 0.5, 0.0), "new": scores(1.0, 0.5, 0.0)}
    found = query_changes("caption", before, after, by_tag, qrels, top=3, why=why)
    assert (found.caption, found.measure, found.names) == ("caption", "AP", ("old", "new"))
    first, second = found.queries
    assert (first.qid, first.text, first.before, first.after, first.change) == ("q1", "text of q1", 0.25, 1.0, 0.75)
    assert first.left == (Place(1, "a", 0, "down to 2"), Place(2, "b", None, "down to 4"), Place(3, "c", 2, "up to 1"))
    assert first.right == (
        Place(1, "c", 2, "up from 3", "q1 c"),
        Place(2, "a", 0, "down from 1", "q1 a"),
        Place(3, "x", None, "was not ranked", "q1 x"),
    )
    assert [place.moved for place in second.left + second.right] == [""] * 4
    assert seen == [("q1", ("a", "b", "c"), ("c", "a", "x")), ("q2", ("a", "b"), ("a", "b"))]


def test_subtopics_titles_and_excerpts(tmp_path):
    runs = run("old", q1="abc"), run("new", q1="cab")
    judged = {"q1": {"x<y>": {"a": 1, "c": 1}, "2": {"b": 0}, "3": {"c": 1, "b": 2}}}
    found = query_changes(
        "c", *runs, {"old": scores(0.5), "new": scores(0.75)}, {"q1": {}},
        show=lambda query, docid: (f"T{docid}&", ((f"{query} of ", False), ("<m>", True))), subtopics=judged,
    )  # fmt: skip
    left, right = ([place.covers for place in places] for places in (found.queries[0].left, found.queries[0].right))
    assert left == [(("x<y>", True),), (("3", True),), (("x<y>", False), ("3", False))]
    assert right == [(("x<y>", True), ("3", True)), (("x<y>", False),), (("3", False),)]
    (tmp_path / "r.html").write_text(report_page("t", [Section("s", parts=[found])], {}), encoding="utf-8")
    parsed = Page((tmp_path / "r.html").read_text())
    assert parsed.open == []
    assert parsed.rows[5][:2] == ["1", "c"]
    assert [text for text in parsed.texts["mark"] if text.strip()] == ["<m>"] * 6
    assert {"Tc&", "x<y>", "3"} <= set(parsed.texts["b"])


def test_queries_that_retrieve_nothing_and_documents_that_are_dropped():
    def changed(before, after, **options):
        runs, by_tag = (run("old", q1=before), run("new", q1=after)), dict.fromkeys(("old", "new"), scores(0.0))
        return query_changes("c", *runs, by_tag, {"q1": {"z": 1}}, **options).queries[0]

    found = changed("", "", why=lambda *_: pytest.fail("nothing to explain"))
    assert (found.left, found.right) == ((), ())
    for top in (1, 2):
        found = changed("ab", "b", top=top)
        assert found.left[0] == Place(1, "a", None, "not ranked any more")
        assert found.right == (Place(1, "b", None, "up from 2"),)


def tables_scores(*values):
    qids = tuple(str(qid) for qid in range(len(values)))
    return Scores((parse_measure("AP"), parse_measure("P@10")), qids, np.array(values), (), ())


def test_means_and_their_table():
    found = means({"a": tables_scores((0.2, 0.5), (0.4, 0.7)), "b": tables_scores((1.0, 0.0), (0.0, 0.0))})
    assert found == {"a": {"AP": pytest.approx(0.3), "P@10": pytest.approx(0.6)}, "b": {"AP": 0.5, "P@10": 0.0}}
    more = {"b": {**found["b"], "S-recall@10": 0.9}, "c": {"AP": 0.1}}
    table = means_table("Means", found | more, decimals=1)
    assert as_text(table).splitlines() == [
        "Means",
        "    AP  P@10  S-recall@10",
        "a  0.3   0.6",
        "b  0.5   0.0          0.9",
        "c  0.1",
    ]


def test_shares_of_features_do_not_depend_on_their_scale():
    """The table is the same if a feature is a hundred times as large and its weight a hundredth."""
    rng = np.random.default_rng(2)
    offsets, values = np.array([0, 3, 3, 9]), rng.random((9, 2))
    grades, ids, tables = np.zeros(9, dtype=np.int64), tuple("abcdefghi"), []
    features = (parse_feature("FI/term/LM"), parse_feature("FI/term/BM25"))
    for scale in (1.0, 100.0):
        data = RankingData(("x", "y"), ("1", "2", "3"), offsets, ids, values * [1.0, scale], grades, (grades[:0],) * 3)
        spreads, parts = measure_spreads(data.features, offsets)[::-1].tolist(), [values[:3], values[3:]]
        pooled = np.sqrt(sum(len(part) * part.var(axis=0) for part in parts) / 9) * [1.0, scale]
        assert spreads == pytest.approx(pooled[::-1])
        model = RankingModel(features, (3.0 / scale, -1.0), provenance={"spreads": spreads})
        tables.append(models_table("m", [model]))
    assert tables[0] == tables[1]
    shares = [float(str(row[1])[2:-1]) for row in tables[0].rows]
    assert shares[0] > 0 > shares[1]
    assert sum(map(abs, shares)) == pytest.approx(100, abs=0.11)
    assert models_table("m", [RankingModel(features, (0.03, 1.0))]).rows[0][1] == "1:\N{NO-BREAK SPACE}+0.03"


def clique(name, tf, contribution, times=1.0):
    return CliqueShare(tuple(name.split()), times, tf, 9, 5, contribution / 2, contribution)


def feature(name, *cliques):
    total = sum(c.contribution for c in cliques)
    return FeatureShare(parse_feature(name), 2.0, total / 2, total, cliques)


def explanation(docid, *features):
    return Explanation("q", docid, sum(share.contribution for share in features), features)


ONE = explanation(
    "a",
    feature("FI/term/LM", clique("new", 1, -3.0), clique("york", 0, -5.0), clique("city", 0, -1.0, 2.0)),
    feature("FI/term/BM25", clique("new", 1, 4.0)),
    feature("SD/ordered/BM25-O-1", clique("new york", 2, 1.0, 0.25)),
)
OTHER = explanation(
    "b",
    feature("FI/term/LM", clique("new", 3, -2.0), clique("york", 0, -5.0), clique("city", 0, -1.0, 2.0)),
    feature("FI/term/BM25", clique("new", 3, 9.0)),
    feature("SD/ordered/BM25-O-1", clique("new york", 0, 0.0, 0.25)),
)


def test_an_explanation_whole_and_folded():
    table = explanation_table(ONE)
    assert [row[0] for row in table.rows] == [
        *("FI/term/LM", "  york", "  new", "  city (2 times)"),
        *("FI/term/BM25", "  new", "SD/ordered/BM25-O-1", "  new york (probability 0.25)", "score"),
    ]
    assert table.rows[2] == ("  new", -3.0, 2.0, -1.5, 1, 9, 5)
    assert table.rows[3][2] == 4.0  # feature weight x multiplicity
    assert table.rows[-1][1] == -4.0
    folded = [*zip(("FI/term/LM", "  new", "  2 cliques without occurrences"), (-9.0, -3.0, -6.0), strict=True)]
    folded += [("2 more features", 5.0), ("score", -4.0)]
    assert [row[:2] for row in explanation_table(ONE, top=1).rows] == folded
    unweighted = explanation("a", replace(ONE.features[1], weight=None))
    assert explanation_table(unweighted).rows[1][:3] == ("  new", 4.0, 0.0)


def test_the_mean_of_trees_is_no_feature():
    """It has a row of its own wherever its size puts it, and is not among the features that are summed up."""
    (trees,) = stump("score", 1.5).features
    mean = FeatureShare(trees, None, 3.0, 3.0, ())
    one, other = (explanation(share.docid, *share.features, mean) for share in (ONE, OTHER))
    assert [row[:2] for row in explanation_table(one, top=1).rows[-3:]] == [
        ("2 more features", 5.0), ("mean score in training", 3.0), ("score", -1.0)
    ]  # fmt: skip
    assert [row[:2] for row in explanation_table(one, top=3).rows[-2:]] == [("1 more feature", 1.0), ("score", -1.0)]
    assert [row[0] for row in explanation_table(explanation("a", ONE.features[0], mean), top=1).rows[-2:]] == [
        "mean score in training", "score"
    ]  # fmt: skip
    assert comparison_of_documents(one, other, top=1).rows[-2][:4] == ("mean score in training", 0.0, 3.0, 3.0)


def test_differences_of_two_documents():
    table = comparison_of_documents(ONE, OTHER)
    names = ("FI/term/BM25", "  new", "FI/term/LM", "  new", "SD/ordered/BM25-O-1", "  new york (probability 0.25)")
    figures = ((-5.0, 4.0, 9.0), (-5.0, 4.0, 9.0), (-1.0, -9.0, -8.0), (-1.0, -3.0, -2.0), *[(1.0, 1.0, 0.0)] * 2)
    assert [row[:4] for row in table.rows] == [
        *((name, *row) for name, row in zip(names, figures, strict=True)), ("score", -5.0, -4.0, 1.0)
    ]  # fmt: skip
    assert table.rows[1][4:] == (1, 3)
    short = [("FI/term/BM25", -5.0), ("  new", -5.0), ("2 more features", pytest.approx(0.0)), ("score", -5.0)]
    assert [row[:2] for row in comparison_of_documents(ONE, OTHER, top=1).rows] == short

    content = json.loads(json.dumps(explanation_dict(ONE)))
    assert content["features"][0]["feature"] == "FI/term/LM"
    assert content["features"][0]["cliques"][1] == {
        **{"terms": ["york"], "multiplicity": 1.0, "tf": 0, "cf": 9, "df": 5},
        **{"value": -2.5, "contribution": -5.0},
    }


def test_pages_and_drawings_have_no_character_that_changes_others(tmp_path):
    odd = "a\x1b[31m\u202eb\u2066"
    figure = line_figure(odd, odd, odd, {odd: ({odd: {0.0: 1.0, 1.0: 2.0}}, {odd: 1.5})})
    table = Table(odd, [odd], [[odd]])
    page = report_page(odd, [Section(odd, odd, [table, figure])], {odd: odd})
    (tmp_path / "r.html").write_text(page, encoding="utf-8")
    for text in ((tmp_path / "r.html").read_text(), figure.svg, as_html(table), html_text(odd)):
        assert r"a\x1b[31m\u202eb\u2066" in text or "<svg" in text
        assert not re.search("[\x1b\u202e\u2066]", text)


def test_of_many_queries_those_are_listed_that_changed_most():
    rng = np.random.default_rng(0)
    qids = [f"q{number}" for number in range(30)]
    runs = [Run(tuple(Ranking(qid, "", ("a",), [1.0]) for qid in qids), tag) for tag in "ab"]
    values = {tag: dict(zip(qids, rng.random(30).tolist(), strict=True)) for tag in "ab"}
    of_runs = {tag: Scores.single(parse_measure("AP"), by_qid) for tag, by_qid in values.items()}
    shown = most_changed(runs[0], runs[1], of_runs, 7)
    largest = sorted(qids, key=lambda qid: -abs(values["a"][qid] - values["b"][qid]))[:7]
    assert [list(run) for run in shown] == [[qid for qid in qids if qid in largest]] * 2
    assert most_changed(runs[0], runs[1], of_runs, 30) == (runs[0], runs[1])
