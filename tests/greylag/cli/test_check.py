"""``greylag check``.

Tests `check`.
"""

import re

import pytest


def test_a_run_that_follows_the_rules_and_one_that_does_not(command, made, collection, tmp_path):
    """BM25's run is right; one with an unknown document, and without a topic, is refused for both."""
    code, shown, _ = command("check", *collection, made / "bm25.run")
    assert (code, shown.count("\n"), shown.count("ok ")) == (0, 11, 10)
    wrong = tmp_path / "wrong.run"
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    first = lines[0].split()
    kept = [line for line in lines if line.split()[0] != lines[-1].split()[0]]
    wrong.write_text("".join([lines[0].replace(f" {first[2]} ", " nowhere "), *kept[1:]]))
    code, shown, _ = command("check", *collection, wrong, made / "bm25.run")
    assert code == 2
    assert f"{wrong}: refused for missing, documents" in shown
    assert "'nowhere' is not known" in shown
    assert f"{made / 'bm25.run'}: follows the rules" in shown
    by_index = shown.splitlines()
    (tmp_path / "docids").write_text("".join({f"{line.split()[2]}\n" for line in lines}))
    code, shown, _ = command("check", *collection[2:], "--docids", tmp_path / "docids", wrong, made / "bm25.run")
    assert (code, shown.splitlines()) == (2, by_index)
    code, shown, _ = command("check", "--topics", made / "topics.tsv", "--depth", 5, made / "bm25.run")
    assert (code, shown.splitlines()[-1]) == (2, f"{made / 'bm25.run'}: refused for depth")


def test_runs_after_one_that_cannot_be_read_are_checked(command, made, tmp_path):
    (tmp_path / "empty.run").write_text("")
    (tmp_path / "latin.run").write_bytes(b"1 Q0 \xe4 1 1 x\n")
    names = [tmp_path / "empty.run", made / "bm25.run", tmp_path / "latin.run"]
    code, shown, err = command("check", "--topics", made / "topics.tsv", *names)
    verdicts = [line.partition(": ")[2] for line in shown.splitlines() if re.match(r"/\S+: (refused|follows)", line)]
    assert verdicts == ["refused for file", "follows the rules", "refused for file"]
    assert f"refused file: {names[0]}: is empty" in shown
    assert (code, err.count("\n"), "2 of 3 runs" in err) == (2, 1, True)


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
