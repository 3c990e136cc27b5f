"""The report of the study `mrf`: tables and figures of its findings."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase
from typing import TYPE_CHECKING

import numpy as np

from greylag.evaluation.report import LEVEL
from greylag.experiments.mrf_findings import Findings
from greylag.experiments.mrf_learning import ASCENT, BASELINES, EXPANDED, LEARNED, RETRAINED, SELECTED
from greylag.experiments.report import Figure, Section, Table, draw_figure
from greylag.features.spec import named_pool
from greylag.ltr.handpicked import BM25

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_SYSTEMS = f"""\
All systems rerank the first stage and are linear models over the same kinds of features. What is tuned, learned or
chosen comes from the training queries of each fold, by the objective alone.

LM, BM25, SDM (weights 0.85, 0.10, 0.05), MRF-LM, MRF-BM25 and RM3 are hand-picked: their parameters are tuned over a
grid, and the weights of the last three are learned by coordinate ascent. {SELECTED} selects features greedily from the
pool (Metzler 2007, Algorithm 1), as many as do best in cross-validation within the training queries; {RETRAINED} has
the same number, with all weights trained again after each round; {EXPANDED} selects from the pool with expansion
features beside it; {ASCENT} weighs the whole pool."""
_CURVES = """\
The mean on training queries, and that on test queries, with the features of the first 1, 2, ... rounds: the paper's
figure 2. The model that is scored above stops where cross-validation within its training queries was highest."""
ROOM_FOR_NAMES = 100
_FEATURES = "Order of selection and weight, by fold; empty where a fold's model does without the feature."


def sections(findings: Findings, seconds: Mapping[str, float]) -> list[Section]:
    """The report, with the seconds of each step."""
    return [
        Section("Effectiveness", _SYSTEMS, [score_table(findings), comparison_table(findings)]),
        Section("Number of features", f"{_CURVES}\n\n{overfitting(findings)}", [curves_figure(findings)]),
        Section("Queries", "", [queries_figure(findings)]),
        Section("Parameters", "", [parameters_table(findings), handpicked_table(findings)]),
        Section("Features", _FEATURES, [weights_table(findings, system) for system in LEARNED]),
        Section("The pool", pool_text(findings), [set_aside_table(findings)]),
        Section("Time", "", [Table("Seconds of each step", ("step", "s"), list(seconds.items()), decimals=1)]),
    ]


def score_table(findings: Findings) -> Table:
    """Means by system and measure, with a letter for each hand-picked model that a learned system is better than."""
    letters = {model.name: letter for model, letter in zip(BASELINES, ascii_lowercase, strict=False)}
    count = sum(map(len, findings.comparisons.values()))
    rows: list[list[str]] = []
    for system, scores in findings.scores.items():
        row = [f"{system} ({letters[system]})" if system in letters else system]
        for measure, mean in zip(scores.measures, scores.means.tolist(), strict=True):
            better = [
                letters[baseline]
                for baseline, found in findings.comparisons.items()
                for c in found
                if (c.run, c.measure) == (system, measure) and c.corrected_p < LEVEL
            ]
            row.append(f"{mean:.4f} {''.join(better)}".strip())
        rows.append(row)
    first = next(iter(findings.scores.values()))
    caption = (
        f"Means over {len(first.qids)} judged queries. Letters: significantly better than that model (one-tailed "
        f"paired t-test, p < {LEVEL}, Holm's correction over all {count} comparisons)"
    )
    return Table(caption, ("system", *map(str, first.measures)), rows)


def comparison_table(findings: Findings) -> Table:
    """Every learned system against every hand-picked one by the objective."""
    objective = next(iter(findings.scores.values())).measures[0]
    rows: list[list[str | float]] = []
    for system in LEARNED:
        for baseline, found in findings.comparisons.items():
            for c in found:
                if (c.run, c.measure) == (system, objective):
                    percent = 100.0 * c.difference / (findings.means[baseline][str(objective)] or np.nan)
                    outcome = f"{c.wins}/{c.ties}/{c.losses}"
                    rows.append([system, baseline, c.difference, f"{percent:+.1f} %", c.p, c.corrected_p, outcome])
    header = ("system", "against", "difference", "relative", "p", "corrected p", "better/equal/worse")
    return Table(f"{objective}: differences, and p before and after the correction", header, rows)


def overfitting(findings: Findings) -> str:
    """Whether features after the fifth do harm, in words."""
    sentences = []
    for system, curve in findings.curves.items():
        if curve.after_fifth is not None:
            lost, p = curve.after_fifth
            verb = "lowers" if lost > 0 else "raises"
            sentences.append(
                f"{system}: going from 5 to {len(curve.test)} features {verb} the test mean by {abs(lost):.4f} "
                f"(one-tailed p that it is lowered: {p:.3f})."
            )
    return " ".join(sentences)


def curves_figure(findings: Findings) -> Figure:
    """The objective against the number of features."""

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots(1, 2)
        for system, curve in findings.curves.items():
            for panel, values in zip(axes, (curve.training, curve.test), strict=True):
                panel.plot(np.arange(1, len(values) + 1), values, marker="o", markersize=3, label=system)
        for panel, title in zip(axes, ("training queries", "test queries"), strict=True):
            panel.set(title=title, xlabel="features", ylabel=findings.settings.training.objective)
            panel.xaxis.get_major_locator().set_params(integer=True)
        axes[0].legend()

    return draw_figure("The objective against the number of features, over all folds", draw)


def queries_figure(findings: Findings) -> Figure:
    """Each query's difference from BM25 by the objective; with the queries' names where there is room."""

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(2, 1, sharey=True)
        for panel, system in zip(panels, (SELECTED, EXPANDED), strict=True):
            differences = findings.scores[system].values[:, 0] - findings.scores[BM25.name].values[:, 0]
            order = np.argsort(-differences, kind="stable")
            names = [findings.scores[system].qids[place] for place in order]
            panel.bar(np.arange(len(order)), differences[order], width=0.9)
            panel.axhline(0, color="black", linewidth=0.6)
            panel.set(title=system, ylabel=f"difference in {findings.settings.training.objective}")
            shown = len(names) if len(names) <= ROOM_FOR_NAMES else 0
            panel.set_xticks(np.arange(shown), names[:shown], rotation=90, fontsize=5)

    return draw_figure(f"Judged queries by their difference from tuned {BM25.name}", draw, height=5.0)


def parameters_table(findings: Findings) -> Table:
    """What each fold's learned systems were learned with."""
    names = ("mu", "k1", "b", "fb_docs", "fb_terms")
    rows: list[tuple[str | float, ...]] = []
    for number, part in enumerate(findings.learned, 1):
        selected, expanded = part.models[SELECTED], part.models[EXPANDED]
        values = (f"{getattr(selected.parameters, name):g}" for name in names)
        rows.append((number, *values, selected.objective, len(selected.features), len(expanded.features)))
    header = ("fold", *names, "maximised", f"features, {SELECTED}", f"features, {EXPANDED}")
    return Table("Parameters and numbers of features, chosen on each fold's training queries", header, rows)


