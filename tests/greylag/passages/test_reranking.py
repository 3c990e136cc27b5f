"""Passages without an index.

Tests `greylag.index.beside`.
"""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from tests.greylag.passages.adapters.samples import PASSAGES, SCORED
from tests.processes import python
from tests.refusals import refuses

from greylag import GeneralRanker, ModelRanker, Reranker
from greylag.base import ParameterError, Ranking
from greylag.diversity import MMR, PM2, Coverage, EssentialPages, XQuAD
from greylag.diversity.mmr import MarginalRelevance
from greylag.features import FeatureExtractor, parse_features
from greylag.index import ArrayVectors, PositionalIndex, build_index
from greylag.index.beside import index_beside
from greylag.index.vectors import latent
from greylag.passages import RankedPassage, rerank
from greylag.rankers import ManifoldRanker, RankingModel

INDEX = PositionalIndex.from_texts({str(i): text for i, text in enumerate(PASSAGES)})
RANKING = Ranking("q", "cat", tuple("01234"), np.array(SCORED))
PADDED = PositionalIndex.from_texts({str(n): text for n, text in enumerate([*PASSAGES, *[""] * 50])})
ROWS = np.random.default_rng(0).standard_normal((5, 4))


def positions(ranking):
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
def test_aspects_of_passages(method):
    """Scores in an array, from a function, or by BM25 of texts."""
    kind = {"xquad": XQuAD, "pm2": PM2}[method]
    scores = np.random.default_rng(1).random((5, 2))
    by_text = dict(zip(PASSAGES, scores.tolist(), strict=True))
    expected = positions(kind(aspects=lambda ranking: scores[positions(ranking)])(RANKING))

    def score(query, passages):
        assert query == "cat"
        return [by_text[passage] for passage in passages]

    for aspects in (scores, scores.tolist(), score):
        found = rerank("cat", PASSAGES, SCORED, method=method, aspects=aspects)
        assert [new.position for new in found] == expected
    texts = ["the cat", "a dog ran"]
    found = [rerank("cat", PASSAGES, SCORED, method=method, aspects=[*texts, *none]) for none in ([], [""])]
    expected = [kind(INDEX, {"q": [*texts, *none]})(RANKING) for none in ([], ["zebra"])]
    assert [[new.position for new in one] for one in found] == [*map(positions, expected)]


def test_embeddings_in_place_of_words():
    found = rerank("cat", PASSAGES, SCORED, vectors=ROWS, relevance_weight=0.2)
    assert [new.position for new in found] == positions(
        MMR(vectors=ArrayVectors(RANKING.docids, ROWS), relevance_weight=0.2)(RANKING)
    )
    vectors = ArrayVectors(RANKING.docids, ROWS, {"q": ROWS[3]})
    found = rerank("cat", PASSAGES, SCORED, method="manifold", vectors=ROWS, query_vector=ROWS[3], alpha=0.9)
    assert [new.position for new in found] == positions(ManifoldRanker(vectors=vectors, alpha=0.9)(RANKING))


def mmr_of_cosines(query, rows, weight):
    """MMR as Carbonell and Goldstein write it, with cosines of the query as relevance: the form of LangChain."""

    def cosine(one, other):
        return float(one @ other / np.sqrt((one @ one) * (other @ other)))

    picks = []
    while len(picks) < len(rows):
        left = [n for n in range(len(rows)) if n not in picks]
        gains = [
            weight * cosine(query, rows[n]) - (1 - weight) * max((cosine(rows[n], rows[m]) for m in picks), default=0)
            for n in left
        ]
        picks.append(left[int(np.argmax(gains))])
    return picks


@pytest.mark.parametrize("seed", range(20))
def test_cosines_with_the_vector_of_the_query_are_the_relevance(seed):
    random = np.random.default_rng(seed)
    rows, query, weight = random.standard_normal((12, 6)), random.standard_normal(6), float(random.random())
    passages = [f"passage {n}" for n in range(12)]
    for vector in (query, lambda text: query):
        found = rerank("any", passages, method="mmr", vectors=rows, query_vector=vector, relevance_weight=weight)
        assert [new.position for new in found] == mmr_of_cosines(query, rows, weight)
    # A stage after the first one has ranks for scores, and scales them.
    joined = rerank("any", passages, method="mmr(relevance_weight=1)>>mmr", vectors=rows, query_vector=query)
    given = [float(12 - place) for place in np.argsort(np.argsort(-rows @ query / np.sqrt((rows**2).sum(axis=1))))]
    assert [new.position for new in joined] == [
        new.position for new in rerank("any", passages, given, method="mmr", vectors=rows)
    ]


