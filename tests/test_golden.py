"""What commands write on the demonstration collection, and small studies, compared with hashes kept in ``golden.json``.

A change of the code that is not meant to change results leaves the hashes as they are. To accept a change, and to say
in the commit which results it changed and why: ``GREYLAG_GOLDEN=write pytest tests/test_golden.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import greylag

HASHES = Path(__file__).with_name("golden.json")
WRITE = os.environ.get("GREYLAG_GOLDEN") == "write"
DEMO = Path(greylag.__file__).parent / "demo"
DIGITS = 9  # significant digits of numbers that count: more may depend on the processor
LEARN = "--index index --topics topics.tsv --qrels qrels.txt --run bm25.run"
DIVERSE = "--index index --topics topics.tsv --qrels qrels.subtopics.txt --run bm25.run"
COMMANDS = rf"""
index docs.jsonl --out index
search --index index --topics topics.tsv --out bm25.run
search --index index --topics topics.tsv --model ql(mu=500) --hits 50 --out ql.run
search --index index --topics topics.tsv --model bm25+rm3 --out rm3.run
features --index index --topics topics.tsv --qrels qrels.txt --run ql.run --pool full --features score@z --out full.txt
features --index index --topics topics.tsv --run ql.run --parameters profile=galago --features SD/ordered/LM-O-4,\
FI/expansion/LM,reciprocal-rank,run:bm25.run@rank,stage:manifold(alpha=0.8) --out some.txt
train {LEARN} --model bm25(k1=[0.6,1.2],b=[0.2,0.6]) --folds 3 --out-run tuned-bm25.run --out tuned-bm25.json
train {LEARN} --model rm3(k1=0.9,b=0.4,fb_docs=5,fb_terms=10) --out tuned-rm3.json
train {LEARN} --model sdm(mu=[100,1000]) --out tuned-sdm.json
train {LEARN} --model mrf --folds 3 --out-run held-out.run --out mrf.json
train {LEARN} --model coordinate-ascent --pool sd --measure nDCG@10 --out sd.json
rerank --index index --topics topics.tsv --run ql.run --model mrf.json --out mrf.run
rerank --index index --topics topics.tsv --run ql.run --model tuned-rm3.json --out tuned-rm3.run
rerank --index index --topics topics.tsv --run bm25.run --stage manifold(alpha=0.7) --out manifold.run
rerank --index index --topics topics.tsv --out general.run
fuse --run bm25.run --run ql.run --run rm3.run --out rrf.run
fuse --run bm25.run --run ql.run --method combsum --out combsum.run
train {DIVERSE} --model svmdiv(depth=30) --out svm.json
train {DIVERSE} --model cssvm(depth=30,M=3) --features score --out cssvm.json
rerank --index index --run bm25.run --stage mmr(k=10) --out mmr.run
rerank --index index --run bm25.run --topics topics.tsv --stage xquad(aspects=subtopics.tsv,k=10) --out xquad.run
rerank --index index --run bm25.run --topics topics.tsv --stage pm2(aspects=subtopics.tsv,k=10) --out pm2.run
rerank --index index --run bm25.run --stage essential-pages(k=10) --out essential.run
rerank --index index --run bm25.run --stage coverage(k=10) --out coverage.run
rerank --index index --run bm25.run --topics topics.tsv --stage svmdiv(depth=30,k=10,model=svm.json) --out svm.run
rerank --index index --run bm25.run --topics topics.tsv --stage cssvm(depth=30,k=10,model=cssvm.json) --members \
--out div.run
explain mrf.json --index index --topics topics.tsv --qid 1 --docid demo-013 --json > explained.json
evaluate --qrels qrels.txt bm25.run ql.run mrf.run held-out.run --baseline bm25.run -m AP -m nDCG@10 -m P@5 > scores.txt
evaluate --qrels qrels.txt mrf.run -m AP -m RR --per-query > queries.txt
evaluate --subtopics --qrels qrels.subtopics.txt bm25.run mmr.run xquad.run \
-m alpha-nDCG@10 -m ERR-IA@20 -m S-recall@5 > div.txt
"""
STUDIES = ["demo.svmdiv", "two_moons.manifold", "synthetic.svmdiv"]
VOLATILE = {"provenance", "key", "summary", "files"}  # keys whose values are not results
# Weights that hang on the last digits of scores, and so on NumPy's logarithm for the processor, with or without
# AVX-512. All else is compared: what was chosen, training scores, and what the ensemble ranks.
WITHOUT_WEIGHTS = {"sd.json", "cssvm.json"}
NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")


def digest(path: Path) -> str:
    """A hash of what a file says, its numbers rounded."""
    text = path.read_text()
    if path.suffix == ".json":
        ignored = VOLATILE | ({"weight", "weights"} if path.name in WITHOUT_WEIGHTS else set())
        text = json.dumps(_results(json.loads(text), ignored), sort_keys=True)
    rounded = NUMBER.sub(lambda match: f"{float(match[0]):.{DIGITS}g}", text)
    return hashlib.sha256(rounded.encode()).hexdigest()[:16]


def _results(value: Any, ignored: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _results(below, ignored) for key, below in value.items() if key not in ignored}
    return [_results(below, ignored) for below in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hash of each file that the commands and studies write."""
    folder = tmp_path_factory.mktemp("golden")
    given = {shutil.copy(path, folder) for path in DEMO.glob("*.*")}
    for line in filter(None, COMMANDS.replace("\\\n", "").split("\n")):
        words, _, out = line.partition(" > ")
        printed = run(words.split(), folder)
        if out:
            (folder / out).write_text(printed)
    for study in STUDIES:
        run(["experiment", study, "--out", folder / study], folder)
    files = [path for path in folder.glob("*.*") if path.is_file() and path not in map(Path, given)]
    scores = [folder / study / "finished.json" for study in STUDIES]
    return {path.relative_to(folder).as_posix(): digest(path) for path in sorted([*files, *scores])}


def run(words: list[object] | list[str], folder: Path) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "greylag", *map(str, words)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


def test_commands_and_studies_write_what_they_wrote(written: dict[str, str]) -> None:
    if WRITE:
        HASHES.write_text(json.dumps(written, indent=1) + "\n")
    assert written == json.loads(HASHES.read_text())


def test_a_changed_digit_changes_a_hash(tmp_path: Path) -> None:
    first, second = tmp_path / "first.run", tmp_path / "second.run"
    first.write_text("1 Q0 d1 1 0.123456789 t\n")
    second.write_text("1 Q0 d1 1 0.123456788 t\n")
    assert digest(first) != digest(second)
