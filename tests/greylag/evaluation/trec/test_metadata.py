"""Comments in runs and judgements, and ir_metadata at the head of runs."""

import gzip

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greylag.base import Ranking, Run
from greylag.base.runtime.yaml_text import parse_yaml
from greylag.evaluation import read_qrels, read_run, read_subtopic_qrels, write_run
from greylag.evaluation.trec.runs import open_run

RUN = Run((Ranking("1", "", ("b", "a"), np.array([2.0, 1.0])),), "mine")
LINES = "1 Q0 b 1 2.0 mine\n1 Q0 a 2 1.0 mine\n"

texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, values, max_size=4))
def test_metadata_is_yaml_for_every_reader(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("runs") / "a.run.gz"
    write_run(RUN, path, metadata=content)
    with gzip.open(path, "rt", newline="\n") as file:
        start, *head, end = [line[2:] for line in file if line.startswith("# ")]
    assert (start, end) == ("ir_metadata.start\n", "ir_metadata.end\n")
    written = {"schema-version": 0.1, "run-version": 1.0, **content, "tag": "mine"}
    assert yaml.safe_load("".join(head)) == parse_yaml("".join(head).encode()) == written
    assert read_run(path)["1"].docids == ("b", "a")
    assert read_run(path).tag == open_run(path).tag == "mine"


def test_the_form_is_that_of_ir_metadata(tmp_path):
    """ir-metadata.org: between the lines ir_metadata.start and ir_metadata.end, YAML that begins with the versions."""
    write_run(RUN, tmp_path / "a.run", metadata={"actor": {"team": "geese"}})
    assert (tmp_path / "a.run").read_text() == (
        "# ir_metadata.start\n# schema-version: 0.1\n# run-version: 1.0\n# actor:\n#   team: geese\n# tag: mine\n"
        "# ir_metadata.end\n" + LINES
    )
    write_run(RUN, tmp_path / "b.run")
    assert (tmp_path / "b.run").read_text() == LINES


@pytest.mark.parametrize("head", ["#\n", "# of columns 6 4 5 6\n", "# 1 Q0 z 1 2 other\n", "\n#a\n\n", "\ufeff# b\r\n"])
def test_comments_are_left_out(tmp_path, head):
    (tmp_path / "a.run").write_text(head + LINES + "# the end\n")
    assert read_run(tmp_path / "a.run")["1"].docids == ("b", "a")
    assert list(open_run(tmp_path / "a.run")) == ["1"]
    (tmp_path / "qrels").write_text(head + "1 3 a 1\n#\n# judged by Ann\n#1 3 a 0\n1 3 b 0\n")
    assert read_qrels(tmp_path / "qrels") == {"1": {"a": 1, "b": 0}}
    assert read_subtopic_qrels(tmp_path / "qrels") == {"1": {"3": {"a": 1, "b": 0}}}