def test_any_stage():
    model = RankingModel(parse_features("FI/term/BM25"), weights=(1.0,))
    found = rerank("dog", PASSAGES, SCORED, method=lambda index: ModelRanker(model, index, transfer=True))
    assert [new.position for new in found][:2] == [2, 3]


def test_scores_in_any_order_identifiers_and_a_limit():
    order = [3, 0, 4, 2, 1]
    passages, scores = [PASSAGES[i] for i in order], [SCORED[i] for i in order]
    found = rerank("cat", dict(zip(["p3", "p0", "p4", "p2", "p1"], passages, strict=True)), scores, k=2)
    assert [new.text for new in found] == [new.text for new in rerank("cat", PASSAGES, SCORED)][:2]
    assert found[0] == RankedPassage("the cat sat", "p0", 5.0, 1, 1, 0.9)


def test_the_original_score_is_the_retrievers_or_that_of_what_ranked_first():
    unit, by_words = ROWS / np.linalg.norm(ROWS, axis=1)[:, None], dict(by_bm25(PADDED, "cat flow", RANKING.docids))
    for scores, given, original in (
        (SCORED, {}, SCORED),
        (None, {"vectors": ROWS, "query_vector": ROWS[3]}, unit @ unit[3]),
        (None, {}, [by_words[docid] for docid in RANKING.docids]),
    ):
        found = rerank("cat flow", PASSAGES, scores, method="mmr", relevance_weight=0.1, **given)
        assert sorted(new.position for new in found) == [0, 1, 2, 3, 4]
        np.testing.assert_allclose([new.original_score for new in found], [original[new.position] for new in found])


def test_mappings_are_taken_by_identifier():
    texts, scores, rows = [dict(enumerate(each, 7)) for each in (PASSAGES, SCORED, ROWS)]
    groups = dict(zip(texts, "aabbc", strict=True))
    shuffled = [{key: each[key] for key in (9, 11, 7, 10, 8)} for each in (scores, rows, groups)]
    for method, given in (("mmr", shuffled[:1]), ("mmr", shuffled[:2]), ("mmr>>group-limit", shuffled)):
        by_id = dict(zip(("scores", "vectors", "groups"), given, strict=False))
        in_order = {name: [values[key] for key in texts] for name, values in by_id.items()}
        found = rerank("cat", texts, method=method, **by_id)
        assert found == rerank("cat", texts, method=method, **in_order)
    keyed = {(1, "a"): {"text": "cat"}, 1.5: {"text": "dog", "id": 1.5}, 3: {"text": "cow", "id": "3"}}
    assert [new.doc_id for new in rerank("cat", keyed, [3, 2, 1])] == [*keyed]


def test_no_passages():
    for method in ("mmr", "coverage", "essential-pages", "manifold"):
        assert rerank("cat", [], [], method=method) == []
    assert Reranker("mmr").rank("cat", [], [], vectors=[]) == []
    assert [new.position for new in rerank("", ["", ""], [1, 2])] == [1, 0]


