"""Features that are the scores of a stage."""

import numpy as np
import pytest

from greylag.base import FormatError, ModelError, ParameterError, Ranking
from greylag.diversity import MMR, Coverage, DiversityModel, SVMDiv
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_feature, parse_features
from greylag.features.stage_registry import StageStep
from greylag.features.stages import StageScore
from greylag.rankers import ManifoldRanker, ModelRanker, RankingModel, RM3Stage
from tests.greylag.diversity import samples
from tests.refusals import refuses

INDEX = samples.index(1, 15)
RANKING = samples.ranking(2, 15)


def values(text):
    return FeatureExtractor(INDEX, (parse_feature(text),))(RANKING)[:, 0]


def by_docid(ranking):
    scores = dict(zip(ranking.docids, ranking.scores.tolist(), strict=True))
    return [scores[docid] for docid in RANKING.docids]


def test_the_score_of_a_stage():
    stage = ManifoldRanker(INDEX, alpha=0.8, graph="full", depth=20)  # more than there are documents
    assert values("stage:manifold(depth=20,graph=full,alpha=0.8)").tolist() == by_docid(stage(RANKING))


def test_the_score_of_a_pipeline():
    first, second = MMR(INDEX, relevance_weight=0.3), ManifoldRanker(INDEX, depth=8)
    ranked = second(first(RANKING))
    expected = dict(zip(ranked.docids[:8], ranked.scores[:8].tolist(), strict=True))
    found = values("stage:mmr(relevance_weight=0.3)>>manifold(depth=8)").tolist()
    assert found == [expected.get(docid, min(expected.values())) for docid in RANKING.docids]


def test_features_share_the_stages_that_they_begin_with(monkeypatch):
    spelt = ("stage:rm3(k1=2.0)", "stage:rm3(k1=2.0)>>rm3", "stage:rm3(k1=2.0)>>rm3>>manifold(depth=8)")
    alone, called, rank = [values(text).tolist() for text in spelt], list[RM3Stage](), RM3Stage.__call__
    monkeypatch.setattr(RM3Stage, "__call__", lambda self, given: called.append(self) or rank(self, given))
    for order in (spelt, spelt[::-1]):
        called.clear()
        found = FeatureExtractor(INDEX, parse_features(",".join(order)))(RANKING)
        assert [found[:, order.index(text)].tolist() for text in spelt] == alone
        assert len(called) == 2


def test_the_marginal_gain_of_a_greedy_stage():
    gains = values("stage:coverage(depth=6)")
    order = np.argsort(-gains[:6], kind="stable")
    covered = set()
    for place in order:
        number = INDEX.documents([RANKING.docids[place]])
        words = set(INDEX.term_frequencies(number).indices.tolist())
        assert gains[place] == len(words - covered)
        covered |= words
    assert [RANKING.docids[i] for i in order] == list(Coverage(INDEX, depth=6, k=6)(RANKING).docids[:6])
    assert gains[6:].tolist() == [gains[:6].min()] * 9, "beyond the depth there is no value"
    assert values("stage:mmr(relevance_weight=1)").tolist() == pytest.approx(
        ((RANKING.scores - RANKING.scores.min()) / np.ptp(RANKING.scores)).tolist()
    )
    assert len(MMR(INDEX, depth=4).scored(Ranking("q", "", (), np.zeros(0)))) == 0


def test_stages_with_models(tmp_path):
    linear, diverse = tmp_path / "linear.json", tmp_path / "diverse.json"
    model = RankingModel(parse_features("FI/term/BM25,score"), (0.5, 2.0))
    model.save(linear)
    assert values(f"stage:mrf(model={linear})").tolist() == by_docid(ModelRanker(model, INDEX)(RANKING))
    samples.ENSEMBLE.save(diverse)
    second = SVMDiv(DiversityModel.load(diverse).members[1], INDEX)
    assert values(f"stage:svmdiv(model={diverse},member=2)").tolist() == by_docid(second.scored(RANKING))
    for wrong in ("0", "99", "1.5", "x"):
        refuses(lambda wrong=wrong: values(f"stage:svmdiv(model={diverse},member={wrong})"), ParameterError, wrong)
    refuses(lambda: values(f"stage:svmdiv(model={linear})"), ModelError, "linear.json diversity")


def test_options_that_are_files(tmp_path):
    judged = tmp_path / "judged qrels.txt"
    judged.write_text(f"{RANKING.qid} 0 {RANKING.docids[3]} 1\n")
    stage = ManifoldRanker(INDEX, feedback={RANKING.qid: {RANKING.docids[3]: 1}})
    assert values(f"stage:manifold(feedback={judged})").tolist() == by_docid(stage(RANKING))
    step = StageStep.parse(f"manifold(alpha=0.5,feedback={judged})")
    assert step.files() == [str(judged)]
    assert str(step.place_files(lambda file: "x")) == "manifold(alpha=0.5,feedback=x)"
    refuses(lambda: values("stage:manifold(feedback=absent.txt)"), FormatError, "absent.txt")


def test_one_spelling():
    for text in (
        "stage:manifold",
        "stage:mmr(depth=50,relevance_weight=0.25)",
        "stage:mrf(model=a/b.json,transfer=true)",
    ):
        assert str(StageScore.parse(text)) == text
    step = StageStep("mmr", (("relevance_weight", 0.5), ("depth", 50)))
    assert StageScore.parse("stage:mmr( relevance_weight = .5 , depth=50)") == StageScore((step,))
    assert StageScore.parse("stage:mmr()") == StageScore((StageStep("mmr"),))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("bert", "'bert' coverage,"),
        *((text, "form") for text in ("mmr(depth)", "mmr(depth=)", "mmr(depth=2", "", "mmr>>")),
        ("mmr(depth=2,depth=3)", "depth twice"),
        ("mmr(1=2)", "1=2 spelt"),
        ("mmr(relevance_weight=2)", "mmr(relevance_weight=2) in"),
        ("manifold(alhpa=0.5)", "manifold 'alhpa' alpha"),
        ("manifold(depth=1.5)", "depth '1.5' integer"),
        ("mmr(relevance_weight=high)", "relevance_weight 'high' number"),
        ("mmr(k=true)", "k 'true' integer"),
        ("mmr(index=x)", "mmr 'index' depth, k, min_relevance, vectors, latent, relevance_weight"),
        ("manifold(graph=ring)", "graph 'ring' knn"),
        ("rm3(fb_docs=" + "9" * 5000 + ")", "integer"),
        ("svmdiv(titles=x)", "model=FILE"),
        ("mrf", "model=FILE"),
    ],
)
def test_bad_stages(text, parts):
    refuses(lambda: values(f"stage:{text}"), ParameterError, parts)


def test_values_that_cannot_be_spelt():
    for value in ("a,b", "a\nb", " a", "", "0.5", "true", "a(b)", float("nan")):
        refuses(lambda value=value: StageStep("mrf", (("model", value),)), ParameterError, "spelt")
