"""Wrong calls of extractors, recipes and spellings are answered with what works."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from greylag.core.spelling import read_call
from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, parse_features
from greylag.features.feature import unique_features
from greylag.features.spelling import find_feature, parse_feature
from greylag.index import PositionalIndex
from greylag.learning import GreedySelection
from greylag.ranking import Ranking, Run
from greylag.recipes import MRFRecipe, cross_validate
from greylag.stages import StageStep

INDEX: Any = PositionalIndex.from_texts({"a": "cat", "b": "dog"})
FEATURES: Any = parse_features("FI/term/LM")
RUN: Any = Run((Ranking("1", "cat", ("a", "b"), np.zeros(2)),), "first")
LEARNER: Any = LogisticRegression()


def top_ten(ranking: Ranking) -> list[float]:
    return [0.0] * len(ranking)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: FeatureExtractor(FEATURES, INDEX), r"FeatureExtractor\(index, features\) needs a PositionalIndex"),
        (lambda: FeatureExtractor(INDEX, FEATURES)(RUN), r"for one query, not for Run.*write extractor\(run\[qid\]\)"),
        (lambda: MRFRecipe(FEATURES, LEARNER), "the learner is LogisticRegression.*EstimatorRanker"),
        (lambda: MRFRecipe(FEATURES, "pairlogit"), "the learner is str 'pairlogit'"),  # type: ignore[arg-type]
        (
            lambda: cross_validate(MRFRecipe(FEATURES, GreedySelection("AP")), RUN, INDEX, {}),  # type: ignore[arg-type]
            r"the call is cross_validate\(recipe, rankings, qrels, index\)",
        ),
        (lambda: unique_features([top_ten]), "function top_ten is not a feature: .*PythonFeature"),  # type: ignore[list-item]
        (lambda: StageStep.parse("rm3 >> mmr"), "several stages: give one --stage for each"),
        (lambda: parse_feature("lattent"), "did you mean latent.*the kinds are DEPENDENCE"),
        (lambda: parse_feature("scores"), "did you mean .*score"),
        (lambda: parse_feature("priorr:x"), "did you mean prior"),
        (lambda: parse_feature("pivotd:0.2"), "unknown feature 'pivotd:0.2': .*the kinds are"),
        (lambda: parse_feature("BM25"), "did you mean FI/term/BM25"),
    ],
)
def test_the_answer_is_what_works(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("mmr(help)", None),
        ("MMR(k=3)", "mmr(k=3)"),
        ("combsum(weights=0.3,0.7)", "combsum(weights=[0.3,0.7])"),
        ("rrf(weights=0.3,0.7,rank_constant=10)", "rrf(weights=[0.3,0.7],rank_constant=10)"),
    ],
)
def test_a_spelling_that_is_proposed_is_read(text: str, meant: str | None) -> None:
    with pytest.raises(ParameterError) as raised:
        read_call(text)
    assert str(raised.value).partition(": write ")[2] == (meant or "")
    if meant:
        read_call(meant)


def test_an_error_of_a_parser_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(text: str) -> None:
        raise ValueError("no such unit")

    monkeypatch.setattr(find_feature("written"), "parse", parse)
    with pytest.raises(
        ParameterError, match=r"'written:x': \S+written.WrittenForm.parse raised ValueError: no such unit"
    ):
        parse_feature("written:x")