NO_ORDER = set("abcde"), frozenset("abcde"), b"abcde"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"scores": [1.0]}, "5 passages|1 scores"),
        ({"scores": [1, 2, 3, 4, float("nan")]}, "score of passage 4|nan"),
        ({"scores": ["1"] * 5}, "score of passage 0|str '1'"),
        ({"scores": [1, 2, 3, 4, np.ones(1)]}, "score of passage 4|ndarray"),
        ({"scores": [1, 2, 3, 4, 10**400]}, "score of passage 4|range of floats"),
        ({"scores": [*SCORED[:4], np.True_]}, "score of passage 4"),
        ({"passages": dict.fromkeys("abcde", "x"), "scores": [1, float("inf"), 3, 4, 5]}, "score of passage b|inf"),
        ({"passages": dict(enumerate(PASSAGES)), "scores": dict(enumerate(SCORED, 1))}, "different identifiers|'0'"),
        ({"passages": "the cat"}, "one query, a sequence of passages"),
        ({"passages": [1] * 5}, "text of passage 0|int 1"),
        ({"passages": [(SimpleNamespace(page_content="x"), 1.0)] * 5}, "[0].page_content|compressor"),
        ({"query": ["cat"]}, "one query"),
        ({"groups": ["a"], "method": "group-limit"}, "5 passages|1 groups"),
        ({"groups": ["a"] * 5}, "'mmr'|groups|'mmr>>group-limit'"),
        ({"groups": [["a"]] * 5, "method": "group-limit"}, "group of passage 0|list"),
        ({"groups": [None] * 5, "method": "group-limit"}, "groups|no passage"),
        ({"method": "mmr>>group-limit"}, "groups="),
        ({"method": "svmdiv"}, "model=FILE"),
        ({"method": "mrr"}, "'mrr'|mmr or mrf"),
        ({"method": "coverage", "vectors": ROWS}, "no vectors|dpp, manifold, mmr, msd"),
        ({"method": "manifold", "vectors": ROWS}, "'manifold'|query_vector="),
        ({"method": "manifold", "vectors": ROWS, "query_vector": {1.0, 2.0}}, "query 'rerank'|set"),
        ({"method": "bm25"}, "'bm25'|'general'"),
        ({"relevance_weight": "high"}, "'mmr'|relevance_weight|'high'"),
        ({"relevance_weight": 1.5}, "relevance_weight|[0, 1]|1.5"),
        ({"scale": "minmax"}, "'mmr'|scale|'minmax'|range, none"),
        ({"lambd": 1}, "'lambd'|relevance_weight"),
        ({"lambda": 0.5}, "'lambda'|relevance_weight"),
        ({"embeddings": ROWS}, "'embeddings'|vectors"),
        ({"zz": 1}, "method, k, language, background, scores, vectors, query_vector, aspects, groups, depth, min_rel"),
        ({"top_k": 3}, "'top_k'|did you mean k?"),
        ({"k": 0}, "k must|at least 1|0"),
        ({"background": "index"}, "background|str 'index'|PositionalIndex"),
        ({"background": ["a"]}, "background|list ['a']|PositionalIndex.from_texts"),
        ({"vectors": ROWS[:2]}, "5 docids|2 vectors"),
        ({"vectors": [[1.0], [1.0, 2.0]]}, "vectors|different lengths"),
        ({"vectors": ROWS, "query_vector": ROWS[0]}, "'mmr'|query_vector"),
        ({"query_vector": ROWS[0], "scores": None}, "query_vector|vectors"),
        *(
            ({"method": "mmr>>group-limit", "groups": list("aabbc"), name: wrong}, f"{name}: |no sequence")
            for name in ("passages", "scores", "groups", "vectors")
            for wrong in (*NO_ORDER, *(["abcde"] if name != "passages" else []))
        ),
        *(({name: dict.fromkeys("abcde", 1)}, f"{name} have different") for name in ("scores", "groups", "vectors")),
        ({"aspects": ["the cat"]}, "'mmr'|aspects|pm2, xquad"),
        ({"method": "xquad"}, "'xquad'|aspects="),
        *(
            ({"method": method, "aspects": bad}, "5 passages|texts")
            for method in ("xquad", "pm2")
            for bad in (np.ones((4, 2)), np.ones(5), "the cat", 3)
        ),
    ],
)
def test_refuses_what_does_not_fit(arguments, parts):
    given = {"query": "cat", "passages": PASSAGES, "scores": SCORED} | arguments
    refuses(lambda: rerank(**given), ParameterError, parts, "|")


HEAVY = {"jnius", "pandas", "sklearn", "nltk", "matplotlib"}


