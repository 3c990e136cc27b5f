"""Passages without an index."""

import subprocess
import sys

import numpy as np
import pytest

from greylag import ModelRanker, RankingModel
from greylag.diversity import MMR, PM2, Coverage, EssentialPages, XQuAD
from greylag.diversity.mmr import MarginalRelevance
from greylag.errors import ParameterError
from greylag.features import parse_features
from greylag.index import PositionalIndex
from greylag.interop import RankedPassage, rerank
from greylag.manifold import ManifoldRanker
from greylag.ranking import Ranking
from greylag.vectors import ArrayVectors
from tests.greylag.interop.samples import PASSAGES, SCORED

INDEX = PositionalIndex.from_texts({str(i): text for i, text in enumerate(PASSAGES)})
RANKING = Ranking("q", "cat", tuple("01234"), np.array(SCORED))
ROWS = np.random.default_rng(0).standard_normal((5, 4))


def positions(ranking: Ranking) -> list[int]:
    return [int(docid) for docid in ranking.docids]


@pytest.mark.parametrize(
    ("method", "stage"),
    [
        ("mmr", MMR(INDEX)),
        ("coverage", Coverage(INDEX)),
        ("essential-pages", EssentialPages(INDEX)),
        ("manifold", ManifoldRanker(INDEX)),
    ],
)
def test_is_the_stage_over_the_passages(method, stage):
    found = rerank("cat", PASSAGES, SCORED, method=method)
    expected = stage(RANKING)
    assert [new.position for new in found] == positions(expected)
    assert [new.score for new in found] == expected.scores.tolist()
    assert [new.rank for new in found] == [1, 2, 3, 4, 5]
    assert [new.text for new in found] == [PASSAGES[new.position] for new in found]


@pytest.mark.parametrize("method", ["xquad", "pm2"])
def test_aspects_of_passages(method: str) -> None:
    """Scores in an array, from a function, or by BM25 of texts."""
    kind = {"xquad": XQuAD, "pm2": PM2}[method]
    scores = np.random.default_rng(1).random((5, 2))
    by_text = dict(zip(PASSAGES, scores.tolist(), strict=True))
    expected = positions(kind(aspects=lambda ranking: scores[positions(ranking)])(RANKING))

    def score(query: str, passages: list[str]) -> list[list[float]]:
        assert query == "cat"
        return [by_text[passage] for passage in passages]

    for aspects in (scores, scores.tolist(), score):
        found = rerank("cat", PASSAGES, SCORED, method=method, aspects=aspects)
        assert [new.position for new in found] == expected
    texts = ["the cat", "a dog ran"]
    found = rerank("cat", PASSAGES, SCORED, method=method, aspects=texts)
    assert [new.position for new in found] == positions(kind(INDEX, {"q": texts})(RANKING))
    for wrong in ({"method": method}, {"aspects": texts}):
        with pytest.raises(ParameterError, match="aspects are for pm2, xquad"):
            rerank("cat", PASSAGES, SCORED, **wrong)  # type: ignore[arg-type]
    for bad in (scores[:4], scores[:, 0], "the cat", 3):
        with pytest.raises(ParameterError, match="for 5 passages: give texts, a function"):
            rerank("cat", PASSAGES, SCORED, method=method, aspects=bad)


def test_moves_near_duplicates_down() -> None:
    found = rerank("cat", PASSAGES, SCORED, relevance_weight=0.5)
    assert [new.position for new in found][:2] == [0, 2]  # passage 1 repeats passage 0


def test_embeddings_in_place_of_words() -> None:
    found = rerank("cat", PASSAGES, SCORED, vectors=ROWS, relevance_weight=0.2)
    assert [new.position for new in found] == positions(
        MMR(vectors=ArrayVectors(RANKING.docids, ROWS), relevance_weight=0.2)(RANKING)
    )
    vectors = ArrayVectors(RANKING.docids, ROWS, {"q": ROWS[3]})
    found = rerank("cat", PASSAGES, SCORED, method="manifold", vectors=ROWS, query_vector=ROWS[3], alpha=0.9)
    assert [new.position for new in found] == positions(ManifoldRanker(vectors=vectors, alpha=0.9)(RANKING))


def test_any_stage() -> None:
    model = RankingModel(parse_features("FI/term/BM25"), weights=(1.0,))
    found = rerank("dog", PASSAGES, SCORED, method=lambda index: ModelRanker(model, index, transfer=True))
    assert [new.position for new in found][:2] == [2, 3]


def test_scores_in_any_order_identifiers_and_a_limit() -> None:
    order = [3, 0, 4, 2, 1]
    passages, scores = [PASSAGES[i] for i in order], [SCORED[i] for i in order]
    found = rerank("cat", passages, scores, doc_ids=["p3", "p0", "p4", "p2", "p1"], top_k=2)
    assert [new.text for new in found] == [new.text for new in rerank("cat", PASSAGES, SCORED)][:2]
    assert found[0] == RankedPassage("the cat sat", "p0", 5.0, 1, 1)


