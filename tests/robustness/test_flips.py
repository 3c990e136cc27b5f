"""Bits that flip in the files of an index while sizes and times stay: found, or without consequence; never a crash.

Every fifth flip is in an index whose checksums are compared when it is opened, the others in one too large for that.
``python -m tests.robustness.test_flips FOLDER FIRST END`` tries flips in a process that may end by one, and prints each
before it is tried.
"""

import json
import logging
import random
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.base import GreylagError, Query, Ranking
from greylag.base.runtime.files import file_stamp
from greylag.features import parse_features, statistics
from greylag.features.extract import FeatureExtractor
from greylag.features.stage_registry import StageStep
from greylag.index import array_folder
from greylag.index.array_folder import Manifest
from greylag.index.expansion import RM3Search
from greylag.index.export import _arrays_of, _words_of
from greylag.index.lucene import open_index
from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.positional import PositionalIndex
from tests.processes import python
from tests.robustness.source import flip

COUNT = 500
DOCS = Path(greylag.__file__).parent / "demo" / "docs.jsonl"
TRUST = Path(greylag.__file__).parents[1] / "docs" / "reference" / "trust.md"
SIZES = {"alone": slice(80), "first": slice(50), "second": slice(50, 80)}
QUERIES = Query("1", "new york city green tea"), Query("2", "jaguar speed")
FEATURES = parse_features(
    "FI/term/LM,SD/ordered/LM-O-1,FD/unordered/BM25-U-8,FI/expansion/LM,written:words,written:characters"
)
LIMITS = (array_folder, "CHECKED_BYTES"), (open_index, "MAX_CHECKED_BYTES")
STAGES = [StageStep(name) for name in ("rm3", "mmr", "manifold", "general")]


def used(place, name):
    """What searches, features and stages give over the index that the file `name` belongs to."""
    parts = ["alone"] if name.startswith("alone") else ["first", "second"]
    with LuceneIndex([place / part for part in parts]) as lucene:
        index = PositionalIndex.from_lucene(lucene)
        sources = [lucene.bm25(12), lucene.ql(12), RM3Search(lucene.bm25(12)), index.bm25(12)]
        found = [source(query) for source in sources for query in QUERIES]
        docids = tuple(index.docids_of(np.arange(0, index.n_documents, 3)))
        rankings = [Ranking(q.qid, q.text, docids, np.arange(len(docids), 0.0, -1.0)) for q in QUERIES]
        found += [stage(ranking) for stage in (step.make(index) for step in STAGES) for ranking in rankings]
        some = range(0, index.n_documents, 9)
        arrays = [*map(FeatureExtractor(index, FEATURES), rankings), *(t for d in some for t in index.token_stream(d))]
        ranked = [(ranking.docids, ranking.scores.tolist()) for ranking in found]
        return repr((ranked, lucene.texts_of(some), [array.tobytes() for array in arrays]))


def seal(place):
    """Make the present sizes and times those that the exports know."""
    sources = [make(LuceneIndex(place / name)) for name in SIZES for make in (_arrays_of, _words_of)]
    files = {source.places[0].name: source.stamps() for source in sources}
    for path in place.glob("*.greylag/*/meta.json"):
        known = Manifest.parse(path.read_bytes())
        stamps = {name: list(file_stamp(path.with_name(f"{name}.npy"))) for name in known.stamps}
        path.write_text(replace(known, stamps=stamps, files=files.get(path.parent.parent.name, {})).seal())


def kind_of(file):
    """The file's name in the table of the page."""
    if len(file.parts) == 2:
        return f"Lucene {file.suffix or file.name.partition('_')[0]}"
    return f"{'merged' if '+' in file.parts[0] else 'words' if '.words.' in file.parts[0] else 'positions'} {file.name}"


def outcome(place, file, rng, expected, told):
    """What a flip leads to: "found", "same", "other", or an error that is none of greylag's."""
    try:
        flip(place / file, rng)
        if file.name != "meta.json":  # it has a checksum of its own
            seal(place)
        output = used(place, str(file))
    except GreylagError:
        return "found"
    except Exception as error:
        return repr(error)
    if output != expected:
        return "other"
    return "found" if any("damaged" in line for line in told) else "same"


def main(folder, first, end):
    statistics._MAX_UNSAVED_POSTINGS = 0  # or nothing would be stored of so few documents
    told, handler, logger = [], logging.Handler(logging.WARNING), logging.getLogger("greylag")
    handler.emit = lambda record: told.append(record.getMessage())
    logger.addHandler(handler)
    logger.propagate = False
    kept, place = folder / "kept", folder / "index"
    if not kept.exists():
        place.mkdir()
        lines = DOCS.read_text().splitlines(keepends=True)
        for name, part in SIZES.items():
            (folder / "docs.jsonl").write_text("".join(lines[part]))
            build_index(folder / "docs.jsonl", place / name)
        (folder / "expected").write_text(json.dumps({name: used(place, name) for name in ("alone", "first")}))
        shutil.copytree(place, kept)
    expected = json.loads((folder / "expected").read_text())
    # Those of the second shard are as those of the first.
    files = [file.relative_to(kept) for file in sorted(kept.glob("[!s]*/**/*")) if file.is_file()]
    files = [file for file in files if (kept / file).stat().st_size]
    limits = [(module, name, getattr(module, name)) for module, name in LIMITS]
    for number in range(first, end):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place)
        seal(place)
        told.clear()
        for module, name, limit in limits:
            setattr(module, name, 0 if number % 5 else limit)
        file = files[(number - number // 5 if number % 5 else number // 5) % len(files)]
        print(json.dumps([number, kind_of(file)]), flush=True)
        of_index = expected["alone" if str(file).startswith("alone") else "first"]
        print(json.dumps(outcome(place, file, random.Random(number), of_index, told)), flush=True)


def tried(folder, end):
    """The numbers of flips by whether checksums are compared, file and outcome; after a crash, the others go on."""
    counts, first = Counter(), 0
    while first < end:
        done = python("-m", "tests.robustness.test_flips", folder, first, end)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert lines, done.stderr
        outcomes = [*lines[1::2], *["crash"] * (len(lines) % 2)]
        for (number, kind), result in zip(lines[::2], outcomes, strict=True):
            counts[number % 5 == 0, kind, result] += 1
            first = number + 1
    return counts


@pytest.mark.long
def test_flipped_bits_end_in_one_line_or_change_nothing(tmp_path):
    counts = tried(tmp_path, COUNT)
    assert counts.total() == COUNT
    assert {result for _, _, result in counts} <= {"found", "same", "other"}
    slipped = {(is_compared, kind) for is_compared, kind, result in counts if result == "other"}
    assert not {kind for is_compared, kind in slipped if is_compared}
    page = TRUST.read_text()
    assert not [kind for _, kind in slipped if f"| `{kind}` |" not in page]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
