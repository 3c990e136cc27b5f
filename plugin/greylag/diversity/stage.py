"""The diversifiers as stages of a pipeline; MMR has a module of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from greylag.diversity.baselines import ModularGain, random_gain, unweighted_coverage
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage import CoverageGain, Subtopics, known_subtopics, word_coverage
from greylag.diversity.essential_pages import EssentialPagesGain
from greylag.diversity.fusion import reciprocal_rank_fusion
from greylag.diversity.model import DiversityModel
from greylag.errors import ModelError, ParameterError
from greylag.greedy import GreedyStage, greedy, picked_first
from greylag.index.positional import PositionalIndex
from greylag.model_files import check_collection
from greylag.ranking import Ranking, Run, Stage
from greylag.trec import SubtopicQrels


@dataclass(frozen=True)
class SVMDiv(GreedyStage):
    """Picks documents whose words a trained model finds worth covering (Yue & Joachims 2008, Algorithm 1).

    Parameters
    ----------
    model : the model, of one vector of weights.
    index : the collection.
    titles : titles by docid, which a model that was trained with titles needs.
    depth, k : see `GreedyStage`. The first picks are the same for every k.
    transfer : allow a model that was trained on another collection.

    Raises
    ------
    ModelError
        Where the model is an ensemble, was trained on another collection and `transfer` is not set, or was trained with
        titles and there are none.
    """

    model: DiversityModel
    index: PositionalIndex
    titles: Mapping[str, str] | None = None
    depth: int = 100
    k: int = 20
    transfer: bool = False
    _make: CandidateMaker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.model.weights) > 1:
            raise ModelError(
                f"the model is an ensemble of {len(self.model.weights)}: use all of it (CSSVM, --method cssvm), or one "
                "of model.members"
            )
        check_collection(self.model.fingerprint, self.index, transfer=self.transfer)
        if self.model.titles and self.titles is None:
            raise ModelError("the model was trained with titles: give the stage the documents' titles, too")
        titles = self.titles if self.model.titles else None
        make = CandidateMaker(self.index, self.model.features, titles, self.model.parameters)
        object.__setattr__(self, "_make", make)

    def gain(self, candidates: Ranking) -> CoverageGain:
        """The gain in w' Psi."""
        return word_coverage(self._make(candidates), np.array(self.model.weights[0]))


@dataclass(frozen=True)
class CSSVM(Stage):
    """Diversifies by each member of an ensemble, as `SVMDiv` does, and fuses the M rankings by reciprocal ranks.

    Of documents that come out equal, the one with the better rank before is first.

    Parameters
    ----------
    model : the ensemble.
    index, titles, depth, k, transfer : see `SVMDiv`.

    Raises
    ------
    ModelError
        As `SVMDiv`.
    """

    model: DiversityModel
    index: PositionalIndex
    titles: Mapping[str, str] | None = None
    depth: int = 100
    k: int = 20
    transfer: bool = False
    _make: CandidateMaker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # What a member's stage checks and makes is the same for all.
        first = SVMDiv(self.model.members[0], self.index, self.titles, self.depth, self.k, self.transfer)
        object.__setattr__(self, "_make", first._make)

    def member_rankings(self, ranking: Ranking) -> tuple[Ranking, ...]:
        """One query's documents as each member diversifies them."""
        x = self._make(ranking.head(self.depth))
        picks = (greedy(word_coverage(x, np.array(vector)), self.k) for vector in self.model.weights)
        return tuple(ranking.permute(picked_first(picked, len(ranking))) for picked in picks)

    def member_runs(self, run: Run, *, n_jobs: int = 1, tag: str = "cssvm") -> tuple[Run, ...]:
        """Each member's rankings as a run, tagged `tag` and its number; the same for any number of threads."""
        from joblib import Parallel, delayed

        found = Parallel(n_jobs, backend="threading")(delayed(self.member_rankings)(r) for r in run.rankings)
        members = range(len(self.model.weights))
        return tuple(Run(tuple(rankings[m] for rankings in found), f"{tag}-{m + 1}") for m in members)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank one query's documents."""
        fused = reciprocal_rank_fusion(self.member_rankings(ranking))
        scores = dict(zip(fused.docids, fused.scores, strict=True))
        return ranking.rescore([scores[docid] for docid in ranking.docids])


@dataclass(frozen=True)
class EssentialPages(GreedyStage):
    """Picks documents whose words are frequent in them and rare among the candidates (`EssentialPagesGain`).

    Parameters
    ----------
    index : the collection.
    depth, k : see `GreedyStage`.
    """

    index: PositionalIndex
    depth: int = 100
    k: int = 20

    def gain(self, candidates: Ranking) -> EssentialPagesGain:
        """Essential Pages' gain."""
        return EssentialPagesGain(self.index.term_frequencies(self.index.documents(candidates.docids)))


@dataclass(frozen=True)
class Coverage(GreedyStage):
    """Picks documents that have the most words which no picked one has.

    Parameters
    ----------
    index : the collection.
    depth, k : see `GreedyStage`.
    """

    index: PositionalIndex
    depth: int = 100
    k: int = 20

    def gain(self, candidates: Ranking) -> CoverageGain:
        """The number of new words."""
        return unweighted_coverage(self.index.term_frequencies(self.index.documents(candidates.docids)))


@dataclass(frozen=True)
class Random(GreedyStage):
    """Picks documents at random, in an order that depends on the seed and the query's identifier alone.

    Parameters
    ----------
    seed : >= 0.
    depth, k : see `GreedyStage`.
    """

    seed: int = 0
    depth: int = 100
    k: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed < 0:
            raise ParameterError(f"seed has to be at least 0, not {self.seed}")

    def gain(self, candidates: Ranking) -> ModularGain:
        """A random worth for each document."""
        rng = np.random.default_rng([self.seed, *candidates.qid.encode()])
        return random_gain(len(candidates), rng)


@dataclass(frozen=True)
class KnownSubtopics(GreedyStage):
    """Picks documents that cover the most weight of subtopics, which it is told: a bound for all that are not.

    Parameters
    ----------
    qrels : grades by qid, subtopic and docid. A query without relevant documents keeps its order.
    depth, k : see `GreedyStage`.
    """

    qrels: SubtopicQrels
    depth: int = 100
    k: int = 20

    def gain(self, candidates: Ranking) -> CoverageGain:
        """The weight of newly covered subtopics."""
        return known_subtopics(Subtopics.from_qrels(candidates.docids, self.qrels.get(candidates.qid, {})))
