"""Each rule of a submission, broken alone in a run that follows all of them."""

import gzip

import numpy as np
import pytest

from greylag.base import FormatError, ParameterError, Ranking, Run
from greylag.evaluation import write_run
from greylag.evaluation.scoring.submission import RULES, check_submission, known_documents
from tests.refusals import refuses

TOPICS = ["1", "2", "3"]
KNOWN = {f"d{number}".encode() for number in range(9)}


def in_index(docids):
    return docids & KNOWN


@pytest.fixture
def lines(tmp_path):
    """A run of three topics with four documents each, as greylag writes it."""
    docids = tuple(f"d{number}" for number in range(4))
    rankings = tuple(Ranking(qid, "", docids, np.zeros(4)) for qid in TOPICS)
    write_run(Run(rankings, "my-run_1.0"), tmp_path / "right.run")
    return (tmp_path / "right.run").read_text().splitlines()


def broken(path, lines, **options):
    path.write_text("\n".join(lines) + "\n")
    findings = check_submission(path, TOPICS, known=in_index, **options).findings
    assert [finding.rule for finding in findings] == list(RULES)
    return {finding.rule: (finding.broken, finding.detail) for finding in findings if finding.broken}


def test_what_greylag_writes_follows_all_rules(lines, tmp_path):
    assert broken(tmp_path / "run", lines) == {}
    from_0 = [" ".join([*row[:3], str(int(row[3]) - 1), *row[4:]]) for row in map(str.split, lines)]
    assert broken(tmp_path / "run", from_0) == {}
    apart = [*lines[::4], *lines[1::4], *lines[2::4], *lines[3::4]]
    assert broken(tmp_path / "run", apart) == {}
    with gzip.open(tmp_path / "run.gz", "wt") as file:
        file.write("\n".join(lines))
    assert not any(finding.broken for finding in check_submission(tmp_path / "run.gz", TOPICS).findings)


def put(line, column, text):
    """A change of a column of a line, both from 0."""

    def change(lines):
        row = lines[line].split()
        row[column] = text
        return [*lines[:line], " ".join(row), *lines[line + 1 :]]

    return change


@pytest.mark.parametrize(
    ("rule", "change", "place"),
    [
        ("format", lambda lines: [*lines, "1 Q0 d5 5"], "run:13: 4 columns"),
        ("format", lambda lines: [*lines, "1 Q0 d5 5 1 my-run_1.0\r1 Q0 d6 6 1 my-run_1.0"], "run:13: has a carriage"),
        ("format", lambda lines: ["# ir_metadata.start", *lines], "run:1: 2 columns instead of 6; leave comments out"),
        ("Q0", put(5, 1, "0"), "run:6: the second column is '0'"),
        ("tag", put(5, 5, "other"), "run:6: tag 'other' after 'my-run_1.0'"),
        ("tag", put(0, 5, "x" * 21), "run:1: tag 'xxx"),
        ("tag", put(11, 5, "a+b"), "run:12: tag 'a+b'"),
        ("topics", lambda lines: [*lines, "9 Q0 d1 1 1 my-run_1.0"], "run:13: topic '9'"),
        ("missing", lambda lines: lines[:8], "topic '3' has no document"),
        ("duplicates", put(7, 2, "d1"), "run:8: document 'd1' is there twice for topic '2'"),
        ("ranks", put(2, 3, "4"), "run:3: rank 4 after 2"),
        ("ranks", put(4, 3, "2"), "run:5: rank 2 at the head"),
        ("ranks", put(3, 3, "four"), "run:4: rank 'four' is not an integer"),
        ("scores", put(2, 4, "7"), "run:3: score 7 is higher"),
        ("scores", put(2, 4, "nan"), "run:3: score 'nan' is not a number"),
        ("scores", put(3, 4, "inf"), "run:4: score 'inf' is not a number"),
        ("documents", put(2, 2, "e7"), "document 'e7' is not known"),
    ],
)
def test_each_rule_alone(rule, change, place, lines, tmp_path):
    found = broken(tmp_path / "run", change(lines))
    assert rule in found
    assert place in found[rule][1]
    others = {"ranks"} if change(lines)[2].split()[3] == "4" or "rank 2" in place else set()
    assert found.keys() <= {rule} | others


@pytest.mark.parametrize(
    ("content", "unknown"),
    [
        ("d0\nd1\nd2\nd3\n", 0),
        ("d0\nd3\nd7\n", 2),
        ("1 0 d1 0\n2 0 d9 1\n", 0),
        ("1 0 D1 0\n", 4),
        ("query-id\tcorpus-id\tscore\n1\td2\t0\n", 0),
    ],
)
def test_documents_are_known_by_a_list_or_by_judgements_of_which_one_is_enough(content, unknown, lines, tmp_path):
    (tmp_path / "docids").write_text(content)
    (tmp_path / "run").write_text("\n".join(lines) + "\n")
    found = check_submission(tmp_path / "run", TOPICS, known=known_documents(tmp_path / "docids")).findings[-1]
    assert (found.rule, found.broken) == ("documents", unknown)


def test_every_fault_is_counted_once(lines, tmp_path):
    found = broken(tmp_path / "run", lines, depth=3)
    assert found == {"depth": (3, f"{tmp_path / 'run'}:4: topic '1' has more than 3 documents")}
    assert broken(tmp_path / "run", lines[:1])["missing"][0] == 2
    renamed = [line.replace(" d", " e") for line in lines]
    assert broken(tmp_path / "run", renamed)["documents"][0] == 4
    several = broken(tmp_path / "run", [line.replace("Q0", "1") for line in renamed])
    assert {rule: count for rule, (count, _) in several.items()} == {"Q0": 12, "documents": 4}


def test_what_is_no_run(tmp_path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"1 Q0 \0 1 1 x\n")
    for name, reason in (("empty", "is empty"), ("binary", "NUL byte"), ("nowhere", "cannot be read")):
        refuses(lambda name=name: check_submission(tmp_path / name, TOPICS), FormatError, reason, "|")
    refuses(lambda: check_submission(tmp_path / "empty", TOPICS, depth=0), ParameterError, "depth")