@pytest.mark.parametrize(
    ("options", "unused"),
    [("vectors=[[1.0, 0.0], [0.6, 0.8]]", HEAVY | {"numba", "scipy", "joblib", "pydantic"}), ("", HEAVY)],
)
def test_the_first_call_loads_little(options, unused):
    code = (
        f"import sys; from greylag import rerank; rerank('cats', ['running cats', 'dogs'], [1, 2], {options}); "
        "print(*sys.modules)"
    )
    loaded = python("-c", code, check=True).stdout.split()
    assert "greylag.passages.reranking" in loaded
    assert not unused & set(loaded)


def test_nltk_is_whole_after_its_stemmer_was_loaded():
    code = (
        "from greylag.index.analysis import analyze; print(analyze('running')); import nltk; "
        "from nltk.stem import porter; print(nltk.stem.PorterStemmer().stem('running'), porter.__name__)"
    )
    found = python("-c", code, check=True).stdout
    assert found == "['run']\nrun nltk.stem.porter\n"


def test_no_more_than_k_are_picked(monkeypatch):
    refuses(lambda: Reranker("mmr", k=3), ParameterError, "k=3|'mmr(k=3)'", "|")
    refuses(lambda: Reranker("mmr>>near-duplicates", k=3), ParameterError, "'mmr>>near-duplicates'|'mmr(k=3)'", "|")
    picked = []
    add = MarginalRelevance.add
    monkeypatch.setattr(MarginalRelevance, "add", lambda gain, pick: (picked.append(pick), add(gain, pick))[1])
    assert [new.position for new in rerank("cat", PASSAGES, SCORED, vectors=ROWS, k=2)] == picked
    assert len(picked) == 2
    for method in ("mmr", "msd", "dpp"):
        every = [new.position for new in rerank("cat", PASSAGES, SCORED, method=method, vectors=ROWS)]
        few = rerank("cat", PASSAGES, SCORED, method=method, vectors=ROWS, k=2)
        assert [new.position for new in few] == every[:2]
        assert rerank("cat", PASSAGES, SCORED, method=method, k=9) == rerank("cat", PASSAGES, SCORED, method=method)


def test_few_of_a_group():
    groups = ["a", "a", "a", "b", None]
    found = rerank("cat", PASSAGES, SCORED, method="group-limit", groups=groups, max_per_group=2)
    assert [new.position for new in found] == [0, 1, 3, 4, 2]
    by_mmr = [new.position for new in rerank("cat", PASSAGES, SCORED, vectors=ROWS)]
    allowed = [place for place in by_mmr if groups[place] != "a"]
    first = next(place for place in by_mmr if groups[place] == "a")
    expected = sorted([first, *allowed], key=by_mmr.index)
    capped = rerank("cat", PASSAGES, SCORED, method="mmr>>group-limit", vectors=ROWS, groups=groups, k=3)
    assert [new.position for new in capped] == expected  # the cap does not end what MMR picks


def test_a_reranker_is_made_once_and_serves_all_queries():
    reranker = Reranker("mmr", relevance_weight=0.5)
    spelt = Reranker("mmr(relevance_weight=0.5)")
    for query, passages, scores in (("cat", PASSAGES, SCORED), ("dog", PASSAGES[::-1], [1, 2, 3, 3, 1])):
        expected = rerank(query, passages, scores, relevance_weight=0.5)
        assert reranker.rank(query, passages, scores) == spelt.rank(query, passages, scores) == expected
    assert repr(reranker) == "Reranker('mmr')"
    for wrong in ({"method": "mmrr"}, {"method": "mmr", "lambda_mult": 0.5}, {"method": "mmr(k=0)"}):
        with pytest.raises(ParameterError):
            Reranker(**wrong)


def test_vectors_by_a_function_of_texts():
    by_text = dict(zip(PASSAGES, ROWS, strict=True))

    def encode(texts):
        return [by_text[text] for text in texts]

    for options in ({"method": "mmr"}, {"method": "manifold", "query_vector": lambda query: ROWS[len(query)]}):
        found = rerank("cat", PASSAGES[::-1], SCORED, vectors=encode, **options)
        given = dict(options, query_vector=ROWS[3]) if "query_vector" in options else options
        assert found == rerank("cat", PASSAGES[::-1], SCORED, vectors=ROWS[::-1], **given)


