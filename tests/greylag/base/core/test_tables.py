"""What a notebook shows."""

import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markdown_it import MarkdownIt
from tests.greylag.diversity import samples

from greylag.base import Ranking, Run
from greylag.base.core.tables import (
    Marked,
    Table,
    as_html,
    as_latex,
    as_markdown,
    as_text,
    as_tsv,
    cell_text,
    html_text,
)
from greylag.evaluation import Evaluation, Scores, compare_scores, parse_measure
from greylag.evaluation.scoring.measures import parse_measures
from greylag.evaluation.scoring.selection_bias import BestOfMany
from greylag.features import parse_features
from greylag.rankers import RankingModel
from greylag.rankers.explanation import Explanation, FeatureShare
from greylag.recipes.diversifiers import DiversifierChoice
from greylag.recipes.fitted import Fitted
from greylag.recipes.recipe import CrossValidation

EVIL = "<script>alert('1')</script>&amp;"


class Cells(HTMLParser):
    """The texts and tags of a page, as a browser reads them."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.texts = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_rankings_and_runs():
    ranking = Ranking("q<1>", EVIL, tuple(f"<d{n}>" for n in range(12)), np.arange(12.0, 0.0, -1.0))
    page = Cells(ranking._repr_html_())
    assert "script" not in page.tags
    assert page.tags.count("tr") == 1 + 10
    assert page.texts[-1] == f"query q<1>: {EVIL}, 12 documents; the first 10 of 12"
    assert page.texts[:6] == ["rank", "docid", "score", "1", "<d0>", "12.0000"]
    page = Cells(Run((ranking, Ranking("2", "none", (), np.empty(0))), tag="<b>")._repr_html_())
    assert page.texts[4:] == ["q<1>", EVIL, "12", "<d0>", "2", "none", "0", "run <b>, 2 queries, 12 documents"]
    assert "script" not in page.tags


def values(number):
    """A value of each kind that prints as a table, with `number` rows, queries, runs or folds."""
    docids = tuple(f"d{place}" for place in range(number))
    run = Run(tuple(Ranking(qid, "text", docids, np.arange(number, 0.0, -1.0)) for qid in docids), "run")
    by_run = {name: Scores.single(parse_measure("AP"), dict.fromkeys(docids, 0.1 * place))
              for place, name in enumerate(docids)}  # fmt: skip
    significance = compare_scores(by_run, docids[0])
    fitted = Fitted(LINEAR, docids, 0.5, ("score",))
    folds = CrossValidation(run, (fitted,) * number, tuple((qid,) for qid in docids))
    share = FeatureShare(LINEAR.features[0], 1.0, 1.0, 1.0, ())
    explained = Explanation("1", "d", 2.0, (share,) * number)
    measures = tuple(parse_measures(["alpha-nDCG@10", "AP"]))
    none = {"none": Scores(measures, docids, np.zeros((number, 2)), (), ())}
    choice = DiversifierChoice(
        *measures, none, significance, BestOfMany("none", 0.0, None, None), significance, {}, {}, {}
    )
    return [run.rankings[0], run, by_run["d1"], significance, folds, explained, choice]


@pytest.mark.parametrize("number", [2, 200])
def test_values_print_as_short_tables_and_repr_on_a_line(number):
    for value in values(number):
        assert len(repr(value).splitlines()) == 1, value
        assert len(repr(value)) < 250
        assert len(str(value).splitlines()) <= 65
        page = Cells(value._repr_html_())  # type: ignore[attr-defined]
        assert page.tags.count("tr") <= 61
        assert {"pre", "table"} & {*page.tags}


def test_a_comparison_prints_as_evaluate_does_and_has_all_figures_in_a_frame():
    rng = np.random.default_rng(1)
    scores = {
        name: Scores(parse_measures(["AP", "P@5"]), tuple("abcdef"), rng.random((6, 2)), (), ()) for name in "xyz"
    }
    found = compare_scores(scores, "x")
    lines = str(found).splitlines()
    shown = {tuple(line.split()) for line in str(Evaluation(scores, found)).splitlines()}
    assert sum(tuple(line.split()) in shown for line in lines) == 5  # the names of columns, two runs by two measures
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        frame = found.to_frame(library)  # type: ignore[arg-type]
        for number, one in enumerate(found.comparisons):
            row = {name: frame[name].to_list()[number] for name in frame.columns}
            assert (row["run"], row["against"], row["measure"]) == (one.run, one.baseline, str(one.measure))
            assert (row["diff"], row["low"], row["high"]) == (one.difference, *one.interval)
            assert (row["d"], row["detectable"], row["statistic"]) == (one.effect_size, one.detectable, one.statistic)
            assert (row["corrected p"], row["p"]) == (one.corrected_p, one.p)
            assert (row["better"], row["equal"], row["worse"]) == (one.wins, one.ties, one.losses)


@pytest.mark.parametrize("seed", range(5))
def test_cells_survive_markdown_latex_and_tsv(seed):
    """Read again by markdown-it, by undoing LaTeX's escapes, and by csv."""
    rng = np.random.default_rng(seed)
    alphabet = list("ab 1|\\*_`<>[]&%$#{}~^-\"'")
    names = ["".join(rng.choice(alphabet, 8)).strip() or "x" for _ in range(12)]
    names[3], names[6] = f"*{names[3]}", f"[{names[6]}"  # where the end of the row before has arguments
    rows = [
        (names[3 * row], names[3 * row + 1], names[3 * row + 2], Marked(-0.25 * row, "+.4f", " ab")) for row in range(4)
    ]
    table = Table("a_b & c", ("one", "two", "three", "four"), rows)
    page = Cells(MarkdownIt().enable("table").render(as_markdown(table)))
    texts = "".join(page.texts).split("\n")
    shown = [text.strip() for text in texts if text.strip()]
    assert shown == [*table.header, *(cell for row in rows for cell in (*row[:3], f"{row[3].value:+.4f}ab")), "a_b & c"]
    lines = as_latex(table).splitlines()
    assert not any(line.startswith(("*", "[")) for line in lines)
    body = [re.split(r"(?<!\\) & ", line.removesuffix(r" \\").removeprefix("{}")) for line in lines[7:11]]
    plain = {r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<"}
    undo = {**plain, r"\textgreater{}": ">", **{rf"\{character}": character for character in "&%$#_{}"}}
    pattern = re.compile("|".join(map(re.escape, undo)))
    read = [[*(pattern.sub(lambda found: undo[found[0]], cell) for cell in row[:3]), row[3]] for row in body]
    assert read == [[*row[:3], f"${row[3].value:+.4f}^{{ab}}$"] for row in rows]
    found = list(csv.reader(as_tsv(table).splitlines(), "excel-tab"))
    cells = [["'" * cell.startswith(("=", "+", "-", "@")) + cell for cell in row[:3]] for row in (table.header, *rows)]
    values = [*table.header[3:], *(str(row[3].value) for row in rows)]
    assert found == [[*row, value] for row, value in zip(cells, values, strict=True)]


LINEAR = RankingModel(parse_features("prior:a&b<c>"), (1.5,))


@pytest.mark.parametrize("model", [LINEAR, samples.MODEL, samples.ENSEMBLE])
def test_models_show_their_summaries(model):
    page = Cells(model._repr_html_())
    assert page.tags == ["pre"]
    assert "".join(page.texts) == model.summary()


def test_a_table_as_text():
    table = Table("Scores", ("system", "AP", "n"), [("a", 0.25, 7), ("long", 12.5, None)], decimals=2)
    assert as_text(table) == "Scores\nsystem     AP  n\na        0.25  7\nlong    12.50\n"
    assert as_text("any text\n") == "any text\n"


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (None, 2, ""), ("text", 2, "text"), (3, 2, "3"), (0.125, 2, "0.12"), (0.0, 2, "0.00"), (0.005, 2, "0.01"),
        (0.0049, 2, "<0.01"), (1e-9, 4, "<0.0001"), (-1e-9, 4, "-0.0000"),
    ],
)  # fmt: skip
def test_cells(value, decimals, text):
    assert cell_text(value, decimals) == text


