"""The evaluation of runs, of one collection or of several: values with scores, tests and views, and their forms."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greylag import __version__
from greylag.base import (
    TREC_EVAL,
    GroupsLike,
    Library,
    ParameterError,
    Table,
    as_groups,
    as_html,
    as_latex,
    as_markdown,
    as_text,
    as_tsv,
    check_choice,
    cite,
    escape_markdown,
    guided,
    read_pairs,
    refuse_attribute,
    table_frame,
    versions,
    visible,
)
from greylag.evaluation.reports.gate import ALL, FailIf, Floors, Gate, check_gate, parse_rules
from greylag.evaluation.reports.names import short_names
from greylag.evaluation.reports.parts import (
    Tested,
    category_table,
    joint_comparisons,
    joint_means,
    means_by_topics,
    paper_note,
    paper_table,
    scores_by_category,
    stacked,
    with_teams,
)
from greylag.evaluation.reports.scores import (
    Unretrieved,
    equivalence_note,
    has_many_pairs,
    means_table,
    method_names,
    power_table,
    query_table,
    simulate_power,
    to_dict,
    unjudged_note,
)
from greylag.evaluation.reports.verdict import verdict
from greylag.evaluation.scoring.agreement import few_names
from greylag.evaluation.scoring.concordance import Agreement, RankCorrelation, compare_measures, rankings_table
from greylag.evaluation.scoring.holes import Holes, compare_with_holes, holes_sentences, holes_table
from greylag.evaluation.scoring.margins import check_margin, parse_margin
from greylag.evaluation.scoring.power import LossPower
from greylag.evaluation.scoring.predicted import Corrections
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.scoring.significance import (
    Significance,
    check_comparable,
    compare_again,
    comparison_table,
    narrow_table,
)
from greylag.evaluation.scoring.teams import Teams, assign_teams, best_runs

if TYPE_CHECKING:
    from greylag.evaluation.reports.report import Section

NOT_COMPARED = "not compared: "


class Formatted:
    """A value with tables, and what else `FORMS` call; ``str`` is what ``greylag evaluate`` prints."""

    __slots__: tuple[str, ...] = ()
    verdict: str
    if not TYPE_CHECKING:  # for it, an attribute that is missing is an error
        __getattr__ = refuse_attribute

    def tables(self, *, per_query: bool = False, wide: bool = False, complete: bool = False) -> list[Table]:
        """Make the tables, with all columns if `wide`, and with all pairs of runs if `complete`."""
        raise NotImplementedError

    @guided
    def format(self, form: str = "text", *, per_query: bool = False) -> str:
        """Format the tables with their notes.

        Parameters
        ----------
        form : {"text", "tsv", "csv", "markdown", "latex", "json", "html", "junit"}, default "text"
            LaTeX is one table for a paper, with the package booktabs: short names, the best of each column in bold,
            letters of the baselines that a run is better than; comments after it have notes, comparisons, and BibTeX
            for measures and tests. TSV, CSV and JSON have numbers unrounded, and the letters, each measure's in a
            column of its own in TSV and CSV. TSV has no notes, and an empty line between tables; CSV is the first table
            alone, as `to_frame`, with a column of categories if there are any. JSON has everything. HTML is a page with
            charts. With a gate, each begins with its word, text and CSV have its checks alone, and JUnit's XML has a
            test case for each.
        per_query : bool, default False
            Give the scores of each query instead of the means and comparisons.
        """
        check_form("form", form)
        return FORMS[form](self, per_query)

    def to_latex(self, *, per_query: bool = False) -> str:
        """Format the table of a paper: `format` with "latex"."""
        return self.format("latex", per_query=per_query)

    @guided
    def to_frame(self, library: Library = "pandas", *, per_query: bool = False) -> Any:
        """Make a data frame of pandas or polars of the first table, unrounded; `Significance` has one of its own."""
        return table_frame(self._first_table(per_query), library)

    def __repr__(self) -> str:
        # Of the first field, runs or collections, the names.
        (caption, *_), names = self.tables()[0].caption.splitlines(), [*getattr(self, self.__slots__[0])]
        return visible(f"<{type(self).__name__} of {few_names(names)}: {caption}>")

    def __str__(self) -> str:
        return visible(self.format().removesuffix("\n"))

    def _repr_html_(self) -> str:
        return "".join(map(as_html, [*self._gate_tables(), *self.tables(wide=True)]))

    def _first_table(self, per_query: bool) -> Table:
        """Make the table of CSV and frames."""
        return [*self._gate_tables(), *self.tables(per_query=per_query, complete=True)][0]

    def _gate_tables(self) -> list[Table]:
        """Make the table of a gate's checks, if there is a gate."""
        return []

    def _terminal_text(self, per_query: bool) -> str:
        """Format tables with their captions and the verdict below all of them."""
        tables = self.tables(per_query=per_query)
        notes = [*dict.fromkeys(line for table in tables for line in table.caption.splitlines())]
        notes += [f"\n{self.verdict}"] if self.verdict and not per_query else []
        return "\n".join([*(as_text(replace(table, caption="")) for table in tables), *notes]) + "\n" * bool(notes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Formatted):
    """The scores of runs, with tests and views of the judgements; ``str`` is what ``greylag evaluate`` prints.

    Its methods return a new value. They need scores alone, so that `read_evaluation` has them, too.
    """

    scores: Mapping[str, Scores]  # by name of run
    # Adds a star to each mean that differs significantly from the baseline's; of several baselines, the letters of
    # those that a run is better than; or, if all pairs are compared, ranks by the first measure and letters that runs
    # share if they do not differ. Adds a table of the comparisons; of more than 45 pairs only TSV and JSON have it.
    significance: Significance | None = None
    unjudged: Mapping[str, float] | None = None  # the share of the top 10 documents without judgements, by name of run
    holes: Holes | None = None  # adds scores and differences with such documents as relevant, and left out
    corrections: Corrections | None = None  # by people's judgements; they take the place of all tables
    warnings: tuple[str, ...] = ()  # why scores may not mean what they seem to
    agreement: Agreement | None = None  # adds how far two sets of judgements agree
    rankings: tuple[RankCorrelation, ...] = ()  # see `correlated`
    teams: Mapping[str, str] | None = None  # of all runs; see `of_teams`
    best_of_teams: bool = False  # see `best_of`
    verdict: str = ""  # what the comparisons by the first measure show, in a paragraph, which text ends with
    categories: Mapping[str, str] = field(default_factory=dict)  # of topics by qid; see `by_category`
    gate: Gate | None = None  # text and CSV have nothing else; see `gated`
    digests: Mapping[str, str] | None = None  # SHA-256 of topics and judgements, so that later ones can be compared
    tags: Mapping[str, str] = field(default_factory=dict)  # of the runs, by which teams may be given, too
    release: str = ""  # see `released`
    unretrieved: Unretrieved | None = None  # how many judged documents none of the runs has
    powers: tuple[LossPower, ...] = ()  # see `powered`
    relevant: Mapping[str, int] = field(default_factory=dict)  # the number of relevant documents by qid, for `sheets`

    def __post_init__(self) -> None:
        check_comparable(self.scores)

    def tested(self, tests: Significance) -> Evaluation:
        """Add tests of the runs' differences, what they show, and warnings of runs that cannot be compared."""
        absent = dict.fromkeys(f"{NOT_COMPARED}{c.not_run}" for c in tests.comparisons if c.not_run)
        others = [warning for warning in self.warnings if not warning.startswith(NOT_COMPARED)]
        tests = compare_with_holes(tests, self.holes) if self.holes else tests
        shown = verdict([(self.scores, tests)])
        return replace(self, significance=tests, verdict=shown, warnings=(*others, *absent), gate=None)

    def ordered(self, names: Iterable[str]) -> Evaluation:
        """Put the runs in the order of these names, such as that in which they were given; others are ignored."""
        self._check_ungated("ordered")
        return self._with_runs(ordered_scores(self.scores, names))

    @guided
    def by_category(self, categories: GroupsLike | str | Path) -> Evaluation:
        """Add means by category, of a mapping by qid or a file (qid and category, by a tab or CSV), also to a gate."""
        self._exclude_corrections("by_category")
        self._check_ungated("by_category")
        given = read_pairs(categories, "qid category") if isinstance(categories, str | Path) else categories
        named = as_groups(given, "category")
        scores_by_category(self.scores, named)  # refuses those of other topics
        return replace(self, categories=named)

    @guided
    def correlated(self) -> Evaluation:
        """Add tau and tau-AP of the runs' order by each pair of measures."""
        self._exclude_corrections("correlated")
        if min(len(self.scores), len(next(iter(self.scores.values())).measures)) < 2:
            raise ParameterError("tau is of the order of runs by two measures: give at least two of both")
        return replace(self, rankings=compare_measures(self.scores))

    @guided
    def of_teams(self, teams: Teams) -> Evaluation:
        """Add a column of teams to all tables.

        Teams are as `pool_runs` takes them, by names of runs or tags; what was read from JSON has names alone.
        """
        return replace(
            self, teams=assign_teams({name: (self.tags.get(name, name), name) for name in self.scores}, teams)
        )

    @guided
    def best_of(self, teams: Teams) -> Evaluation:
        """Keep the best run of each team, as `of_teams` takes them, by the first measure, and the baselines.

        Tests, tau and views of judgements are of these runs alone.
        """
        self._exclude_corrections("best_of")
        self._check_ungated("best_of")
        named = self.of_teams(teams)
        kept = best_runs(self.scores, named.teams or {}, self.significance.baselines if self.significance else ())
        shares = {name: share for name, share in (self.unjudged or {}).items() if name in kept}
        best = replace(named, unjudged=shares, best_of_teams=True)
        return best._with_runs({name: self.scores[name] for name in kept})

    @guided
    def sheets(self) -> dict[str, str]:
        """Make pages and CSV by name of file, by all measures, as TREC hands out.

        ``topics`` has the best, median and worst score over all runs of each topic, the lowest median first, and the
        number of relevant documents, by the level of the first measure. A sheet per team of `of_teams`, or per run, has
        its runs against the median, topic by topic. Each is a table (``.csv``), whose columns name the measure, and a
        page with a chart of each (``.html``). The page of topics links the others and has the command; a team's page
        has neither, and names no other team.
        """
        from greylag.evaluation.reports.sheets import make_sheets  # which no other form needs

        self._exclude_corrections("sheets")
        if self.best_of_teams:
            raise ParameterError("sheets are over all runs: leave out best_of, which takes runs away (--best-of-team)")
        return make_sheets(self.scores, self.relevant, self.teams or {}, _origin())

    @guided
    def powered(self, loss: float | str) -> Evaluation:
        """Add how probably ``gated("worse")`` finds a run that is this much worse, and how many topics find 80 %.

        A second run is not needed: losses are simulated on each run's own scores (`loss_power`).
        """
        self._exclude_corrections("powered")
        if self.categories:
            raise ParameterError("power is of all topics, and not of categories: leave them out (--categories)")
        size = parse_margin("power", loss)
        check_margin("power", size, next(iter(self.scores.values())).measures)
        return replace(self, powers=simulate_power(self.scores, size))

    @guided
    def released(self, release: str) -> Evaluation:
        """Name what was evaluated, on one line, in JSON, notes and the gate's word; a gate is made after it."""
        if not isinstance(release, str) or release.splitlines() != [release]:
            raise ParameterError(f"release {release!r:.60} is not text of one line")
        self._check_ungated("released")
        return replace(self, release=release)

    def _check_ungated(self, method: str) -> None:
        """Refuse what a gate that is there would lack."""
        if self.gate is not None:
            raise ParameterError(f"the gate has been made without it: call {method} before gated")

    @guided
    def gated(
        self,
        fail_if: FailIf | Sequence[FailIf] | None = None,
        *,
        floors: Floors | Mapping[str, str | float] | None = None,
    ) -> Evaluation:
        """Add a `gate`: check each run by each measure on all topics and on each category, and by floors on all topics.

        A check fails for a run that did not run, and passes for one with the baseline's scores. p is corrected over all
        checks. A gate is refused if no run could fail, and for a margin or a floor of "low:" on fewer than five topics.
        With predicted judgements, means and differences are the corrected ones, with their own errors.

        Parameters
        ----------
        fail_if : {"lower", "worse", "missing"} or float > 0, or a list of one of these and "missing", optional
            A check fails if a mean is lower than the baseline's; is shown to be, by a one-sided test; or is not shown
            to be above the baseline's minus this margin (non-inferiority, by a one-sided t-test). By "missing", which
            needs no baseline, one fails if the run has no ranking for a topic.
        floors : mapping of str to float, optional
            The least means by name of measure, which need no baseline. With "low:" before the name, as in "low:AP",
            a check fails if the low end of the mean's one-sided 95 % interval is below: by t, or the exact binomial
            one (Clopper and Pearson) if each score is the worst or one other, as by Success@k.
        """
        if self.gate is not None:
            raise ParameterError("there is a gate already: give fail_if and floors in one call")
        if self.best_of_teams:
            raise ParameterError("a gate checks every run: leave out best_of, which takes runs away (--best-of-team)")
        rules = parse_rules(fail_if)
        least = floors if floors is None or isinstance(floors, Floors) else Floors.parse(floors)
        if not (rules or (least and least.least)):
            raise ParameterError("a gate needs a rule or floors: give fail_if, or floors such as {'AP': 0.3}")
        tests, measures = self.corrections or self.significance, next(iter(self.scores.values())).measures
        for rule in rules:
            rule.check(self.scores, tests.baselines if tests else (), measures)
        if least is not None:
            least.check(measures)
        parts = {ALL: self.scores, **self._category_scores()}
        without = self.categories and sum(qid not in self.categories for qid in next(iter(self.scores.values())).qids)
        lacking = {name: len({*run.missing, *run.empty}) for name, run in self.scores.items()}
        gate = replace(
            check_gate(parts, tests, rules, least),
            uncategorised=without or 0,
            release=self.release,
            unranked={name: number for name, number in lacking.items() if number},
        )
        return replace(self, gate=gate)

    def tables(self, *, per_query: bool = False, wide: bool = False, complete: bool = False) -> list[Table]:
        """Make the tables, with all columns if `wide`, and with all pairs of runs if `complete`."""
        made = self._tables(per_query=per_query, wide=wide, complete=complete)
        return [with_teams(table, self.teams or {}) for table in made]

    def _tables(self, *, per_query: bool = False, wide: bool = False, complete: bool = False) -> list[Table]:
        """Make the tables without teams."""
        agreed = self.agreement.tables if self.agreement else []
        agreed = [*agreed, rankings_table(self.rankings)] if self.rankings else agreed
        if self.corrections:
            first, *others = self.corrections.tables
            notes = [first.caption, *self._release_notes]
            return [replace(first, caption="\n".join(notes)), *others, *agreed]
        tests = self.significance
        # A reader of 45 pairs looks at letters; a program gets all.
        many = bool(tests and not complete and has_many_pairs(self.scores, tests))
        first = query_table(self.scores) if per_query else means_table(self.scores, tests, complete)
        notes, others = [first.caption], list[Table]()
        if tests and not per_query and many:
            notes.append(f"{tests.method}{equivalence_note(tests, counted=True)} TSV and JSON list all comparisons.")
        elif tests and not per_query:
            compared = comparison_table("", tests) if wide else narrow_table(tests)
            caption = f"{tests.method}\n{tests.columns_note}.{equivalence_note(tests)}"
            others.append(replace(compared, caption=caption, header=("run", *compared.header[1:])))
        if self.best_of_teams:
            measure = next(iter(self.scores.values())).measures[0]
            notes.append(f"Of each team, the best run by {measure} is shown, chosen on these topics.")
        notes.append(self.unretrieved.note() if self.unretrieved else "")
        notes += [unjudged_note(self.unjudged or {}), *self._release_notes]
        others += [category_table(self.scores, self._category_scores())] if self.categories and not per_query else []
        others += [*self._holes_tables(many=many), *agreed]
        topics = len(next(iter(self.scores.values())).qids)
        others += [power_table(self.powers, topics)] if self.powers and not per_query else []
        return [replace(first, caption="\n".join(filter(None, notes))), *others]

    def _holes_tables(self, *, many: bool) -> list[Table]:
        """Make the tables of views of unjudged documents; of many pairs sentences stand for the second."""
        if not self.holes or not self.significance:
            return [self.holes.table] if self.holes else []
        whole, sentences = self.holes.table, holes_sentences(self.significance)
        if many:
            return [replace(whole, caption="\n".join([whole.caption, *sentences]))]
        return [whole, holes_table(self.significance)]

    @property
    def _release_notes(self) -> list[str]:
        return [f"Release: {self.release}."] if self.release else []

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, unrounded, as a dictionary that JSON can represent; a gate comes first."""
        head: dict[str, Any] = {} if self.gate is None else {"gate": self.gate.to_dict()}
        head |= {"greylag": __version__} | ({"release": self.release} if self.release else {})
        agreed: dict[str, Any] = {"agreement": self.agreement.to_dict()} if self.agreement else {}
        agreed |= {"rankings": list(map(asdict, self.rankings))} if self.rankings else {}
        if self.corrections:
            return head | self.corrections.to_dict() | agreed
        content = head | to_dict(self.scores, self.significance)
        content |= agreed | ({"unjudged_at_10": self.unjudged} if self.unjudged else {})
        content |= {"best_of" if self.best_of_teams else "teams": self.teams} if self.teams else {}
        content |= {"unretrieved": self.unretrieved._asdict()} if self.unretrieved else {}
        content |= {"digests": self.digests} if self.digests else {}
        parts = self._category_scores().items()
        means = {name: {run: scores.by_measure for run, scores in part.items()} for name, part in parts}
        content |= {"categories": means} if means else {}
        content |= {"power": [*map(asdict, self.powers)]} if self.powers else {}
        return content | ({"holes": self.holes.to_dict()} if self.holes else {})

    def _gate_tables(self) -> list[Table]:
        return [] if self.gate is None else [with_teams(self.gate.table, self.teams or {})]

    def _first_table(self, per_query: bool) -> Table:
        if self.gate is not None or per_query or not self.categories:
            return Formatted._first_table(self, per_query)
        means = means_by_topics(self._tables(complete=True)[0], self._category_scores())
        return with_teams(means, self.teams or {})

    def _terminal_text(self, per_query: bool) -> str:
        # Of a gate, its checks alone.
        return f"{self.gate}\n" if self.gate is not None else Formatted._terminal_text(self, per_query)

    def _paper_source(self, per_query: bool, number: int = 1) -> str:
        tested, corrected = {"": (self.scores, self.significance)}, self.corrections is not None
        tables, teams = self.tables(per_query=per_query), self.teams or {}
        source = _paper(tables, tested, per_query, corrected=corrected, number=number, teams=teams)
        word = [] if self.gate is None else str(self.gate).splitlines()
        return "".join(f"% {line}\n" for line in word) + source

    def _page_sections(self, per_query: bool) -> list[Section]:
        from greylag.evaluation.reports.charts import result, scores_by_query
        from greylag.evaluation.reports.report import Section

        tests = self.significance
        tables = [_against_one(table, tests) for table in self.tables(per_query=per_query, wide=True)]
        gate = list[Section]()
        if self.gate is not None:
            gate = [Section("Gate", parts=[self.gate.headline, replace(self.gate.table, caption="")])]
        if tests:
            return [*gate, result([(self.scores, tests)], tables=tables)]
        queries = [scores_by_query(self.scores, name) for name in self.scores if not per_query]
        return [*gate, Section("Scores", parts=[*tables, *queries])]

    def _category_scores(self) -> dict[str, dict[str, Scores]]:
        """Return the scores on the topics of each category."""
        return scores_by_category(self.scores, self.categories) if self.categories else {}

    def _with_runs(self, scores: Mapping[str, Scores]) -> Evaluation:
        """Keep these runs, in this order, and test them anew."""
        kept, tests = replace(self, scores=scores, gate=None), self.significance
        kept = replace(kept, holes=self.holes.of_runs(scores)) if self.holes else kept
        kept = replace(kept, agreement=self.agreement.of_runs(scores)) if self.agreement else kept
        several = len(scores) > 1 and self.rankings
        powers = tuple(power for power in self.powers if power.run in scores)
        kept = replace(kept, rankings=compare_measures(scores) if several else (), powers=powers)
        return kept.tested(compare_again({"": scores}, tests)[""]) if tests else kept

    def _exclude_corrections(self, view: str) -> None:
        """Raise `ParameterError` for scores that stand for corrected means."""
        if self.corrections:
            raise ParameterError(f"predicted judgements exclude {view}: leave predicted or this out")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QrelsAgreement(Formatted):
    """The agreement of two sets of judgements without runs, which `compare_qrels` makes."""

    agreement: Agreement

    def tables(self, *, per_query: bool = False, wide: bool = False, complete: bool = False) -> list[Table]:
        """Make the table of documents that both judged."""
        return self.agreement.tables

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a dictionary that JSON can represent."""
        return {"greylag": __version__, "agreement": self.agreement.to_dict()}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.agreement.topics[0]} topics>"

    def _terminal_text(self, per_query: bool) -> str:
        return as_text(replace(self.tables()[0], caption="")) + f"\n{self.tables()[0].caption}\n"

    def _paper_source(self, per_query: bool) -> str:
        return as_latex(self.tables()[0], "tab:greylag")

    def _page_sections(self, per_query: bool) -> list[Section]:
        from greylag.evaluation.reports.report import Section

        return [Section("Agreement", parts=self.tables())]