WORDS = [f"{first} {last}" for first in ("heat", "geese", "wing", "cat", "bound") for last in ("flow", "sat", "layer")]
TEXTS = {f"d{n}": text for n, text in enumerate(WORDS)}


def by_bm25(index, query, docids):
    """The documents by BM25, ranked."""
    flat = Ranking("q", query, docids, np.zeros(len(docids)))
    return flat.rescore(FeatureExtractor(index, parse_features("FI/term/BM25"))(flat)[:, 0])


def placed(ranked):
    return [(new.position, new.score) for new in ranked]


@pytest.mark.parametrize("scores", [None, SCORED])
def test_statistics_are_those_of_the_background_and_the_passages(scores, monkeypatch):
    """By the general model over one index of all texts, a latent basis of the first."""
    query, background = "cat flow dog", PositionalIndex.from_texts(TEXTS)
    found = Reranker("general", background=background).rank(query, PASSAGES, scores)
    # The decomposition is the background's, by which the index of both is decomposed here.
    docids = tuple(f"passage {n}" for n in range(len(PASSAGES)))
    both = PositionalIndex.from_texts(TEXTS | dict(zip(docids, PASSAGES, strict=True)))
    places, right = latent.decomposed(background)
    of_both = np.full(both.n_terms, -1)
    of_both[both.term_numbers(background.terms_of(np.arange(background.n_terms)))] = places
    monkeypatch.setattr(latent, "decomposed", lambda index: (of_both, right))
    first = by_bm25(both, query, docids) if scores is None else Ranking.sort("q", query, docids, scores)
    expected = GeneralRanker(both)(first)
    assert [docids[new.position] for new in found] == [*expected.docids]
    np.testing.assert_allclose([new.score for new in found], expected.scores, atol=1e-12)


def test_without_background_documents_without_the_words_are_supposed():
    found = rerank("cat flow dog", PASSAGES)
    assert found == rerank("cat flow dog", PASSAGES, method="general")
    expected = GeneralRanker(PADDED)(by_bm25(PADDED, "cat flow dog", RANKING.docids))
    assert placed(found) == [(int(docid), score) for docid, score in expected]
    assert [new.position for new in rerank("cat", PASSAGES, method="mmr", relevance_weight=1.0)][:2] == [0, 1]


def test_lone_surrogates_belong_to_no_word(tmp_path):
    background = lucene_index(tmp_path, {"d": "the cat sat", "e": "a dog ran"}, "en")
    for reranker in (Reranker("mmr"), Reranker("mmr", background=background)):
        assert placed(reranker.rank("\ud800 cat", ["x \udfff y", "cat"])) == placed(
            reranker.rank("cat", ["x y", "cat"])
        )


def test_a_background_of_another_language_is_refused(tmp_path):
    background = PositionalIndex.from_texts({"d": "Le chat"}, language="whitespace")
    assert [new.position for new in Reranker("general", background=background).rank("cat", PASSAGES)][:1] == [0]
    french = lucene_index(tmp_path, {"d": "Le chat"}, "fr")
    with pytest.raises(ParameterError, match=r"background's language is 'fr'.*from_texts"):
        Reranker("general", background=french)


@pytest.mark.parametrize("language", ["en", "whitespace"])
def test_passages_are_analysed_as_a_background_of_lucene_was(tmp_path, language):
    index = index_beside(lucene_index(tmp_path, TEXTS, language), {"p": "The Cats sat, heated."})
    alike = index_beside(PositionalIndex.from_texts(TEXTS, language=language), {"p": "The Cats sat, heated."})
    assert index.terms_of(np.arange(index.n_terms)) == alike.terms_of(np.arange(alike.n_terms))
    last = len(TEXTS)
    assert index.token_stream(last)[0].tolist() == alike.token_stream(last)[0].tolist()


def lucene_index(folder, texts, language):
    docs = folder / "docs.jsonl"
    docs.write_text("".join(json.dumps({"id": docid, "contents": text}) + "\n" for docid, text in texts.items()))
    build_index(docs, folder / "index", language=language)
    return PositionalIndex.from_lucene(folder / "index")
