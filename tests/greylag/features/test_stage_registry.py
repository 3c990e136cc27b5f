"""The registry of stages: one of another package is used as greylag's own are, and what cannot be one is refused."""

# ruff: noqa: F401, F811  # of fixtures

import sys

import numpy as np
import pytest

from greylag.base import ParameterError, Ranking, Run
from greylag.base.core.registry import _installed, registered
from greylag.evaluation import read_run, write_run
from greylag.features import FeatureExtractor, PythonFeature, parse_features
from greylag.features.stage_registry import StageStep, find_stage, modules_of
from greylag.passages import rerank
from greylag.rankers import RankingModel
from greylag.recipes import choose_diversifier
from tests.greylag.cli.conftest import command, refused
from tests.greylag.diversity import samples
from tests.refusals import refuses

CODE = """
from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag import ParameterError, Ranking, Stage
from greylag.diversity import DiversityStage
from greylag.base.greedy import ModularGain


@dataclass(frozen=True)
class ByWord(Stage):
    word_weight: float = 1.0

    def __call__(self, ranking: Ranking) -> Ranking:
        return ranking.rescore([self.word_weight * (docid in ranking.query.split()) for docid in ranking.docids])


@dataclass(frozen=True)
class Middle(DiversityStage):
    strength = "mix"

    _: KW_ONLY
    mix: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.mix <= 1:
            raise ParameterError("mix is not in [0, 1]")

    def gain(self, candidates: Ranking) -> ModularGain:
        places = np.arange(float(len(candidates)))
        return ModularGain(-abs(places - (1 - self.mix) * len(candidates)))


@dataclass(frozen=True)
class Bare(Stage):
    by: object

    def __call__(self, ranking: Ranking) -> Ranking:
        return ranking


def function(ranking: Ranking) -> Ranking:
    return ranking
"""
NAMES = """[greylag.stages]
by-word = theirs:ByWord
middle = theirs:Middle
rocchio = theirs:Middle
bare = theirs:Bare
no-stage = theirs:function
not-there = theirs:Absent
no-module = absent_module:Stage
"""
FIRST = Run(tuple(samples.ranking(seed, 12, f"q{seed}") for seed in range(6)), "first")


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """The files that installing a distribution of stages leaves, in a folder of modules."""
    (tmp_path / "theirs-1.0.dist-info").mkdir()
    (tmp_path / "theirs-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (tmp_path / "theirs-1.0.dist-info" / "entry_points.txt").write_text(NAMES)
    (tmp_path / "theirs.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    _installed.cache_clear()
    registered.cache_clear()
    find_stage.cache_clear()
    yield tmp_path
    _installed.cache_clear()
    registered.cache_clear()
    find_stage.cache_clear()


def first_file(folder):
    write_run(FIRST, folder / "first.run")
    return ["rerank", "--run", folder / "first.run", "--out", folder / "out.run"]


def test_names_that_users_give_are_not_cited(theirs, command):
    """Neither a stage of theirs that has a method's name, nor a file or a function: rocchio, bm25.run, mmr."""
    features = parse_features("FI/term/LM,stage:rocchio,stage:rocchio>>manifold@z,run:x/bm25.run,fused:rrf(xquad)")
    model = RankingModel((*features, PythonFeature("mmr")), (1.0,) * 6)
    model.save(theirs / "model.json")
    code, out, _ = command("explain", theirs / "model.json")
    cited = [line for line in out.splitlines() if line.startswith("@")]
    assert [line.partition("{")[2].partition(",")[0] for line in cited] == ["zhai2004", "zhou2003", "cormack2009"]
    assert code == 0


def test_a_stage_that_reads_the_query_is_refused_without_topics(theirs, command, refused):
    """It would see empty queries, and rank wrongly without a word."""
    words = [*first_file(theirs), "--stage", "by-word"]
    assert "give --topics: by-word needs the queries' texts" in refused(*words)
    assert not (theirs / "out.run").exists()
    wanted = {ranking.qid: ranking.docids[-1] for ranking in FIRST.rankings}
    (theirs / "topics.tsv").write_text("".join(f"{qid}\tthe {docid}\n" for qid, docid in wanted.items()))
    assert command(*words, "--topics", theirs / "topics.tsv") == (0, "", "")
    assert {ranking.qid: ranking.docids[0] for ranking in read_run(theirs / "out.run").rankings} == wanted
    assert command(*first_file(theirs), "--stage", "middle(mix=0.25)") == (0, "", "")  # as does not read it


@pytest.mark.usefixtures("theirs")
def test_passages_features_and_the_choice_know_it(caplog):
    found = rerank("2", ["a", "b", "c"], [3, 2, 1], method="by-word")
    assert [passage.position for passage in found] == [2, 0, 1]
    ranking = Ranking("q", "d3 d5", ("d1", "d3", "d4", "d5"), np.arange(4.0, 0.0, -1.0))
    extract = FeatureExtractor(samples.index(1, 15), parse_features("stage:by-word(word_weight=2)"))
    assert extract(ranking)[:, 0].tolist() == [0, 2, 0, 2]
    qrels = {ranking.qid: samples.judgements(seed, 12) for seed, ranking in enumerate(FIRST.rankings)}
    choice = choose_diversifier(FIRST, qrels, index=samples.index(1, 15), folds=2)
    assert "middle" in choice.stages
    assert [line for line in caplog.messages if "cannot be imported: No module named 'absent_module'" in line]
    assert dict(choice.stages["middle"].options).keys() == {"mix"}
    assert len(choice.weights["middle"]) == 2


@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bare", "stage bare: by"),
        ("no-stage", "no-stage function greylag.Stage"),
        ("not-there", "not-there imported Absent"),
        ("no-module", "no-module imported absent_module"),
        ("theirs:Absent", "theirs:Absent imported Absent"),
    ],
)
def test_what_is_no_stage_is_refused(name, parts):
    refuses(lambda: StageStep.parse(name).make(None), ParameterError, parts)


def test_a_class_of_a_file_in_the_working_folder(tmp_path, monkeypatch, command, refused):
    (tmp_path / "in_folder.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    words = first_file(tmp_path)
    assert command(*words, "--stage", "in_folder:Middle(mix=0)") == (0, "", "")
    last = {ranking.qid: ranking.docids[-1] for ranking in FIRST.rankings}
    assert {ranking.qid: ranking.docids[0] for ranking in read_run(tmp_path / "out.run").rankings} == last
    assert "in_folder.py is the input" in "".join(
        refused(*words[:-1], tmp_path / "in_folder.py", "--stage", "in_folder:Middle").split("\n")
    )
    assert "in_folder:function is function" in refused(*words, "--stage", "in_folder:function")
    with pytest.raises(ParameterError, match="in_folder:Middle is not installed"):
        parse_features("stage:in_folder:Middle(mix=0)")


def test_only_files_are_placed_elsewhere():
    step = StageStep.parse("mrf(model=a.json,transfer=true)").place_files(lambda file: f"folder/{file}")
    assert str(step) == "mrf(model=folder/a.json,transfer=true)"


def test_a_folder_of_modules_is_on_the_path_only_while_a_named_one_is_imported(tmp_path):
    (tmp_path / "path_stage.py").write_text("import sys\nPATH = [*sys.path]\n" + CODE)
    before = [*sys.path]
    with modules_of(tmp_path):
        assert sys.path == before
        find_stage("path_stage:ByWord")
        assert sys.path == before
    seen = sys.modules["path_stage"].PATH
    assert seen[: len(before)] == before
    assert str(tmp_path) in seen[len(before) :]
