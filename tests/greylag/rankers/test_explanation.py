"""Explanations: contributions that add up to the score, and counts by definition."""

import numpy as np
import pytest

from greylag.base import ModelError, ParameterError, Ranking
from greylag.features.cliques import cliques
from greylag.features.evidence import Prior
from greylag.features.spec import EXPANSION, FeatureSpec, candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.rankers.explanation import CliqueShare, Explanation, FeatureShare, explain, explain_documents
from greylag.rankers.model import RankingModel
from greylag.rankers.stages import ModelRanker
from tests.greylag.features.oracle import as_text, count, ordered_matches, random_documents, unordered_matches
from tests.greylag.features.test_extract import BY_POSITION, CF, DF, WORDY_QUERIES
from tests.greylag.features.test_extract import DOCUMENTS as WORDY_TEXTS
from tests.greylag.features.test_extract import INDEX as WORDY
from tests.greylag.features.test_extract import ranked as wordy_ranking
from tests.refusals import refuses

DOCUMENTS = random_documents(np.random.default_rng(8), 15)
INDEX = PositionalIndex.from_texts({f"d{i}": as_text(document) for i, document in enumerate(DOCUMENTS)})
QUERIES = ["cat dog", "dog pig dog cow", "cat unicorn pig", "unicorn", "the of"]
DOCIDS = tuple(f"d{i}" for i in range(15))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "parameters",
    [
        FeatureParameters(),
        FeatureParameters(profile="galago", idf="robertson", mu=9.0),
        FeatureParameters(profile="inquery"),
    ],
)
def test_contributions_add_up_to_the_score(tmp_path, query, parameters):
    (tmp_path / "prior.tsv").write_text("d1 3\nd2 7\n")
    features = (*candidate_pool(), Prior(f"{tmp_path}/prior.tsv", "log"), *EXPANSION, *BY_POSITION)
    weights = tuple(np.random.default_rng(1).standard_normal(len(features)).tolist())
    model = RankingModel(features, weights, parameters)
    ranking = Ranking("q", query, DOCIDS, np.zeros(15))
    ranked = ModelRanker(model, INDEX)(ranking)
    scores = dict(zip(ranked.docids, ranked.scores, strict=True))
    for docid in ("d0", "d1", "d7"):
        found = explain(model, INDEX, ranking, docid)
        assert found.score == scores[docid]
        assert sum(share.contribution for share in found.features) == pytest.approx(found.score, abs=1e-9)
        assert [share.feature for share in found.features] == list(features)
        for share in found.features:
            assert share.contribution == pytest.approx(share.weight * share.value, abs=1e-12)
            if isinstance(share.feature, FeatureSpec):
                assert sum(c.contribution for c in share.cliques) == pytest.approx(share.contribution, abs=1e-9)


def test_counts_are_the_definitions():
    query = "dog cat dog pig"
    model = RankingModel(candidate_pool(), (1.0,) * 54)
    for d in (0, 3, 9):
        for share in explain(model, INDEX, Ranking("q", query, DOCIDS, np.zeros(15)), f"d{d}").features:
            spec = share.feature
            assert isinstance(spec, FeatureSpec)
            words = query.split()
            matches = ordered_matches if spec.window.order == "O" else unordered_matches
            expected = {}
            for places in cliques(len(words), spec.dependence, spec.cliques, 3):
                clique = tuple(words[place] for place in places)
                if spec.window.order == "U":
                    clique = tuple(sorted(clique))
                tf = [count(matches(document, clique, spec.window.width), "indri") for document in DOCUMENTS]
                before = expected.get(clique, [0])[0]
                expected[clique] = [before + 1, tf[d], sum(tf), sum(f > 0 for f in tf)]
            found = {
                tuple(c.terms if spec.window.order == "O" else sorted(map(str, c.terms))): [
                    c.multiplicity,
                    c.tf,
                    c.cf,
                    c.df,
                ]
                for c in share.cliques
            }
            assert found == expected, spec


@pytest.mark.parametrize("query", WORDY_QUERIES)
def test_expansions_show_their_terms(query):
    model = RankingModel((*EXPANSION, *parse_features("FI/term/LM")), (0.7, -1.2, 0.1), FeatureParameters(fb_terms=6))
    ranking = wordy_ranking(query)[0]
    for docid in ranking.docids[:4]:
        found = explain(model, WORDY, ranking, docid)
        assert sum(share.contribution for share in found.features) == pytest.approx(found.score, abs=1e-9)
        for share in found.features[:2]:
            assert len(share.cliques) == 6
            assert sum(clique.multiplicity for clique in share.cliques) == pytest.approx(1.0)
            for clique in share.cliques:
                (word,) = clique.terms
                assert (clique.tf, clique.cf, clique.df) == (
                    WORDY_TEXTS[int(docid[1:])].count(str(word)),
                    CF[word],
                    DF[word],
                )


def test_only_expansion_depends_on_other_documents():
    model = RankingModel(parse_features("FI/term/LM,SD/unordered/BM25-U-4"), (1.0, 2.0))
    whole = explain(model, INDEX, Ranking("q", "cat dog", DOCIDS, np.zeros(15)), "d3")
    assert explain(model, INDEX, Ranking("q", "cat dog", ("d3",), np.zeros(1)), "d3") == whole


def test_terms_that_the_collection_lacks():
    model = RankingModel(parse_features("FI/term/LM"), (1.0,))
    found = explain(model, INDEX, Ranking("q", "unicorn cat", ("d3",), np.zeros(1)), "d3")
    assert {clique.terms for clique in found.features[0].cliques} == {(None,), ("cat",)}


@pytest.mark.parametrize(
    ("docid", "fingerprint", "parts"),
    [("d2", "", "'d2' ranked q"), ("lost", "", "'lost' index"), ("d1", "0" * 64, "another collection")],
)
def test_refusals(docid, fingerprint, parts):
    model = RankingModel(parse_features("FI/term/LM"), (1.0,), fingerprint=fingerprint)
    with pytest.raises((ParameterError, ModelError)) as refused:
        explain(model, INDEX, Ranking("q", "cat", ("d1", "lost"), np.zeros(2)), docid)
    assert [part for part in parts.split() if part not in str(refused.value)] == []


def test_documents_are_a_list():
    model, ranking = RankingModel(parse_features("FI/term/LM"), (1.0,)), Ranking("q", "cat", DOCIDS, np.zeros(15))
    refuses(lambda: explain_documents(model, INDEX, ranking, "d1"), ParameterError, "docids 'd1' list")


def test_a_summary_has_the_largest_differences_first():
    """One of a hundredth of the largest is left out; cliques that do not occur are not named."""
    shares = [
        CliqueShare((term,), 1.0, tf, 1, 1, 1.0, contribution) for term, tf, contribution in (("a", 2, 1), ("b", 0, 9))
    ]
    names = parse_features("score,FI/term/LM,FI/term/early,FI/term/BM25,reciprocal-rank")
    found = Explanation(
        "q", "d", 0.0, tuple(
            FeatureShare(feature, 1.0, 1.0, contribution, tuple(shares) if feature == names[1] else ())
            for feature, contribution in zip(names, (1.5, 5.0, -2.0, 0.04, 0.041), strict=True)
        ),
    )  # fmt: skip
    average = (1.0, 1.0, 1.0, 0.0, 0.0)
    assert found.summary(average) == "+4 FI/term/LM (a); -3 FI/term/early; +0.5 score"
    assert found.summary(average, features=9).endswith("; +0.5 score; +0.041 reciprocal-rank")
