"""The report of the study `mrf`: tables and figures of its findings."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase
from typing import TYPE_CHECKING

import numpy as np

from greylag.evaluation import SIGNIFICANCE_LEVEL as LEVEL
from greylag.experiments.report import Figure, Section, Table, draw_figure
from greylag.features.spec import named_pool
from greylag.ltr.baselines import BM25, LM, RM3
from greylag_papers.metzler_2007.findings import Findings
from greylag_papers.metzler_2007.learning import ASCENT, BASELINES, EXPANDED, LEARNED, RETRAINED, SELECTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_SYSTEMS = f"""\
LM, BM25, SDM (weights 0.85, 0.10, 0.05), MRF-LM, MRF-BM25 and RM3 are hand-picked: their parameters are tuned over a
grid, and the weights of the last three are learned by coordinate ascent. {SELECTED} selects features greedily from the
pool (Metzler 2007, Algorithm 1), as many as do best in cross-validation within the training queries; {RETRAINED} has
the same number, with all weights trained again after each round; {EXPANDED} selects from the pool with expansion
features beside it; {ASCENT} weighs the whole pool."""
_CURVES = """\
The mean on training queries, and that on test queries, with the features of the first 1, 2, ... rounds: the paper's
figure 2. The model that is scored above stops where cross-validation within its training queries was highest."""
_PARAMETERS = f"""\
The learned systems have the mu to which {LM.name} was tuned, the k1 and b of {BM25.name}, and the feedback of
{RM3.name}; how many features they have and what they maximise are chosen within the training queries."""
_FEATURES = """\
In each fold, a feature's place in the order of selection, and its weight; nothing where the fold's model does without
it. Coordinate ascent has no order. A weight multiplies the feature as it is, so that weights of different features,
whose scales differ, cannot be compared."""
WIDTH = 8.5  # of figures, in inches
ROOM_FOR_NAMES = 100  # of queries below their bars


def sections(findings: Findings, seconds: Mapping[str, float]) -> list[Section]:
    """The report, with the seconds of each step."""
    return [
        Section("Effectiveness", effectiveness(findings), [score_table(findings), comparison_table(findings)]),
        Section("Number of features", f"{_CURVES}\n\n{overfitting(findings)}", [curves_figure(findings)]),
        Section("Queries", "", [queries_figure(findings)]),
        Section(
            "Parameters",
            f"{_PARAMETERS}\n\n{grid_ends(findings)}",
            [parameters_table(findings), handpicked_table(findings)],
        ),
        Section("Features", _FEATURES, [weights_table(findings, system) for system in LEARNED]),
        Section("The pool", pool_text(findings), [set_aside_table(findings)]),
        Section("Time", "", [time_table(seconds)]),
    ]


def effectiveness(findings: Findings) -> str:
    """What is compared, on what, and how many of the comparisons are significant."""
    settings, stage = findings.settings, findings.settings.first_stage
    parameters = f"BM25, k1 {stage.k1:g}, b {stage.b:g}" if stage.model == "bm25" else f"LM, mu {stage.mu:g}"
    judged = len(next(iter(findings.scores.values())).qids)
    tested = (
        f"{judged} judged queries in {len(findings.folds)} folds, each of which is ranked by what the others taught"
        if settings.split is None
        else f"{judged} judged test queries, which are ranked by what {len(findings.folds[0].training)} others taught"
    )
    compared = [c for own in findings.comparisons.values() for c in own]
    before, after = sum(c.p < LEVEL for c in compared), sum(c.corrected_p < LEVEL for c in compared)
    return (
        f"{settings.collection.docs}: {findings.index.n_documents} documents; {tested}. All systems rerank the first "
        f"stage ({parameters}, {stage.hits} documents a query at most), and are linear models over the same kinds of "
        f"features. What is tuned, learned or chosen comes from training queries alone, by "
        f"{settings.training.objective}.\n\n{_SYSTEMS}\n\nOf {len(compared)} comparisons of a learned system with a "
        f"hand-picked one, {before} have p < {LEVEL} as they are, and {after} after Holm's correction."
    )


def score_table(findings: Findings) -> Table:
    """Means by system and measure, with a letter for each hand-picked model that a learned system is better than."""
    letters = {model.name: letter for model, letter in zip(BASELINES, ascii_lowercase, strict=False)}
    count = sum(map(len, findings.comparisons.values()))
    rows: list[list[str]] = []
    for system, scores in findings.scores.items():
        row = [f"{system} ({letters[system]})" if system in letters else system]
        for measure, mean in scores.by_measure.items():
            better = [
                letters[baseline]
                for baseline, found in findings.comparisons.items()
                for c in found
                if (c.run, str(c.measure)) == (system, measure) and c.corrected_p < LEVEL
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
    objective = findings.settings.training.objective

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots(1, 2, sharey=True)
        for system, curve in findings.curves.items():
            for panel, values in zip(axes, (curve.training, curve.test), strict=True):
                panel.plot(np.arange(1, len(values) + 1), values, marker="o", markersize=3, label=system)
        for panel, title in zip(axes, ("training queries", "test queries"), strict=True):
            panel.set(title=title, xlabel="number of features")
            panel.xaxis.get_major_locator().set_params(integer=True)
        axes[0].set_ylabel(f"mean {objective}")
        axes[0].legend()

    return draw_figure(f"{objective} against the number of features, over all folds", draw, width=WIDTH)


def queries_figure(findings: Findings) -> Figure:
    """Each query's difference from BM25 by the objective; with the queries' names where there is room."""
    objective = findings.settings.training.objective

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(2, 1, sharey=True)
        for panel, system in zip(panels, (SELECTED, EXPANDED), strict=True):
            differences = findings.scores[system].values[:, 0] - findings.scores[BM25.name].values[:, 0]
            order = np.argsort(-differences, kind="stable")
            names = [findings.scores[system].qids[place] for place in order]
            panel.bar(np.arange(len(order)), differences[order], width=0.9)
            panel.axhline(0, color="black", linewidth=0.6)
            panel.set(title=system, ylabel=f"difference in {objective}", xlim=(-1, len(names)))
            shown = len(names) if len(names) <= ROOM_FOR_NAMES else 0
            panel.set_xticks(np.arange(shown), names[:shown], rotation=90, fontsize=min(7.0, 500 / len(names)))
        panels[1].set_xlabel("query")

    caption = f"{objective} of each judged query minus that of tuned {BM25.name}, in falling order for each system"
    return draw_figure(caption, draw, width=WIDTH, height=5.5)


def grid_ends(findings: Findings) -> str:
    """Which parameters were tuned to an end of their grid, beyond which there may be better values."""
    ends = []
    for picked in BASELINES:
        for name in picked.tuned:
            grid = getattr(findings.settings.grid, name)
            chosen = [getattr(model.parameters, name) for model in findings.models[picked.name]]
            count = sum(value in (min(grid), max(grid)) for value in chosen)
            if count and len(grid) > 1:
                ends.append(f"{picked.name}'s {name} in {count} of {len(chosen)} folds")
    return f"At an end of the grid, beyond which there may be better values: {'; '.join(ends) or 'none'}."


def parameters_table(findings: Findings) -> Table:
    """What each fold's learned systems were learned with."""
    names = ("mu", "k1", "b", "fb_docs", "fb_terms")
    rows: list[tuple[str | float, ...]] = []
    for number, part in enumerate(findings.learned, 1):
        chosen = [part.models[system] for system in (SELECTED, EXPANDED)]
        values = (f"{getattr(chosen[0].parameters, name):g}" for name in names)
        rows.append((number, *values, *(f"{len(model.features)} by {model.objective}" for model in chosen)))
    return Table("Learned systems: parameters and numbers of features", ("fold", *names, SELECTED, EXPANDED), rows)


