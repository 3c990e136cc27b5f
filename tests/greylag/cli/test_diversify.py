import shlex

import pytest

from greylag import PositionalIndex, read_run
from greylag.cli.diversify import commands
from greylag.evaluation import evaluate_by_subtopic, read_aspects, read_subtopic_qrels
from greylag.recipes import choose_diversifier
from tests.greylag.cli.conftest import DEMO, ON_BOTH_INDEXES


@ON_BOTH_INDEXES
def test_the_printed_command_applies_what_was_chosen(command, made, tmp_path):
    run, qrels, aspects = tmp_path / "top.run", DEMO / "qrels.subtopics.txt", DEMO / "subtopics.tsv"
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    run.write_text("".join(line for line in lines if int(line.split()[3]) <= 40))
    words = [run, "--index", made / "index", "--subtopics", qrels, "--aspects", aspects, "--jobs", 2]
    code, out, err = command("diversify", *words, "--method", "mmr", "--method", "xquad")
    assert (code, "milliseconds per query: mmr " in err) == (0, True)
    index, judged, first = PositionalIndex.from_lucene(made / "index"), read_subtopic_qrels(qrels), read_run(run)
    given = {"index": index, "aspects": read_aspects(aspects)}
    expected = choose_diversifier(first, judged, methods=["mmr", "xquad"], n_jobs=1, **given)
    assert out.startswith(str(expected))
    last = shlex.split(out.splitlines()[-1])
    assert last[:2] == ["greylag", "rerank"]
    last[last.index("--out") + 1] = str(tmp_path / "chosen.run")
    assert command(*last[1:])[0] == 0
    chosen = read_run(tmp_path / "chosen.run")
    stage = expected.stages[expected.best].make(index, aspects=given["aspects"])
    assert all(chosen[qid].docids == ranking.docids for qid, ranking in stage.run(first).items())
    assert evaluate_by_subtopic(chosen, judged, ["alpha-nDCG@10"]).means[0] > expected.scores["none"].means[0]


def test_learned_diversity_is_printed_with_its_training(command, made, few, tmp_path, monkeypatch):
    run, qrels = few[-1], DEMO / "qrels.subtopics.txt"
    index = PositionalIndex.from_lucene(made / "index")
    judged = {qid: by for qid, by in read_subtopic_qrels(qrels).items() if qid in read_run(run)}
    choice = choose_diversifier(read_run(run), judged, index=index, methods=["svmdiv"], folds=2)
    vars(choice)["best"] = "svmdiv"  # whether or not it is
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line)[1:] for line in commands(choice, run, qrels, [made / "index"], None, None)]
    assert [line[0] for line in lines] == ["train", "rerank"]
    assert [command(*line)[0] for line in lines] == [0, 0]
    assert list(read_run(tmp_path / lines[1][-1])) == list(read_run(run))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("diversify RUN --index INDEX", "--subtopics"),
        ("diversify RUN --subtopics SUBTOPICS", "--index, --vectors, or --aspects"),
        (f"diversify RUN --subtopics SUBTOPICS --aspects {DEMO / 'subtopics.tsv'}", "aspects that are texts"),
        (
            "diversify RUN --index INDEX --subtopics SUBTOPICS --method xquad(scale=max)",
            "xquad(scale=max) needs --aspects",
        ),
    ],
)
def test_refusals(refused, words, reason):
    assert reason in refused(words)
