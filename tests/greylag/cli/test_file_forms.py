"""Runs and judgements in files of every form, in the shell: the same output and the same files."""

import numpy as np
import pytest

from greylag import write_run
from tests.contracts.test_doors import ALONE, DOCIDS, JUDGEMENTS, RUNS, SUBTOPIC_JUDGEMENTS, VECTORS

RUN_FILES, QRELS_FILES = (
    {name: form for name, form in forms.items() if form.kind == "file"} for forms in (RUNS, JUDGEMENTS)
)
COMMANDS = {
    "evaluate": "evaluate {run} --qrels {qrels} -m AP -m RR --format tsv",
    "evaluate, the baseline": "evaluate other.run {run} --qrels {qrels} -m AP --baseline {run} --format json",
    "evaluate, both": "evaluate {run} other.run --qrels other.qrels --other-qrels {qrels} -m AP --format tsv",
    "fuse": "fuse --run {run} --run other.run --out {out}",
    "fuse, learned": "fuse --run a={run} --run b=other.run --qrels {qrels} --out {out}",
    "pool": "pool {run} other.run --depth 2 --qrels {qrels} --out {out}",
    "rerank": "rerank --run {run} --vectors vectors.npz --stage mmr --tag t --out {out}",
    "diversify": "diversify {run} --vectors vectors.npz --subtopics sub.qrels --method mmr --folds 3",
    "train": "train --run {run} --features run:other.run --qrels {qrels} --model listwise --out {out}",
}
SHELL_CELLS = [
    *((name, run, "TREC") for name in COMMANDS for run in RUN_FILES),
    *((name, "TREC", qrels) for name, line in COMMANDS.items() if "{qrels}" in line for qrels in QRELS_FILES),
]


@pytest.mark.parametrize(("name", "run", "qrels"), SHELL_CELLS, ids=map(" by ".join, SHELL_CELLS))
def test_a_file_in_the_shell(name, run, qrels, tmp_path, monkeypatch, command):
    """Files of one value, whatever their form, give the same output and the same file."""
    monkeypatch.chdir(tmp_path)
    write_run(ALONE, "other.run")
    JUDGEMENTS["TREC"].make(tmp_path).rename("other.qrels")
    SUBTOPIC_JUDGEMENTS["TREC"].make(tmp_path)
    np.savez("vectors.npz", ids=DOCIDS, vectors=VECTORS)
    results = []
    for number, forms in enumerate((("TREC", "TREC"), (run, qrels))):
        paths = (kind[form].make(tmp_path) for kind, form in zip((RUNS, JUDGEMENTS), forms, strict=True))
        for name_of_file, path in zip(("a.run", "a.qrels"), paths, strict=True):
            path.rename(name_of_file)
        out = tmp_path / f"out{number}"
        code, printed, logged = command(*COMMANDS[name].format(run="a.run", qrels="a.qrels", out=out).split())
        results.append((code, printed, out.read_text() if out.exists() else ""))
        assert code == 0, logged
    assert results[0] == results[1]
