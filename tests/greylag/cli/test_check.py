"""``greylag check``.

Tests `check`.
"""

import json
import re

import pytest

from greylag import read_run, write_run
from tests.greylag.cli.conftest import ON_BOTH_INDEXES


def topics_of(lines):
    """The topics of a run's lines, in their order."""
    return [*dict.fromkeys(line.split()[0] for line in lines)]


@ON_BOTH_INDEXES
def test_a_run_that_follows_the_rules_and_one_that_does_not(command, refused, made, collection, tmp_path):
    """BM25's run is right; one with an unknown document, and without a topic, is refused for both."""
    code, shown, _ = command("check", *collection, made / "bm25.run")
    assert (code, shown.count("\n"), shown.count("ok ")) == (0, 11, 10)
    wrong = tmp_path / "wrong.run"
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    first = lines[0].split()
    kept = [line for line in lines if line.split()[0] not in topics_of(lines)[-2:]]
    wrong.write_text("".join([lines[0].replace(f" {first[2]} ", " nowhere "), *kept[1:]]))
    code, shown, _ = command("check", *collection, wrong, made / "bm25.run")
    assert code == 2
    assert f"{wrong}: refused for missing, documents" in shown
    assert "'nowhere' is not known" in shown
    assert f"{made / 'bm25.run'}: follows the rules" in shown
    by_index = shown.splitlines()
    without = [qid for qid in topics_of(lines) if qid not in topics_of(kept)]
    content = json.loads(command("check", *collection, wrong, "--format", "json")[1])["runs"][str(wrong)]
    assert {of["rule"]: of["breaches"] for of in content["findings"] if of["breaches"]} == {
        "missing": [{"line": None, "reason": f"topic {qid!r} has no document"} for qid in without],
        "documents": [{"line": None, "reason": "document 'nowhere' is not known"}],
    }
    (tmp_path / "docids").write_text("".join({f"{line.split()[2]}\n" for line in lines}))
    code, shown, _ = command("check", *collection[2:], "--docids", tmp_path / "docids", wrong, made / "bm25.run")
    assert (code, shown.splitlines()) == (2, by_index)
    (tmp_path / "qids").write_text("".join(f"{qid}\n" for qid in topics_of(lines)))
    (tmp_path / "topics.csv").write_text("1,hello\n")
    (tmp_path / "broken.tsv").write_bytes(b"".join(b"%s\ta\xff\n" % qid.encode() for qid in topics_of(lines)))
    assert "--lenient" in refused("check", "--topics", tmp_path / "broken.tsv", made / "bm25.run")
    assert command("check", "--lenient", "--topics", tmp_path / "broken.tsv", made / "bm25.run")[0] == 0
    assert "topics.csv:1: " in refused("check", "--topics", tmp_path / "topics.csv", made / "bm25.run")
    code, shown, _ = command("check", "--topics", tmp_path / "qids", made / "bm25.run")
    assert (code, shown.count("ok ")) == (0, 9)
    code, shown, _ = command("check", "--topics", made / "topics.tsv", "--depth", 5, made / "bm25.run")
    assert (code, shown.splitlines()[-1]) == (2, f"{made / 'bm25.run'}: refused for depth")


def test_ties_that_turn_the_ranks_round_are_told_as_evaluate_does(command, tmp_path):
    """Where trec_eval's order of equal scores, as 32-bit numbers, is not that of the lines."""
    lines = [
        *("1 Q0 a 1 5 t", "1 Q0 b 2 5 t", "1 Q0 c 3 4 t"),
        *("2 Q0 c 1 5 t", "2 Q0 b 2 5 t", "2 Q0 d 3 4.00000001 t", "2 Q0 e 4 4 t"),
        *("3 Q0 b 1 1e39 t", "3 Q0 a 2 1e38 t"),
    ]
    (tmp_path / "topics.tsv").write_text("1\tx\n2\ty\n3\tz\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 c 1\n3 0 a 1\n")
    run, told = tmp_path / "a.run", "2 of 3 queries have ranks in another order than their scores"
    run.write_text("\n".join(lines) + "\n")
    code, shown, err = command("check", "--topics", tmp_path / "topics.tsv", run)
    assert (code, shown.splitlines()[-1], err.count("\n")) == (0, f"{run}: follows the rules", 1)
    assert f"{run}: {told}" in err
    run.write_text("\n".join([*lines[:-2], "3 Q0 b 1 2 t", "3 Q0 a 2 1 t"]) + "\n")
    code, shown, err = command("evaluate", "--qrels", tmp_path / "qrels", run, "-m", "RR", "--format", "json")
    assert (code, f"{run}: {told}" in err) == (0, True)
    by_query = json.loads(shown)["runs"][str(run)]["per_query"]
    assert {qid: of["RR"] for qid, of in by_query.items()} == {"1": 0.5, "2": 1.0, "3": 0.5}
    code, _, err = command("check", "--topics", tmp_path / "topics.tsv", run)
    assert f"{run}: {told}" in err
    write_run(read_run(run), run)
    assert command("check", "--topics", tmp_path / "topics.tsv", run)[2] == ""


