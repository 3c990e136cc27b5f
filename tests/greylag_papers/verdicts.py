"""How the tables of claims are judged: each claim by the test that fits what it says, from the rows that files expect.

An entry of `claims.yaml` has one of these kinds, with the rows that judge it:

- higher, lower: a difference, by the corrected p of the row, and by the sign test of its categories, if it has any.
  "no" if the contrary is significant, or if it is shown that the paper's least `gain`, a share of the baseline's mean,
  is missed (one-sided t-test).
- same: both one-sided t-tests that the difference is within MARGIN of the baseline's mean (Schuirmann 1987).
- not_lower, not_higher: the one of them that the claim needs (non-inferiority).
- best: whether lambda = .5 reaches the best lambda. A tie is "yes".
- always: what one counterexample refutes, with `at_least`, `at_most` or `equal_to`.
- significant: a number of tests that all have to be significant, each by itself. "no" if one is to the contrary, after
  Holm's correction over them.
- sign: a number of units for which it is so, by the sign test.
- printed: a figure of the paper that is computed again, equal to the digits that are printed there, rounded or cut off.
- measured: a figure that no test goes with. Its verdict is "cannot tell".
- stated: the verdict of a test or benchmark of the repository.

A test over fewer than MIN_UNITS units cannot tell. `because`, for a claim or for single rows, says why a row cannot
tell whatever it holds. `but`, for files, is what a reader has to know beside the verdict.
"""

import math
from functools import cache

import yaml
from scipy import special

from greylag.evaluation import SIGNIFICANCE_LEVEL, detectable_difference, holm
from greylag.studies.config import shipped_file

MARGIN = 0.05  # of the baseline's mean
MIN_UNITS = 10  # of a test of a mean difference
ROUNDED = 5e-5  # the error of a figure in experiment files
ENDS = ("least", "most")
UNKNOWN = "cannot tell"
DIFFERENCES = ("higher", "lower", "best")
EQUIVALENCES = {
    "same": f"within {MARGIN:.0%}",
    "not_lower": f"not {MARGIN:.0%} lower",
    "not_higher": f"not {MARGIN:.0%} higher",
}
COUNTED = ("always", "significant", "sign", "printed", "measured")
KINDS = {*DIFFERENCES, *EQUIVALENCES, *COUNTED, "stated"}


@cache
def expected(file):
    return yaml.safe_load(shipped_file(file).read_text())["expected"]


def number(value, decimals=3):
    text = f"{value:.{decimals}f}"
    return (
        f"{value:g}" if value == int(value) and value != 0 else text.replace("0.", ".", 1) if abs(value) < 1 else text
    )


def p_value(p):
    return "<.0001" if p < 5e-5 else number(p, 3 if p >= 5e-4 else 4)


def upper_tail(excess, row):
    """P(T > excess / e): e is the standard error, which the row has as the difference that is detectable.

    The figures are rounded; those are taken that make the test harder.
    """
    error = (row["detectable"] + ROUNDED) / detectable_difference(1.0, int(row["n"]))
    return float(special.stdtr(row["n"] - 1, -(excess - 2 * ROUNDED) / error))


def equivalence(kind, row):
    """The p that the difference is within the margin, and the p that it is beyond it."""
    difference, margin = row["mean"] - row["against"], MARGIN * abs(row["against"])
    above, below = difference + margin, margin - difference
    sides = {"same": (above, below), "not_lower": (above,), "not_higher": (below,)}[kind]
    return max(upper_tail(side, row) for side in sides), min(upper_tail(-side, row) for side in sides)


def difference_verdict(kind, row, gain=math.nan):
    """Whether the difference is significant and as claimed, the contrary, or neither."""
    difference = row["mean"] - row["against"]
    if kind == "best" and difference == 0:
        return "yes"
    if row["p"] < SIGNIFICANCE_LEVEL and difference != 0:
        return "yes" if (difference > 0) == (kind == "higher") and kind != "best" else "no"
    return "no" if missed_gain(kind, row, gain) < SIGNIFICANCE_LEVEL else UNKNOWN


def sign_test(count, of):
    """Return p of so many units of all, and whether they are significantly more than half."""
    p = min(1.0, 2 * float(special.bdtr(min(count, of - count), of, 0.5)))
    return p, yes_or_no(count > of / 2) if p < SIGNIFICANCE_LEVEL else UNKNOWN


def category_signs(kind, row):
    """The p that is shown beside a difference of units that share test data, and the verdict of their categories."""
    if "categories" not in row:  # in which the mean is lower
        return "", []
    count = row["categories"] if kind == "lower" else row["of"] - row["categories"]
    p, answer = sign_test(count, row["of"])
    return f"; {count:g} of {row['of']:g} categories {p_value(p)}", [answer]


def missed_gain(kind, row, gain):
    """The p that the gain is below the paper's least, a share of the baseline's mean; NaN without one."""
    difference = row["mean"] - row["against"]
    return upper_tail(gain * abs(row["against"]) - (difference if kind == "higher" else -difference), row)


def steady(row):
    """The row of each order of the queries, at the ends of differences and p; the row itself if there is one order."""
    if "least p" not in row:
        return [row]
    return [
        {**row, "mean": row["against"] + row[f"{end} difference"], "p": row[f"{at} p"]} for end in ENDS for at in ENDS
    ]


def agreed(answers):
    """The verdict that all tests give; "cannot tell" if they differ."""
    return answers[0] if len({*answers}) == 1 else UNKNOWN


