"""What commands write on the demonstration collection, and small studies, compared with hashes in ``hashes.json``.

A change of the code that is not meant to change results leaves the hashes as they are. To accept a change, and to say
in the commit which results it changed and why: ``GREYLAG_GOLDEN=write pytest -m '' tests/golden``.
"""

import hashlib
import json
import os
import re
import shutil
from contextlib import chdir
from pathlib import Path

from tests.docs import DEMO
from tests.processes import run_here

HASHES = Path(__file__).with_name("hashes.json")
WRITE = os.environ.get("GREYLAG_GOLDEN") == "write"
DIGITS = 9  # significant digits of numbers that count: more may depend on the processor
LEARN = "--index index --topics topics.tsv --qrels qrels.txt --run bm25.run"
DIVERSE = "--index index --topics topics.tsv --qrels qrels.subtopics.txt --run bm25.run"
_LINES = rf"""
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
rerank --index index --run bm25.run --topics topics.tsv --stage cssvm(depth=30,k=10,model=cssvm.json) --out div.run
explain mrf.json --index index --topics topics.tsv --qid 1 --docid demo-013 --format json > explained.json
evaluate --qrels qrels.txt bm25.run ql.run mrf.run held-out.run --baseline bm25.run -m AP -m nDCG@10 -m P@5 > scores.txt
evaluate --qrels qrels.txt mrf.run -m AP -m RR --per-query > queries.txt
evaluate --subtopics --qrels qrels.subtopics.txt bm25.run mmr.run xquad.run \
-m alpha-nDCG@10 -m ERR-IA@20 -m S-recall@5 > div.txt
"""
COMMANDS = [line for line in _LINES.replace("\\\n", "").split("\n") if line]


def outputs(line):
    """The files that a command writes."""
    return re.findall(r"(?:--out|--out-run|>) (\S+)", line)


MADE_BY = {name: line for line in COMMANDS for name in outputs(line)}


class Writer:
    """Writes files into a folder, each with those that its command reads, once."""

    def __init__(self, folder):
        self.folder = folder
        for path in DEMO.glob("*.*"):
            shutil.copy(path, folder)

    def write(self, name):
        """The file, after its command has run."""
        if not (self.folder / name).exists():
            line = MADE_BY[name]
            for other in MADE_BY.keys() - outputs(line):
                if re.search(rf"(?<![\w.-]){re.escape(other)}(?![\w.-])", line):
                    self.write(other)
            words, _, out = line.partition(" > ")
            with chdir(self.folder):
                printed = run_here(*words.split())
            if out:
                (self.folder / out).write_text(printed)
        return self.folder / name


def check(name, path, command):
    """Compare a file with the hash that is kept under a name, or keep the hash."""
    found = digest(path)
    kept = json.loads(HASHES.read_text())
    if WRITE:
        kept[name] = found
        HASHES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    assert found == kept.get(name), f"{name} has changed, which is written by: greylag {command}; see {path}"


VOLATILE = {"provenance", "key", "read", "summary", "files"}  # keys whose values are not results
# Weights that hang on the last digits of scores, and so on NumPy's logarithm for the processor, with or without
# AVX-512. All else is compared: what was chosen, training scores, and what the ensemble ranks.
WITHOUT_WEIGHTS = {"sd.json", "cssvm.json"}
NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")


def digest(path):
    """A hash of what a file says, its numbers rounded."""
    text = path.read_text()
    if path.suffix == ".json":
        ignored = VOLATILE | ({"weight", "weights"} if path.name in WITHOUT_WEIGHTS else set())
        text = json.dumps(_results(json.loads(text), ignored), sort_keys=True)
    rounded = NUMBER.sub(lambda match: f"{float(match[0]):.{DIGITS}g}", text)
    return hashlib.sha256(rounded.encode()).hexdigest()[:16]


def _results(value, ignored):
    if isinstance(value, dict):
        return {key: _results(below, ignored) for key, below in value.items() if key not in ignored}
    return [_results(below, ignored) for below in value] if isinstance(value, list) else value
