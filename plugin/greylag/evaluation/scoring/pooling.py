"""Pools: the documents for people to judge, the top of each run or team (Sparck Jones and van Rijsbergen 1975)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from greylag.base import ParameterError, Printed, Run, Table, as_run, check_counts, guided
from greylag.evaluation.scoring.agreement import few_names
from greylag.evaluation.scoring.teams import Teams, assign_teams
from greylag.evaluation.trec.qrels import read_qrels
from greylag.evaluation.trec.runs import RunParts


@dataclass(frozen=True, slots=True, repr=False)
class JudgingPool(Printed):
    """The documents to judge, and what each run has among them; ``str`` is a table of the runs."""

    documents: Mapping[str, tuple[str, ...]]  # by qid, those of a topic by docid, which tells no ranks
    judged: int  # further documents of the pool, which are judged already
    omitted: int  # further documents, which were not drawn
    counts: Mapping[str, tuple[str | int, ...]]  # by run: team; of its top: pooled, of no other team, judged, to judge
    most: ClassVar[int] = 1000

    @property
    def lines(self) -> str:
        """A line ``qid docid`` for each document."""
        return "".join(f"{qid} {docid}\n" for qid, docids in self.documents.items() for docid in docids)

    def _table(self) -> Table:
        number = sum(map(len, self.documents.values()))
        drawn = f", {self.omitted} not drawn" if self.omitted else ""
        caption = f"{number} documents of {len(self.documents)} topics to judge; {self.judged} judged already{drawn}"
        alone = all(row[0] == name for name, row in self.counts.items())  # each run is a team
        if not alone:
            caption += (
                "\nA run's documents are those of its top that its team's merged list has; teammates may share them."
            )
        header = ("run", "team", "pooled", f"of no other {'run' if alone else 'team'}", "judged", "to judge")
        whole = [header, *((name, *row) for name, row in self.counts.items())]
        head, *rows = [(row[0], *row[2:]) for row in whole] if alone else whole
        return Table(caption, [str(name) for name in head], rows)


@guided
def pool_runs(
    runs: Mapping[str, Run | str | Path | Any],
    depth: int,
    *,
    teams: Teams | None = None,
    judged: Any = None,
    sample: int | None = None,
    seed: int = 0,
) -> JudgingPool:
    """Pool the top documents of each run, or of each team, for each topic.

    A team's runs are merged rank by rank, its first run first, until `depth` different documents are there.

    Parameters
    ----------
    runs : mapping of str to Run, path, or a run that `evaluate` takes
        Runs by name, those of a team in the order of their priority.
    depth : int >= 1
        The number of documents for a topic.
    teams : mapping of str to str, path or str, optional
        Teams by name or tag of run, a file of these in two columns, or a regular expression, whose first group is the
        team in a run's tag or name. By default, each run is a team.
    judged : path or judgements, optional
        Judgements so far: their documents are pooled, and not judged again.
    sample : int >= 1, optional
        Draw at most this many of a topic's documents to judge, each with the same probability. Documents of `judged`
        are no part of the draw: they are in the pool for certain, so that estimates for samples hold for the others.
    seed : int >= 0, default 0
        Seeds the draw, which depends on no other topic.
    """
    check_counts(depth=depth, **({} if sample is None else {"sample": sample}))
    if isinstance(runs, Run) or not isinstance(runs, Mapping):
        raise ParameterError("runs are by name: pass {'bm25': run, 'mine': other}")
    tops = {name: _top_documents(name, run, depth) for name, run in runs.items()}
    labels = {name: (top.tag, name) for name, top in tops.items()}
    team_of = {name: name for name in runs} if teams is None else assign_teams(labels, teams)
    known = {} if judged is None else read_qrels(judged)
    if known and not any(qid in known for top in tops.values() for qid in top):
        theirs, ours = (few_names([*dict.fromkeys(qids)]) for qids in (chain.from_iterable(tops.values()), known))
        raise ParameterError(f"runs and judgements have no topic in common ({theirs} against {ours})")
    counts, documents = {name: [0] * 4 for name in tops}, dict[str, tuple[str, ...]]()
    total = Counter[str]()
    for qid in dict.fromkeys(chain.from_iterable(tops.values())):
        ranked = {name: top[qid] for name, top in tops.items() if qid in top}
        pooled = dict[str, set[str]]()
        for team in {team_of[name] for name in ranked}:
            by_rank = zip_longest(*(ranking.docids for name, ranking in ranked.items() if team_of[name] == team))
            pooled[team] = {*islice(dict.fromkeys(filter(None, chain.from_iterable(by_rank))), depth)}
        holders = Counter(chain.from_iterable(pooled.values()))
        before = holders.keys() & known.get(qid, {}).keys()
        rest = sorted(holders.keys() - before)
        if sample is not None and len(rest) > sample:
            drawn = np.random.default_rng([seed, *qid.encode()]).choice(len(rest), sample, replace=False)
            total["omitted"] += len(rest) - sample
            rest = [rest[place] for place in sorted(drawn.tolist())]
        total["judged"] += len(before)
        documents[qid] = tuple(rest)
        for name, ranking in ranked.items():
            own = pooled[team_of[name]].intersection(ranking.docids)
            alone = {docid for docid in own if holders[docid] == 1}
            for kind, docids in enumerate((own, alone, own & before, own.intersection(rest))):
                counts[name][kind] += len(docids)
    rows: dict[str, tuple[str | int, ...]] = {name: (team_of[name], *numbers) for name, numbers in counts.items()}
    return JudgingPool(documents, total["judged"], total["omitted"], rows)


def _top_documents(name: str, run: Any, depth: int) -> Run:
    """Return a run's top documents, reading its file in parts."""
    if not isinstance(run, str | Path | RunParts):
        return as_run(run, tag=name).head(depth)
    parts = run if isinstance(run, RunParts) else RunParts(run)
    tops = parts.apply(lambda read: [part.head(depth) for part in read])
    return Run(tuple(chain.from_iterable(top.rankings for top in tops)), tops[0].tag)
