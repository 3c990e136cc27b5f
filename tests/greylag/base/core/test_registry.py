"""What another package registers is trained by, extracted and spelt as greylag's own; a broken package is one line."""

import numpy as np
import pytest
from tests.greylag.diversity import samples
from tests.refusals import refuses

from greylag.base import ParameterError, Run
from greylag.base.core.registry import _installed as entry_points
from greylag.base.core.registry import load_entry, registered
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_feature, parse_features
from greylag.learning import GreedySelection, Objective
from greylag.recipes import spelling, train
from greylag.recipes.spelling import spelt_learner
from greylag.testing import check_diversity_learner, check_feature, check_learner

CODE = '''
from dataclasses import KW_ONLY, dataclass
from types import SimpleNamespace
from greylag.features.evidence import Evidence
from greylag.learning import GreedySelection
import numpy as np

@dataclass(frozen=True)
class Longest(Evidence):
    form = "longest:{least}"
    reads_query = uses_ranking = needs_index = False
    least: str

    def bind(self, index):
        return lambda ranking: np.array([max(len(docid), int(self.least)) for docid in ranking.docids], dtype=float)

@dataclass(frozen=True)
class First(GreedySelection):
    """Adds the first features first."""

@dataclass(frozen=True)
class Counting:
    """Weigh what counts."""
    C: float = 1.0
    def fit(self, model, examples):
        return SimpleNamespace(weights=np.arange(float(examples[0][0].features.n_features)))

@dataclass(frozen=True)
class Deep(Counting):
    depth: int = 3

@dataclass(frozen=True)
class Clashing(GreedySelection):
    b: float = 0.5
'''
ENTRIES = """[greylag.features]
longest = theirs_too:Longest
wrong = theirs_too:Longest
[greylag.diversity_learners]
counting = theirs_too:Counting
deep = theirs_too:Deep
[greylag.learners]
first = theirs_too:First
clashing = theirs_too:Clashing
absent = no_such_module:Learner
none = theirs_too:CODE
twice = theirs_too:First
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    for name, text in (("theirs_too", ENTRIES), ("others", "[greylag.learners]\ntwice = others:Other\n")):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(text)
    (tmp_path / "theirs_too.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    entry_points.cache_clear()
    registered.cache_clear()
    names = ("first", "clashing", "absent", "none")
    theirs = {name: spelling._feature_model(name, "theirs") for name in names}
    theirs |= {name: spelling._diversifier(name) for name in ("counting", "deep")}
    monkeypatch.setattr(spelling, "MODEL_KINDS", {**spelling.MODEL_KINDS, **theirs})
    yield
    entry_points.cache_clear()
    registered.cache_clear()


def test_a_learner_of_another_package_trains():
    learner, preselection = spelt_learner("first", {"max_features": 2}, Objective.parse("nDCG@10"))
    assert preselection is None
    check_learner(learner)  # type: ignore[arg-type]
    parsed, _ = spelling.parse_model("first(max_features=2,mu=500)", "nDCG@10", pool="sd")
    assert parsed.learner == learner  # type: ignore[attr-defined]
    assert isinstance(learner, GreedySelection)
    assert type(learner).__name__ == "First"
    assert spelling.described("first") == "theirs (Adds the first features first)"
    assert spelling.described("clashing") == "theirs"  # the docstring is dataclass's own


def test_a_learner_of_diversity_of_another_package_trains():
    assert spelling.MODEL_KINDS["counting"].summary == "Weigh what counts"
    assert spelling.model_files("counting(titles=t.jsonl)") == ["t.jsonl"]
    parsed = spelling.parse_model("counting(C=2,k=3)").recipe
    check_diversity_learner(parsed.learner)
    first = Run(tuple(samples.ranking(seed, 9, f"q{seed}") for seed in range(4)))
    qrels = {f"q{seed}": samples.judgements(seed, 9) for seed in range(4)}
    learned = train(first, qrels, samples.index(1, 9), parsed, folds=2)
    assert learned.model.weights[0] == tuple(map(float, range(learned.model.features.n_features)))
    assert (str(learned.fitted), learned.held_out is None) == ("svmdiv on 4 queries: C 2", False)


def test_a_feature_of_another_package_is_parsed_and_extracted():
    ranking = samples.ranking(1, 6)
    feature = parse_feature("longest:3")
    check_feature(feature, samples.index(1, 15), [ranking])
    values = FeatureExtractor(None, parse_features("longest:3,longest:3@rank"))(ranking)
    assert np.array_equal(values, [[3.0, 0.5]] * 6)


@pytest.mark.parametrize(
    ("parse", "text", "parts"),
    [
        (parse_feature, "wrong:1", "wrong longest:"),
        (spelling.parse_model, "clashing", "clashing b"),
        (spelling.parse_model, "deep", "deep depth"),
        (lambda text: load_entry("learner", text), "absent", "absent No module"),
        (lambda text: load_entry("learner", text), "none", "none imported"),
        (lambda text: load_entry("learner", text), "twice", "others:Other, theirs_too:First"),
        (lambda text: load_entry("learner", text), "frist", "learner 'frist'"),
    ],
)
def test_a_broken_entry_point_is_one_line(parse, text, parts):
    refuses(lambda: parse(text), ParameterError, parts)
