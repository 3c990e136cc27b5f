from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from greylag import PositionalIndex, read_run
from greylag.cli.diversify import commands
from greylag.diversity import choose_diversifier, measure_crowding
from greylag.evaluation import evaluate_by_subtopic
from greylag.trec import read_aspects, read_subtopic_qrels
from tests.greylag.cli.conftest import DEMO, Command, Refused


def test_the_printed_command_applies_what_was_chosen(command: Command, made: Path, tmp_path: Path) -> None:
    run, qrels, aspects = tmp_path / "top.run", DEMO / "qrels.subtopics.txt", DEMO / "subtopics.tsv"
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    run.write_text("".join(line for line in lines if int(line.split()[3]) <= 40))
    words = [run, "--index", made / "index", "--subtopics", qrels, "--aspects", aspects]
    methods = ["--method", "mmr", "--method", "xquad"]
    code, out, err = command("--jobs", "2", "diversify", *words, *methods)
    assert (code, "milliseconds a query: mmr " in err) == (0, True)
    index, judged = PositionalIndex.from_lucene(made / "index"), read_subtopic_qrels(qrels)
    first = read_run(run)
    expected = choose_diversifier(
        first, judged, index=index, aspects=read_aspects(aspects), methods=["mmr", "xquad"], n_jobs=1
    )
    assert out.startswith(str(expected))
    last = shlex.split(out.splitlines()[-1])
    assert last[:2] == ["greylag", "rerank"]
    last[last.index("--out") + 1] = str(tmp_path / "chosen.run")
    assert command(*last[1:])[0] == 0
    chosen = read_run(tmp_path / "chosen.run")
    step = expected.stages[expected.best]
    stage = step.make(index, aspects=read_aspects(aspects))
    assert {qid: ranking.docids for qid, ranking in chosen.items()} == {
        qid: ranking.docids for qid, ranking in stage.run(first).items()
    }
    assert evaluate_by_subtopic(chosen, judged, ["alpha-nDCG@10"]).means[0] > expected.scores["none"].means[0]


def test_learned_diversity_is_printed_with_its_training(
    command: Command, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, qrels = made / "bm25.run", DEMO / "qrels.subtopics.txt"
    index, judged = PositionalIndex.from_lucene(made / "index"), read_subtopic_qrels(qrels)
    choice = choose_diversifier(read_run(run), judged, index=index, methods=["svmdiv"], folds=2)
    vars(choice)["best"] = "svmdiv"  # whether or not it is
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line)[1:] for line in commands(choice, run, qrels, [made / "index"], None, None)]
    assert [line[0] for line in lines] == ["train", "rerank"]
    assert [command(*line)[0] for line in lines] == [0, 0]
    assert list(read_run(tmp_path / lines[1][-1])) == list(read_run(run))


def test_crowding_without_judgements(command: Command, made: Path, tmp_path: Path) -> None:
    first, index = read_run(made / "bm25.run"), PositionalIndex.from_lucene(made / "index")
    code, out, _ = command("diversify", made / "bm25.run", "--index", made / "index")
    assert (code, out.startswith(str(measure_crowding(first, index=index)))) == (0, True)
    assert out.splitlines()[-1] == "Whether that is too crowded, only judgements can say: give --subtopics."
    docids = sorted({docid for ranking in first.values() for docid in ranking.docids})
    np.savez(tmp_path / "vectors.npz", ids=docids, vectors=np.ones((len(docids), 2)))
    code, out, _ = command("diversify", made / "bm25.run", "--vectors", tmp_path / "vectors.npz")
    assert (code, "1.000" in out) == (0, True)
    (tmp_path / "groups.jsonl").write_text("".join(f'{{"id": "{docid}", "group": "g"}}\n' for docid in docids))
    limit = ["--method", f"group-limit(groups={tmp_path / 'groups.jsonl'})"]
    assert "given groups has 1.000" in command("diversify", made / "bm25.run", "--index", made / "index", *limit)[1]


def test_what_is_missing(refused: Refused, made: Path) -> None:
    assert "give --index or --vectors" in refused("diversify", made / "bm25.run")
    assert "give --index or --vectors" in refused("diversify", made / "bm25.run", "--aspects", DEMO / "subtopics.tsv")
    words = ["--subtopics", DEMO / "qrels.subtopics.txt", "--aspects", DEMO / "subtopics.tsv"]
    assert "aspects that are texts are scored by BM25, which needs an index" in refused(
        "diversify", made / "bm25.run", *words
    )
    run, index = made / "bm25.run", ["--index", made / "index"]
    for words in (["--method", "mmr"], ["--aspects", DEMO / "subtopics.tsv"], ["-m", "S-recall@5"], ["--folds", 3]):
        assert re.search(r"--\w+ needs --subtopics: the judgements", refused("diversify", run, *index, *words))
    words = ["--subtopics", DEMO / "qrels.subtopics.txt", "--method", "xquad(scale=max)"]
    assert "--method xquad(scale=max) needs --aspects" in refused("diversify", run, *index, *words)