def test_html():
    table = Table("<c>", ("", "AP", "p"), [("a&b", 0.25, "<0.001*"), (3, None, "")], decimals=2)
    assert as_html(table, "part-1") == (
        '<table><thead><tr><td></td><th scope="col" class="number">AP</th><th scope="col" class="number">p</th></tr>'
        "</thead>"
        '<tbody><tr><th scope="row">a&amp;b</th><td class="number">0.25</td><td class="number">&lt;0.001*</td></tr>'
        '<tr><td>3</td><td class="number"></td><td class="number"></td></tr></tbody></table>'
        '<p class="note" id="part-1">&lt;c&gt;</p>'
    )
    marked = Table("", ("run", "AP"), [("a<", Marked(0.5, mark=" ab")), ("b", Marked(0.25)), ("c", None)])
    cells = re.findall("<t[dh](?: [^>]*)?>(.*?)</t[dh]>", as_html(marked, links={"a<": "x", "0.2500": "y"}))
    expected = ["run", "AP", "", '<a href="#x">a&lt;</a>', "0.5000", "ab", "b", "0.2500", "", "c", "", ""]
    assert cells == expected
    assert html_text("a<b\n") == "<pre>a&lt;b\n</pre>"


@pytest.mark.parametrize("dialect", ["excel", "excel-tab"])
def test_no_cell_is_a_formula(dialect):
    texts = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1"]
    plain = ["-1", "+0.5", "<0.0001", "a=1", "", "x+y"]
    table = Table("", ("=run", "value"), [(text, -0.5) for text in texts + plain])
    written = [*csv.reader(io.StringIO(as_tsv(table, dialect), newline=""), dialect)]
    rows = [*(["'" + text, "-0.5"] for text in texts), *([text, "-0.5"] for text in plain)]
    assert written == [["'=run", "value"], *rows]
