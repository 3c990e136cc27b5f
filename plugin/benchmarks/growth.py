"""Time and memory of every step against the size of a collection: ``make bench-scale DOCUMENTS="100000"``.

The documents are made of sentences of real texts (`write_sentences`). Each step is a process of its own, so that its
memory is known. The resident memory includes files that are mapped, which the system may take back. What is compiled on
first use is compiled on a small collection before.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.generated import sentence_queries, sentences_of, write_sentences
from greylag.evaluation import read_run

N_QUERIES = 200
SMALL = 2_000
_BUILD = (
    "from pathlib import Path; from greylag.index.lucene import build_index; "
    "build_index(Path('docs.jsonl'), Path('index'), threads={jobs})"
)
_EXPORT = "from greylag import PositionalIndex; PositionalIndex.from_lucene('index')"
_OPEN = "from greylag import PositionalIndex; PositionalIndex.from_lucene('index').n_tokens"
_LATENT = (
    "from greylag import PositionalIndex; from greylag.index.vectors import LatentVectors; "
    "LatentVectors(PositionalIndex.from_lucene('index')).query('', 'a')"
)
_WORDS = "from greylag import PositionalIndex; PositionalIndex.from_lucene('index').words"
_SERVE = """
import time
from greylag import GeneralRanker, LuceneIndex, PositionalIndex, read_topics
lucene = LuceneIndex("index")
rankings = lucene.bm25(k=100).run(read_topics("topics.tsv")).rankings[:100]
stage, spent = GeneralRanker(PositionalIndex.from_lucene(lucene)), []
for ranking in rankings:
    start = time.thread_time()
    stage(ranking)
    spent.append(1e3 * (time.thread_time() - start))
print(f"first query {spent[0]:.1f} ms, the last fifty {sorted(spent[50:])[25]:.1f} in the median")
"""
_ASKED = ("--index", "index", "--topics", "topics.tsv")


class Spent(NamedTuple):
    """What a process took: seconds, CPU seconds, and the largest resident memory in bytes."""

    wall: float
    cpu: float
    memory: int


def main() -> None:
    """Print a table for each number of documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    demo = Path(str(files("greylag") / "demo" / "docs.jsonl"))
    parser.add_argument("documents", type=int, nargs="+", help="numbers of documents of about 50 words")
    parser.add_argument("--texts", type=Path, nargs="+", default=[demo], help="files with texts to make them of")
    parser.add_argument("--folder", type=Path, help="where to work; 1,200 bytes a document at the most are on the disk")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="threads")
    options = parser.parse_args()
    sentences = sentences_of(options.texts)
    for n_documents in (SMALL, *options.documents):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for name, spent, note in steps(Path(folder), n_documents, sentences, options.jobs):
                if n_documents != SMALL:
                    print(
                        f"{n_documents:>11,}  {name:36} {spent.wall:9.1f} s {spent.cpu:9.1f} CPU s"
                        f" {spent.memory / 1e6:9.0f} MB  {note}",
                        flush=True,
                    )


