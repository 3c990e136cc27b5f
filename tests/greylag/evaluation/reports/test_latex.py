"""The table of a paper, against the widths of Computer Modern and a grammar of what it may contain."""

import re
import subprocess
from dataclasses import replace
from shutil import which

import numpy as np
import pytest

from greylag.base.core.tables import COLUMN, PAGE
from greylag.evaluation import Collections, Evaluation, Scores, compare_scores, parse_measure
from greylag.evaluation.scoring.significance import compare_collections

CMR10 = {
    2.78: "!',.:;<[]`il", 3.06: "fj", 3.34: "-", 3.6: "_", 3.62: "I", 3.89: "()t", 3.92: "r", 3.95: "s", 4.45: "cez",
    5.01: '"$*/0123456789^ago~ ', 5.14: "J", 5.28: "kqvxy", 5.56: "Sbdhnpu", 6.12: "Z", 6.26: "L", 6.53: "F",
    6.81: "EP", 7.09: "B", 7.23: "CTw", 7.37: "R", 7.51: "AHNUVXY", 7.64: "D", 7.78: "&+=@KOQ", 7.85: "G", 8.34: "#%m",
    9.17: "M", 10.28: "W",
}  # fmt: skip
"""The widths of characters in the font of article, in points, as TeX has them, rounded up."""
WIDTHS = {letter: width for width, letters in CMR10.items() for letter in letters}
RAISED = 4.4  # of the widest of the letters a to f and * in the 7 point font of signs
BOLD = 1.15  # times the width of a digit or point
COMMANDS = set(
    "begin end centering caption label footnotesize setlength tabcolsep toprule midrule bottomrule multicolumn emph "
    "mathbf par smallskip raggedright textless textbackslash textasciitilde textasciicircum textgreater".split()
)
CELL = re.compile(r"\$(\\mathbf\{)?([+-]?[\d.]+)\}?(?:\^\{([\w*]+)\})?(?:_\{([\w*]+)\})?\$")


def points(cell):
    """Return the width of a cell in a font of 10 points."""
    if number := CELL.fullmatch(cell):
        signs = max(len(number[3] or ""), len(number[4] or ""))
        return sum(map(WIDTHS.get, number[2])) * (BOLD if number[1] else 1) + signs * RAISED + 0.5 * bool(signs)
    return sum(WIDTHS[letter] for letter in cell.replace("\\_", "_"))


def measured(latex):
    """Check the commands, environments and cells of a table, and return its environment and width in points."""
    code = [line for line in latex.splitlines() if not line.startswith("%")]
    text = "\n".join(code)
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= COMMANDS
    open_ = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", text):
        if kind == "begin":
            open_.append(name)
        else:
            assert open_.pop() == name
    assert not open_
    bare = re.sub(r"\\[&%$#_{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set(re.sub(r"\$[^$]*\$", "", bare)) & set("^_#%~")
    (columns,) = re.findall(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", text)
    start, end = code.index("\\toprule"), code.index("\\bottomrule")
    rows = [
        line.removesuffix(r" \\").split(" & ")
        for line in code[start + 1 : end]
        if not line.startswith(("\\mid", "\\mult"))
    ]
    assert {len(row) for row in rows} == {len(columns)}
    width = sum(max(map(points, column)) for column in zip(*rows, strict=True))
    small = r"\footnotesize\setlength{\tabcolsep}{3pt}" in code
    # cmr8 has digits of 4.25 points, for the 5 of cmr10.
    return code[0][7:-1], width * 0.85 + 6 * (len(columns) - 1) if small else width + 12 * (len(columns) - 1)


MEASURES = tuple(map(parse_measure, ("AP", "P@10", "nDCG@10")))
NAMES = "bm25 ql bm25+rm3 monoT5-3B general.k1 SPLADE++ RRF_all uogTrDPH_RF_QQN".split()


def systems(seed, number, measures=3):
    """Scores of systems that differ, of 30 to 40 queries."""
    rng = np.random.default_rng(seed)
    names = [f"runs/{name}.run" for name in rng.permutation(NAMES)[:number]]
    queries = tuple(map(str, range(30 + seed % 10)))
    base = rng.random((len(queries), measures)) / 3
    of = {name: np.clip(base + rng.normal(n / 15, 0.1, base.shape), 0, 1) for n, name in enumerate(names)}
    return {name: Scores(MEASURES[:measures], queries, values, (), ()) for name, values in of.items()}


def shown(seed):
    """Make an evaluation of 2 to 6 systems, in 1 to 5 collections, with none to three baselines or of all pairs."""
    rng = np.random.default_rng(seed)
    number, collections = rng.integers(2, 7), rng.integers(1, 6)
    scores = systems(seed, number)
    baseline = [None, [*scores][:1], [*scores][: min(3, number - 1)]][seed % 3]
    if collections == 1:
        return Evaluation(scores, None if seed % 4 == 0 else compare_scores(scores, baseline))
    values = {
        f"corpus-{n}": {name: replace(of, values=rng.permuted(of.values, axis=0)) for name, of in scores.items()}
        for n in range(collections)
    }
    tests = compare_collections(values, None, baseline)
    return Collections({name: Evaluation(of, tests[name]) for name, of in values.items()})


@pytest.mark.parametrize("seed", range(30))
def test_a_table_is_within_the_text(seed):
    """Of article in one column, and in two columns unless it is of both."""
    latex = shown(seed).to_latex()
    kind, width = measured(latex)
    assert width <= (COLUMN if kind == "table" else PAGE)
    assert not re.search(r"\.run|runs/", "".join(line for line in latex.splitlines() if not line.startswith("%")))
    assert all(line.startswith("%") for line in latex.split(f"\\end{{{kind}}}\n")[1].splitlines())


@pytest.mark.parametrize("seed", range(20))
def test_the_best_is_bold_and_signs_are_of_beaten_baselines(seed):
    scores = systems(seed, 4)
    baselines = [*scores][: 1 + seed % 3]
    tests = compare_scores(scores, baselines)
    latex = Evaluation(scores, tests).to_latex()
    rows = {line.split(" & ")[0]: re.findall(CELL, line) for line in latex.splitlines() if " & $" in line}
    signs = ["*"] if len(baselines) == 1 else "abc"
    better = {(c.run, c.baseline, c.measure): c.direction * c.significant for c in tests.comparisons}
    better |= {(c.baseline, c.run, c.measure): -c.direction * c.significant for c in tests.comparisons}
    for place, measure in enumerate(MEASURES):
        best = max(f"{of.means[place]:.4f}" for of in scores.values())
        for name, of in scores.items():
            bold, number, raised, lowered = rows[name[5:-4].replace("_", "\\_")][place]
            assert (number, bool(bold)) == (f"{of.means[place]:.4f}", number == best)
            for side, found in ((1, raised), (-1, lowered)):
                told = [s for s, b in zip(signs, baselines, strict=False) if better.get((name, b, measure)) == side]
                assert found == "".join(told)


@pytest.mark.skipif(which("pdflatex") is None, reason="no pdflatex")
@pytest.mark.parametrize("style", [r"\documentclass{article}", r"\documentclass[twocolumn]{article}"])
def test_it_compiles(style, tmp_path):
    tables = "".join(shown(seed).to_latex() for seed in range(12))
    body = f"{style}\n\\usepackage{{booktabs}}\n\\begin{{document}}\n{tables}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(body)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "t.tex"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "Overfull" not in done.stdout