def handpicked_table(findings: Findings) -> Table:
    """The hand-picked models of each fold."""
    rows: list[list[str | float]] = []
    for model in BASELINES:
        for number, own in enumerate(findings.models[model.name], 1):
            tuned = ", ".join(f"{name} {getattr(own.parameters, name):g}" for name in model.tuned)
            weighted = zip(own.features, own.weights, strict=True)
            weights = ", ".join(f"{weight:.4g} {feature}" for feature, weight in weighted)
            rows.append([model.name, number, tuned, weights, own.provenance["training_score"]])
    header = ("model", "fold", "parameters", "weights", f"{findings.settings.training.objective}, training")
    return Table("Hand-picked models as tuned", header, rows)


def weights_table(findings: Findings, system: str) -> Table:
    """A learned system's features with their order and weight in each fold; those of most folds first."""
    cells: dict[str, dict[int, str]] = {}
    for number, model in enumerate(findings.models[system]):
        for place, (feature, weight) in enumerate(zip(model.features, model.weights, strict=True), 1):
            cells.setdefault(str(feature), {})[number] = f"{place}: {weight:+.4g}"
    ordered = sorted(cells, key=lambda feature: -len(cells[feature]))
    folds = range(len(findings.folds))
    rows = [[feature, *(cells[feature].get(number) for number in folds)] for feature in ordered]
    return Table(system, ("feature", *(f"fold {number + 1}" for number in folds)), rows)


def pool_text(findings: Findings) -> str:
    """How large the pool is, before and after features left it."""
    options = findings.settings.features
    total, redundant = len(named_pool(options.pool)) + len(options.priors), len(findings.redundant)
    left = findings.models[SELECTED][0].provenance["candidates"]
    return (
        f"{total} candidates, without the expansion. By rule, from the queries' cliques alone, {redundant} of them are "
        f"trivial or duplicates; by value, in the first fold, {total - redundant - left} more. {left} are left; the "
        f"paper has 48. FD's cliques have {options.max_clique} terms at most, which limits {findings.limited} queries."
    )


def set_aside_table(findings: Findings) -> Table:
    """Which features left the pool, and why."""
    rows = [("rule", "", reason) for reason in findings.redundant.values()]
    for number, part in enumerate(findings.learned, 1):
        rows += [("value", str(number), reason) for reason in part.set_aside]
    return Table("Features that left the pool", ("by", "fold", "why"), rows)