def steps(folder: Path, n_documents: int, sentences: Sequence[str], jobs: int) -> Iterator[tuple[str, Spent, str]]:
    """The steps from text to diversified rankings: what each is, what it took, and what to know about it."""
    write_sentences(folder / "docs.jsonl", n_documents, sentences)
    asked = sentence_queries(N_QUERIES, sentences)
    (folder / "topics.tsv").write_text("".join(f"{query.qid}\t{query.text}\n" for query in asked))
    text = f"text {_megabytes(folder / 'docs.jsonl')}"
    yield "index", _python(_BUILD.format(jobs=jobs), folder), f"{text}, index {_megabytes(folder / 'index')}"
    (folder / "docs.jsonl").unlink()
    yield "export", _python(_EXPORT, folder), f"export {_megabytes(folder / 'index.greylag')}"
    yield "open the export", _python(_OPEN, folder), ""
    spent = greylag_process(folder, "search", *_ASKED, "--out", "bm25.run", jobs=jobs)
    yield f"search, {N_QUERIES} queries x 1,000", spent, ""
    words = _python(_WORDS, folder)
    yield "words as they are written, first time", words, f"words {_megabytes(folder / 'index.words.greylag')}"
    latent = _python(_LATENT, folder)
    yield "latent semantics, first time", latent, f"export and vectors {_megabytes(folder / 'index.greylag')}"
    serving = _python(_SERVE, folder)
    yield "general model, 100 queries x 100, one thread", serving, (folder / "log").read_text().strip()
    general = "rerank", *_ASKED, "--run", "bm25.run", "--out", "general.run"
    yield f"rerank by the general model, {N_QUERIES} queries", greylag_process(folder, *general, jobs=jobs), ""
    _write_judgements(folder)
    features = "features", *_ASKED, "--run", "bm25.run", "--out", "features.npz", "--pool", "full"
    yield f"features, {N_QUERIES} queries, first time", greylag_process(folder, *features, jobs=jobs), ""
    (folder / "features.npz").unlink()
    yield f"features, {N_QUERIES} queries, again", greylag_process(folder, *features, jobs=jobs), ""
    learning = "--model", "mrf", "--run", "bm25.run", "--qrels", "qrels", "--out", "model.json", "--pool", "full"
    yield f"train, {N_QUERIES} queries", greylag_process(folder, "train", *_ASKED, *learning, jobs=jobs), ""
    ranking = "--run", "bm25.run", "--model", "model.json", "--out", "mrf.run"
    yield f"rerank, {N_QUERIES} queries", greylag_process(folder, "rerank", *_ASKED, *ranking, jobs=jobs), ""
    picking = "--run", "mrf.run", "--stage", "mmr(depth=1000,k=20)", "--out", "mmr.run"
    yield (
        f"diversify, {N_QUERIES} queries, 20 of 1,000",
        greylag_process(folder, "rerank", "--index", "index", *picking, jobs=jobs),
        "",
    )


def _write_judgements(folder: Path) -> None:
    """Judge some of the retrieved documents relevant, the more often the better their rank."""
    rng = np.random.default_rng(3)
    lines = []
    for qid, ranking in read_run(folder / "bm25.run").items():
        likely = rng.random(len(ranking)) < 0.5 / np.sqrt(1.0 + np.arange(len(ranking)))
        lines += [f"{qid} 0 {ranking.docids[place]} 1\n" for place in np.flatnonzero(likely).tolist()]
    (folder / "qrels").write_text("".join(lines))


def greylag_process(folder: Path, *arguments: str, jobs: int) -> Spent:
    """What a command of greylag takes."""
    return _run([sys.executable, "-m", "greylag", "--jobs", str(jobs), *arguments], folder)


def _python(code: str, folder: Path) -> Spent:
    return _run([sys.executable, "-c", code], folder)


_MEASURE = """
import os, subprocess, sys
_, status, usage = os.wait4(subprocess.Popen(sys.argv[2:], stdout=sys.stderr).pid, 0)
spent = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10
print(*spent, file=open(sys.argv[1], "w"))
"""
"""Runs a command from a small process: the memory of a process begins with that of the one it was started by."""


def _run(command: list[str], folder: Path) -> Spent:
    """Run a command, which must succeed."""
    log, spent = folder / "log", folder / "spent"
    start = time.perf_counter()
    with log.open("wb") as output:
        measured = [sys.executable, "-S", "-c", _MEASURE, spent.name, *command]
        subprocess.run(measured, cwd=folder, stderr=output, env=_environment(), check=True)
    code, cpu, memory = spent.read_text().split()
    if code != "0":
        sys.exit(f"{' '.join(command)}: exit code {code}\n{log.read_text()}")
    return Spent(time.perf_counter() - start, float(cpu), int(memory))


def _environment() -> dict[str, str]:
    """The environment of this process, whose relative search paths are those of this folder."""
    path = os.pathsep.join(os.path.abspath(part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part)
    return {**os.environ, **({"PYTHONPATH": path} if path else {})}


def _megabytes(path: Path) -> str:
    if path.is_file():
        return f"{path.stat().st_size / 1e6:,.0f} MB"
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return f"{size / 1e6:,.0f} MB"


if __name__ == "__main__":
    main()
