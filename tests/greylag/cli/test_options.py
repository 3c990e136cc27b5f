import re

import pytest

from greylag.base import FormatError
from greylag.cli.fuse import METHODS
from greylag.cli.options import Shared
from greylag.cli.search import SEARCH_KINDS as SEARCHES
from greylag.recipes.spelling import MODEL_KINDS
from tests.refusals import refuses


def test_reading(tmp_path):
    topics, run, qrels = tmp_path / "t.tsv", tmp_path / "r.run", tmp_path / "q.txt"
    topics.write_text("1\ttea\n2\tcoffee\n")
    run.write_text("1 Q0 d1 1 2.0 x\n2 Q0 d2 1 1.0 x\n")
    qrels.write_text("2 0 d2 1\n")
    shared = Shared()
    assert [ranking.query for ranking in shared.run(run, topics).rankings] == ["tea", "coffee"]
    assert [ranking.query for ranking in shared.run(run).rankings] == ["", ""]
    assert shared.qrels(qrels, shared.run(run)) == {"2": {"d2": 1}}
    qrels.write_text("3 0 d2 1\n")
    refuses(lambda: shared.qrels(qrels, shared.run(run)), FormatError, "q.txt: ", "|")


@pytest.mark.parametrize(
    ("option", "kinds"), [("train --model", MODEL_KINDS), ("search --model", SEARCHES), ("fuse --method", METHODS)]
)
def test_what_may_be_spelt_is_listed(command, option, kinds):
    """Each model has a line, and each of its options one with default, type and meaning."""
    code, told, err = command(*option.split(), "help")
    assert (code, err) == (0, "")
    assert re.findall(r"^  (\S+)  +\S", told, re.MULTILINE) == list(kinds)
    for name in kinds:
        asked = [command(*option.split(), f"{name}(help)"), command(*option.split(), name, "--help")]
        assert asked[0] == asked[1]
        assert asked[0][::2] == (0, "")
        assert asked[0][1].startswith(f"{name}: ")


@pytest.mark.parametrize("name", MODEL_KINDS)
def test_every_option_of_a_model_is_described(command, name):
    _, told, _ = command("train", "--model", f"{name}(help)")
    options = re.findall(r"^  (\w+)=", told, re.MULTILINE)
    assert options == list(MODEL_KINDS[name].options)
    for option in MODEL_KINDS[name].options.values():
        kind, meaning = option.documented
        assert kind
        assert meaning.endswith("."), (name, option.name)


def test_defaults_are_shown(command):
    _, told, _ = command("train", "--model", "mrf(help)")
    assert re.search(r"^  mu=1000 +float > 0\. Dirichlet prior of LM, in tokens\.$", told, re.MULTILINE)
    _, told, _ = command("train", "--model", "ql(help)")
    assert re.search(r"^  mu=\[50,100,250,500,1000,2000,4000\]", told, re.MULTILINE)