def test_no_passages() -> None:
    for method in ("mmr", "coverage", "essential-pages", "manifold"):
        assert rerank("cat", [], [], method=method) == []
    assert [new.position for new in rerank("", ["", ""], [1, 2])] == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [1.0]}, "5 passages but 1 scores"),
        ({"scores": [1, 2, 3, 4, float("nan")]}, "score nan is not finite"),
        ({"scores": ["1"] * 5}, "the score of passage 0 is str '1'"),
        ({"passages": "the cat"}, "takes one query, a sequence of passages"),
        ({"passages": [1] * 5}, "the text of passage 0 is int 1"),
        ({"query": ["cat"]}, "takes one query"),
        ({"doc_ids": ["a"]}, "5 passages but 1 doc_ids"),
        ({"groups": ["a"]}, "5 passages but 1 groups"),
        ({"method": "svmdiv"}, "give model="),
        ({"top_k": 0}, "top_k must be an integer of at least 1, not 0"),
        ({"method": "mrr"}, "unknown stage 'mrr': did you mean mrf or mmr"),
        ({"lambd": 1}, "method 'mmr' has no option 'lambd': its options are .*relevance_weight"),
        ({"method": "coverage", "vectors": ROWS}, "takes no vectors: use dpp, manifold, mmr, msd"),
        ({"vectors": ROWS[:2]}, "5 docids for 2 vectors"),
        ({"method": "manifold", "vectors": ROWS}, "give queries="),
        ({"method": MMR, "k": 3}, "k: a function of the index sets"),
    ],
)
def test_refuses_what_does_not_fit(arguments, message):
    given = {"query": "cat", "passages": PASSAGES, "scores": SCORED} | arguments
    with pytest.raises(ParameterError, match=message):
        rerank(given.pop("query"), given.pop("passages"), given.pop("scores"), **given)


HEAVY = {"jnius", "pandas", "sklearn", "nltk", "matplotlib"}


@pytest.mark.parametrize(
    ("options", "unused"),
    [("vectors=[[1.0, 0.0], [0.6, 0.8]]", HEAVY | {"numba", "scipy", "joblib", "pydantic"}), ("", HEAVY)],
)
def test_the_first_call_loads_little(options: str, unused: set[str]) -> None:
    code = (
        f"import sys; from greylag import rerank; rerank('cats', ['running cats', 'dogs'], [1, 2], {options}); "
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "greylag.interop.passages" in loaded
    assert not unused & set(loaded)


def test_nltk_is_whole_after_its_stemmer_was_loaded() -> None:
    code = (
        "from greylag.index.analysis import analyze; print(analyze('running')); import nltk; "
        "from nltk.stem import porter; print(nltk.stem.PorterStemmer().stem('running'), porter.__name__)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "['run']\nrun nltk.stem.porter\n"


def test_no_more_than_top_k_are_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    picked: list[int] = []
    add = MarginalRelevance.add
    monkeypatch.setattr(MarginalRelevance, "add", lambda gain, pick: (picked.append(pick), add(gain, pick))[1])
    assert [new.position for new in rerank("cat", PASSAGES, SCORED, vectors=ROWS, top_k=2)] == picked
    assert len(picked) == 2
    for method in ("mmr", "msd", "dpp"):
        every = [new.position for new in rerank("cat", PASSAGES, SCORED, method=method, vectors=ROWS)]
        few = rerank("cat", PASSAGES, SCORED, method=method, vectors=ROWS, top_k=2)
        assert [new.position for new in few] == every[:2]
        assert rerank("cat", PASSAGES, SCORED, method=method, top_k=9) == rerank("cat", PASSAGES, SCORED, method=method)


def test_few_of_a_group() -> None:
    groups = ["a", "a", "a", "b", None]
    found = rerank("cat", PASSAGES, SCORED, relevance_weight=1.0, groups=groups, max_per_group=2)
    assert [new.position for new in found] == [0, 1, 3, 4, 2]
    capped = rerank("cat", PASSAGES, SCORED, relevance_weight=1.0, groups=groups, top_k=2)
    assert [new.position for new in capped] == [0, 3]
    by_mmr = [new.position for new in rerank("cat", PASSAGES, SCORED, vectors=ROWS)]
    allowed = [place for place in by_mmr if groups[place] != "a"]
    first = next(place for place in by_mmr if groups[place] == "a")
    expected = sorted([first, *allowed], key=by_mmr.index)
    capped = rerank("cat", PASSAGES, SCORED, vectors=ROWS, groups=groups, top_k=3)
    assert [new.position for new in capped] == expected  # the cap does not end what MMR picks