def ordered_scores(scores: Mapping[str, Scores], names: Iterable[str]) -> dict[str, Scores]:
    """Put scores in the order of names; `ParameterError` for a run that is not among them. More names are ignored."""
    listed = dict.fromkeys(names)
    if lacking := [run for run in scores if run not in listed]:
        raise ParameterError(f"the order lacks {few_names(lacking)}: name all runs")
    return {name: scores[name] for name in listed if name in scores}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collections(Formatted):
    """The evaluations of several collections, or by several kinds of judgements.

    Parameters
    ----------
    parts : mapping
        Evaluations by collection, whose p are corrected together. With the same runs and measures, they are the columns
        of one table; else each has its own. The methods of a part test it alone.
    verdict : str, default ""
        What the comparisons show, in a paragraph, which text ends with.
    release : str, default ""
        A name of what was evaluated, such as a version.
    """

    parts: Mapping[str, Evaluation]
    verdict: str = ""
    release: str = ""

    def released(self, release: str) -> Collections:
        """Name what was evaluated, as `Evaluation.released` does."""
        parts = {name: part.released(release) for name, part in self.parts.items()}
        return replace(self, parts=parts, release=release)

    def of_teams(self, teams: Teams) -> Collections:
        """Add a column of teams to all tables, as `Evaluation.of_teams` does."""
        return replace(self, parts={name: part.of_teams(teams) for name, part in self.parts.items()})

    def ordered(self, names: Iterable[str]) -> Collections:
        """Put the runs in the order of these names, such as that in which they were given; others are ignored."""
        listed = [*names]
        tests = next(iter(self.parts.values())).significance
        if tests is None or tests.together is None:
            return replace(self, parts={name: part.ordered(listed) for name, part in self.parts.items()})
        scores = {name: ordered_scores(part.scores, listed) for name, part in self.parts.items()}
        again = compare_again(scores, tests)
        parts = {n: replace(part, scores=scores[n]).tested(again[n]) for n, part in self.parts.items()}
        return replace(self, parts=parts)

    def tables(self, *, per_query: bool = False, wide: bool = False, complete: bool = False) -> list[Table]:
        """Make one table of the parts if they can share it, else each part's own."""
        made = self._tables(per_query=per_query, wide=wide, complete=complete)
        return [with_teams(table, self._teams) for table in made] if self.shared else made

    @property
    def _teams(self) -> Mapping[str, str]:
        return next(iter(self.parts.values())).teams or {}

    def _tables(self, *, per_query: bool = False, wide: bool = False, complete: bool = False) -> list[Table]:
        """Make the tables, those that parts share without teams."""
        if not (tested := self.shared):
            made = partial(Evaluation.tables, per_query=per_query, wide=wide, complete=complete)
            own = {name: made(part) for name, part in self.parts.items()}
            return [replace(table, caption=f"{n}: {table.caption}") for n, tables in own.items() for table in tables]
        if per_query:
            return [stacked({name: query_table(scores) for name, (scores, _) in tested.items()})]
        means, (scores, tests) = joint_means(tested), next(iter(tested.values()))
        many = bool(tests and not complete and has_many_pairs(scores, tests))
        notes, others = [means.caption], list[Table]()
        if tests and complete:
            others = [stacked({name: comparison_table("", test) for name, (_, test) in tested.items() if test})]
        elif tests and many:
            notes.append(f"{tests.method} TSV and JSON list all comparisons.")
        elif tests:
            first, *others = joint_comparisons(tested)
            others = [replace(first, caption=f"{first.caption} {tests.method}{equivalence_note(tests)}"), *others]
        notes += [part.unretrieved.note(f"{name}: ") for name, part in self.parts.items() if part.unretrieved]
        notes += [unjudged_note(part.unjudged or {}, f"{name}: ") for name, part in self.parts.items()]
        notes += [f"Release: {self.release}."] if self.release else []
        by_table = zip(*(part._holes_tables(many=many) for part in self.parts.values()), strict=True)
        others += [stacked(dict(zip(self.parts, tables, strict=True))) for tables in by_table]
        return [replace(means, caption="\n".join(filter(None, notes))), *others]

    @property
    def shared(self) -> Tested:
        """The scores and tests of each part, if all have the same runs and measures; else empty."""
        parts = {name: (part.scores, part.significance) for name, part in self.parts.items()}
        shapes = {(frozenset(scores), next(iter(scores.values())).measures) for scores, _ in parts.values()}
        return parts if len(shapes) == 1 else {}

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, unrounded, as a dictionary that JSON can represent."""
        return {"parts": {name: part.to_dict() for name, part in self.parts.items()}}

    def _paper_source(self, per_query: bool) -> str:
        if shared := self.shared:
            return _paper(self.tables(per_query=per_query), shared, per_query, teams=self._teams)
        return "\n".join(part._paper_source(per_query, number) for number, part in enumerate(self.parts.values(), 1))

    def _page_sections(self, per_query: bool) -> list[Section]:
        from greylag.evaluation.reports.charts import collections_chart, result
        from greylag.evaluation.reports.report import Section

        tables = self.tables(per_query=per_query, wide=True)
        tested = {name: (part.scores, part.significance) for name, part in self.parts.items() if part.significance}
        charts = [collections_chart(self.shared)] if self.shared and len(tested) == len(self.parts) else []
        shown = [f"{name}: {verdict([pair])}" for name, pair in tested.items()]
        own = [replace(result([_without_power(*pair)]), title=name) for name, pair in tested.items()]
        return [Section("Scores", parts=[*shown, *tables, *charts]), *own]


def _without_power(scores: Mapping[str, Scores], tests: Significance) -> tuple[Mapping[str, Scores], Significance]:
    """Leave out the differences that the queries reveal, which a page says once."""
    return scores, replace(tests, comparisons=tuple(replace(c, detectable=None) for c in tests.comparisons))


def _paper(
    tables: Sequence[Table],
    tested: Tested,
    per_query: bool,
    *,
    corrected: bool = False,
    number: int = 1,
    teams: Mapping[str, str] | None = None,
) -> str:
    """Format the first table as LaTeX, and notes, other tables and works to cite as comments."""
    first, *others = tables
    labels = short_names(name for scores, _ in tested.values() for name in scores)
    rows = [[labels.get(str(cell), cell) for cell in row[:1]] + [*row[1:]] for row in first.rows]
    caption = "Scores of each query." if per_query else first.caption.partition("\n")[0]
    shown, note = replace(first, caption=caption, rows=rows), ""
    if not (corrected or per_query):
        by_label = {labels[name]: team for name, team in (teams or {}).items() if name in labels}
        shown, note = with_teams(paper_table(tested), by_label), paper_note(tested)
    names = [name for scores, tests in tested.values() for name in method_names(scores, None if per_query else tests)]
    cited = cite("prediction-powered" if corrected else ", ".join(dict.fromkeys(names)))
    comments = "\n".join([first.caption, *map(as_text, others), *cited]).splitlines()
    label = "tab:greylag" + f"-{number}" * (number > 1)
    return as_latex(shown, label, note) + "".join(f"% {line}\n" for line in comments)


def _page(value: Any, per_query: bool) -> str:
    """Write a page: sentences of the comparisons, tables, charts."""
    from greylag.evaluation.reports.report import report_page  # which no other form needs

    return report_page("Evaluation", value._page_sections(per_query), _origin())


def _origin() -> dict[str, Any]:
    """Return the command that made a page, for whoever finds it later, and versions."""
    return {"command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]), "versions": versions() | TREC_EVAL}


def _against_one(table: Table, tests: Significance | None) -> Table:
    """Leave out the column that names the one baseline."""
    if tests and tests.baseline and "against" in table.header:
        header, *rows = ([cell for n, cell in enumerate(row) if n != 1] for row in (table.header, *table.rows))
        caption = f"Differences from {tests.baseline}.\n{table.caption}"
        return replace(table, header=[*map(str, header)], rows=rows, caption=caption)
    return table


def _separated(value: Any, per_query: bool) -> str:
    """Write all tables as TSV."""
    tables = value.tables(per_query=per_query, wide=True, complete=True)
    return "\n".join(map(as_tsv, [*value._gate_tables(), *tables]))


def _markdown(value: Any, per_query: bool) -> str:
    """Write all tables as Markdown; above those of a gate stands its word."""
    gate = [f"**{escape_markdown(t.caption)}**\n\n{as_markdown(replace(t, caption=''))}" for t in value._gate_tables()]
    return "\n".join([*gate, *map(as_markdown, value.tables(per_query=per_query))])


def _junit(value: Any, _: bool) -> str:
    """Write a gate's checks as JUnit's XML."""
    if getattr(value, "gate", None) is None:
        raise ParameterError("the form junit is of a gate's checks: give --fail-if or --floor, or gated(...) in Python")
    return str(value.gate.junit())


FORMS: Mapping[str, Callable[[Any, bool], str]] = {
    "text": lambda value, per_query: value._terminal_text(per_query),
    "tsv": _separated,
    "csv": lambda value, per_query: as_tsv(value._first_table(per_query), "excel"),
    "markdown": _markdown,
    "latex": lambda value, per_query: value._paper_source(per_query),
    "json": lambda value, _: json.dumps(value.to_dict(), indent=1, default=str) + "\n",
    "html": _page,
    "junit": _junit,
}
"""The forms of an evaluation: a function of it, and of whether each query's scores are shown."""


def check_form(option: str, form: str) -> None:
    """Raise `ParameterError` unless `form` is one of `FORMS`."""
    if form == "parquet":
        raise ParameterError(
            f"{option} cannot be parquet: in Python, write compare(...).to_frame().to_parquet('scores.parquet')"
        )
    check_choice(option, form, FORMS)