def verdicts(kind, rows, gain=math.nan):
    """The p that is shown, and the verdict, of rows that one claim compares in one file.

    The p of a difference is that of the row. That of equivalence has Holm's correction over these rows.
    """
    if kind in DIFFERENCES:
        return [
            (
                shown_p(row)
                + (f"; gain {p_value(missed_gain(kind, row, gain))}" if not math.isnan(gain) else "")
                + category_signs(kind, row)[0],
                agreed([difference_verdict(kind, order, gain) for order in steady(row)] + category_signs(kind, row)[1]),
            )
            for row in rows
        ]
    tests = [[equivalence(kind, order) for order in steady(row)] for row in rows]
    within, beyond = (holm([max(test[side] for test in orders) for orders in tests]).tolist() for side in (0, 1))
    return [
        (p_value(near), "yes" if near < SIGNIFICANCE_LEVEL else "no" if far < SIGNIFICANCE_LEVEL else UNKNOWN)
        for near, far in zip(within, beyond, strict=True)
    ]


def shown_p(row):
    between = f" ({' to '.join(p_value(row[f'{end} p']) for end in ENDS)})" if "least p" in row else ""
    return p_value(row["p"]) + between


def papers_own(sides, kind, row):
    """What the paper's own t-test says, one- or two-tailed, without a correction."""
    difference = row["mean"] - row["against"]
    favourable = -difference if kind == "lower" else difference
    error = row["detectable"] / detectable_difference(1.0, int(row["n"]))
    tails = 2 if sides == "two-tailed" else 1
    p = tails * float(special.stdtr(row["n"] - 1, -(abs(favourable) if tails == 2 else favourable) / error))
    return f"{'not significant' if p >= SIGNIFICANCE_LEVEL else yes_or_no(favourable > 0)}, {p_value(p)}"


def value(file, name):
    """A number, or the figure of a row that is named as "row: figure"."""
    if not isinstance(name, str):
        return name
    row, figure = name.rsplit(": ", 1)
    return expected(file)[row][figure]


def counted(kind, claim, file, place, name):
    """Figures, the kind of test, its p and the verdict of a figure that no p of its file goes with."""
    shown, figure = value(file, name), f"{name.replace(': ', ' ')} "
    if kind == "printed":
        decimals = len(str(claim["paper_has"]).partition(".")[2])
        unit, above = 10**-decimals, shown - claim["paper_has"]
        same = -0.5 * unit - ROUNDED <= above < unit  # the paper's digits are rounded or cut off
        return f"{figure}{number(shown)}; the paper's {number(claim['paper_has'])}", "printed", "", yes_or_no(same)
    if kind in ("significant", "sign"):
        of = expected(file)[name.rsplit(": ", 1)[0]]["of"]
        figure += f"{shown:g} of {of:g}"
        if kind == "significant":
            contrary = expected(file)[name.rsplit(": ", 1)[0]]["contrary"]
            answer = "yes" if shown == of else "no" if contrary else UNKNOWN
            return f"{figure}, contrary {contrary:g}", f"{of:g} differences", "", answer
        p, answer = sign_test(shown, of)
        return figure, "sign test", p_value(p), answer
    for side, sign in (("at_least", 1), ("at_most", -1), ("equal_to", 0)):
        if side in claim:
            bound = value(file, claim[side][place] if isinstance(claim[side], list) else claim[side])
            figure += f"{number(shown)}; {side.replace('_', ' ')} {number(bound)}"
            refuted = sign * shown < sign * bound if sign else shown != bound
            if kind == "always":
                return figure, "counterexample", "", "no" if refuted else "not refuted"
            return figure, "", "", UNKNOWN
    return f"{figure}{number(shown)}", "", "", UNKNOWN


def yes_or_no(answer):
    return "yes" if answer else "no"


def claim_rows(claim):
    """A row for each file and comparison of a claim; a claim that no file judges says where it is judged."""
    (kind,) = claim.keys() & KINDS
    if kind == "stated":
        yield "", "", claim["by"], "", "", "", claim["stated"], ""
        return
    names = [claim[kind]] if isinstance(claim[kind], str) else claim[kind]
    reasons = claim.get("because", {})
    reasons = dict.fromkeys(names, reasons) if isinstance(reasons, str) else reasons
    remarks = {file: f", but {remark}" for file, remark in claim.get("but", {}).items()}
    for file in claim["files"]:
        judged = (
            [("", "")] * len(names)
            if kind in COUNTED
            else verdicts(kind, [expected(file)[name] for name in names], claim.get("gain", math.nan))
        )
        for place, (name, (p, found)) in enumerate(zip(names, judged, strict=True)):
            answer = found
            if kind in COUNTED:
                figures, test, p_shown, answer = counted(kind, claim, file, place, name)
                row = expected(file)[name.rsplit(": ", 1)[0]]
                units = row.get("of", row.get("n"))
                cells = ["" if units is None else f"{units:g}", figures, test, p_shown, ""]
            else:
                row = expected(file)[name]
                run, _, others = name.partition(" / ")
                other, _, where = others.rpartition(", ") if ", " in others else (others, "", "")
                figures = f"{where}{': ' * bool(where)}{run} {number(row['mean'])}, {other} {number(row['against'])}"
                test = EQUIVALENCES.get(kind, "difference")
                cells = [f"{row['n']:g}", figures, test, p, number(row["detectable"])]
                if row["n"] < MIN_UNITS:
                    answer = f"{UNKNOWN}: fewer than {MIN_UNITS} units"
            own = papers_own(claim["own_test"], kind, row) if "own_test" in claim and "p" in row else ""
            answer = f"{UNKNOWN}: {reasons[name]}" if name in reasons else answer
            yield file, *cells, answer + remarks.get(file, ""), own