def handpicked_table(findings: Findings) -> Table:
    """What was tuned and trained of the hand-picked models, and what it gave on training queries."""
    rows: list[tuple[str, ...]] = []
    for picked in BASELINES:
        models = findings.models[picked.name]
        values = {name: [getattr(model.parameters, name) for model in models] for name in picked.tuned}
        if picked.trained:
            values |= {str(f): [model.weights[place] for model in models] for place, f in enumerate(picked.features)}
        rows += [(picked.name, name, *(f"{value:.4g}" for value in own)) for name, own in values.items()]
        scores = [f"{model.provenance['training_score']:.4f}" for model in models]
        rows.append((picked.name, f"{findings.settings.training.objective}, training", *scores))
    return Table("Hand-picked models as tuned: parameters, weights", ("model", "", *_fold_names(findings)), rows)


def weights_table(findings: Findings, system: str) -> Table:
    """A learned system's features with their order and weight in each fold; those of most folds first."""
    cells: dict[str, dict[int, str]] = {}
    for number, model in enumerate(findings.models[system]):
        for place, (feature, weight) in enumerate(zip(model.features, model.weights, strict=True), 1):
            order = "" if system == ASCENT else f"{place}:\N{NO-BREAK SPACE}"
            cells.setdefault(str(feature), {})[number] = f"{order}{weight:+.4g}"
    ordered = sorted(cells, key=lambda feature: -len(cells[feature]))
    rows = [[feature, *(cells[feature].get(number) for number in range(len(findings.folds)))] for feature in ordered]
    return Table(system, ("feature", *_fold_names(findings)), rows)


def _fold_names(findings: Findings) -> list[str]:
    return [f"fold {fold.number}" for fold in findings.folds]


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
    rows = [("rule", "all", reason) for reason in findings.redundant.values()]
    folds: dict[str, list[str]] = {}
    for fold, part in zip(findings.folds, findings.learned, strict=True):
        for reason in part.set_aside:
            folds.setdefault(reason, []).append(str(fold.number))
    rows += [("value", ", ".join(numbers), reason) for reason, numbers in folds.items()]
    return Table("Features that left the pool", ("by", "folds", "why"), rows)


def time_table(seconds: Mapping[str, float]) -> Table:
    """The seconds of each step, and of all."""
    return Table("Seconds", ("step", "s"), [*seconds.items(), ("all", sum(seconds.values()))], decimals=1)