def test_runs_after_one_that_cannot_be_read_are_checked(command, made, tmp_path):
    (tmp_path / "empty.run").write_text("")
    (tmp_path / "latin.run").write_bytes(b"1 Q0 \xe4 1 1 x\n")
    names = [tmp_path / "empty.run", made / "bm25.run", tmp_path / "latin.run"]
    code, shown, err = command("check", "--topics", made / "topics.tsv", *names)
    verdicts = [line.partition(": ")[2] for line in shown.splitlines() if re.match(r"/\S+: (refused|follows)", line)]
    assert verdicts == ["refused for file", "follows the rules", "refused for file"]
    assert f"refused file: {names[0]}: is empty" in shown
    assert (code, err.count("\n"), "2 of 3 runs" in err) == (2, 1, True)
    code, out, _ = command("check", "--topics", made / "topics.tsv", *names, "--format", "json")
    content = json.loads(out)
    assert (code, content["passed"], content["warnings"]) == (2, False, [])
    assert [run["refused_for"] for run in content["runs"].values()] == [["file"], [], ["file"]]
    assert content["runs"][str(names[0])]["error"].startswith(f"{names[0]}: is empty")
    right = content["runs"][str(names[1])]
    lines = [f"{'ok':7} {finding['rule']}: {finding['detail']}" for finding in right["findings"]]
    assert "\n".join(lines) in shown
    assert (right["passed"], right["tag"], right["ties_turned"]) == (True, "bm25", 0)


def test_what_several_runs_share_is_told(command, made, tmp_path):
    """Rankings under two names, a tag of two runs, a file given twice; and a run of other topics."""
    text, run, copy, other = (made / "bm25.run").read_text(), made / "bm25.run", tmp_path / "copy", tmp_path / "other"
    topics = ["check", "--topics", made / "topics.tsv", run]
    copy.write_text(text.replace(" bm25\n", " copy\n"))
    code, _, err = command(*topics, copy)
    assert (code, err.count("\n")) == (0, 1)
    assert f"{run} and {copy} are the same rankings" in err
    copy.write_text("".join(text.splitlines(keepends=True)[:-1]))
    code, _, err = command(*topics, copy, copy)
    assert (code, err.count("\n")) == (0, 2)
    assert f"{run}, {copy} have the same tag, bm25: give each run one of its own" in err
    assert f"{copy} is given 2 times, and counts once" in err
    told = json.loads(command(*topics, copy, copy, "--format", "json")[1])["warnings"]
    assert err.splitlines() == [f"greylag: warning: {one}" for one in told]
    other.write_text("".join(f"x{line}" for line in text.splitlines(keepends=True)))
    code, shown, err = command(*topics, other)
    assert (code, "no topic is among the topics: are both for the same task?" in shown) == (2, True)
    assert "1 of 2 runs would be refused" in err
    assert "the run would be refused" in command(*topics[:3], other)[2]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("RUN", "'--topics'"),
        ("RUN --topics nowhere", "nowhere"),
        ("RUN --topics TOPICS --index nowhere", "nowhere"),
        ("RUN --topics TOPICS --depth 0", "--depth"),
        ("RUN --topics TOPICS --docids TOPICS", "column"),
        ("RUN --topics TOPICS --docids QRELS --index INDEX", "--docids"),
    ],
)
def test_refusals(refused, words, reason):
    assert reason in refused(f"check {words}")
