"""SVM-div on synthetic candidate sets by the number of documents picked (Yue & Joachims 2008, Figure 4).

Section 6 of the paper describes the data and the split, section 7.2 the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from greylag.evaluation import SIGNIFICANCE_LEVEL, Section, holm, line_figure
from greylag.recipes import C_GRID
from greylag.studies import Context, Experiment, Outcome, Positive, Study, means_table
from greylag_papers.contrasts import contrasts
from greylag_papers.texts import read_texts
from greylag_papers.yue_joachims_2008.comparison import LOSS, METHODS, LossTable, measure_losses
from greylag_papers.yue_joachims_2008.queries import Split, first_split, synthetic_queries
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics

KS = range(1, 16)  # the numbers of documents picked
_TEXTS = read_texts(__file__)


class SyntheticSettings(Experiment):
    """Which sets are drawn."""

    synthetic_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the documents."""
    n_sets: Positive = 100
    """Number of candidate sets."""
    exponent: Annotated[float, Field(ge=0)] = 1.0
    """How fast the frequencies of words and the popularities of subtopics fall; with 0, all are equal."""
    concentration: Annotated[float, Field(gt=0)] = 250.0
    """How alike the words of subtopics are: the sum of the parameters of their Dirichlet distribution."""

    @property
    def sets(self) -> SyntheticSubtopics:
        """How the sets are drawn."""
        return SyntheticSubtopics(
            n_sets=self.n_sets, exponent=self.exponent, concentration=self.concentration, seed=self.synthetic_seed
        )


class Settings(SyntheticSettings):
    """The study of synthetic sets."""

    n_training: Positive = 15
    """Number of sets to train on."""
    n_validation: Positive = 10
    """Number of sets to choose C on. The others are tested."""
    spaces: tuple[Literal["svmdiv", "svmdiv2"], ...] = ("svmdiv",)
    """Feature spaces of SVM-div."""
    grid: Annotated[tuple[float, ...], Field(min_length=1)] = C_GRID
    """Values of C."""


def open_sets(settings: Settings, context: Context) -> Split:
    """Draw the sets and split them."""
    split = first_split(synthetic_queries(settings.sets), settings.n_training, settings.n_validation)
    context.progress("synthetic sets: " + ", ".join(f"{len(part)} {use}" for use, part in split._asdict().items()))
    return split


def below(losses: LossTable, space: str, k: int) -> dict[str, float]:
    """Return SVM-div beside Essential Pages for one K, over the test sets."""
    pair = space, "essential-pages"
    [row] = contrasts({name: [*losses.losses(name, k).values()] for name in pair}, [pair], test="wilcoxon").values()
    return row


def count_significant(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Count rows with a significantly lower mean, each alone, and those with a higher one, after Holm's correction."""
    # All K have to be lower, which needs no correction; one of many K that is higher refutes it, which does.
    corrected = holm([row["p"] for row in rows]).tolist()
    lower = sum(row["mean"] < row["against"] and row["p"] < SIGNIFICANCE_LEVEL for row in rows)
    higher = sum(
        row["mean"] > row["against"] and p < SIGNIFICANCE_LEVEL for row, p in zip(rows, corrected, strict=True)
    )
    return {"significant": float(lower), "contrary": float(higher), "of": float(len(rows))}


def run(settings: Settings, split: Split, context: Context) -> Outcome:
    """Measure the mean loss of each method for each K."""
    losses = measure_losses([split], KS, spaces=settings.spaces, grid=settings.grid, n_jobs=context.n_jobs)
    means = {method: {str(k): losses.mean(method, k) for k in KS} for method in (*METHODS, *settings.spaces)}
    first = settings.spaces[0]
    tests = {str(k): below(losses, first, k) for k in KS}
    counts = count_significant([*tests.values()])
    table = means_table(f"Mean weighted subtopic loss by K on {len(split.test)} sets", means, decimals=3)
    curves = {method: {float(k): loss for k, loss in by_k.items()} for method, by_k in means.items()}
    figure = line_figure("Loss by K (after Figure 4 of the paper)", "K", LOSS, {"synthetic sets": (curves, {})})
    return Outcome(
        scores=means | {f"{first} below essential-pages": counts},
        results={"means": means, "below essential-pages": tests},
        title=f"SVM-div: {settings.name}",
        sections=[Section("Loss", _TEXTS["synthetic: text"], [table, figure])],
        provenance={"data": asdict(settings.sets)},
    )


STUDY = Study(Settings, open_sets, run)
