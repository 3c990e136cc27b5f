"""The contract of features. To test a new one, add it to `SPELLINGS` or `features`."""

import json

import numpy as np
import pytest

from greylag.base import Run
from greylag.base.core.registry import registered
from greylag.evaluation import write_run
from greylag.features.spelling import parse_feature
from greylag.testing import check_feature
from tests.greylag.diversity import samples

N = 15
INDEX = samples.index(1, N)
RANKINGS = [samples.ranking(seed, N, f"q{seed}") for seed in range(4)]
SPELLINGS = (
    "FI/term/LM FI/term/BM25 SD/ordered/LM-O-1 SD/unordered/BM25-U-8 FD/ordered/LM-O-4 FI/expansion/BM25 FI/term/early "
    "written:words written:characters latent neighbours score reciprocal-rank "
    "document:length document:entropy document:common prior:PRIOR prior:PRIOR:log:0.5 "
    "run:RUN fused:rrf(RUN) fused:combmnz(RUN,AGAIN) "
    "vectors:(documents=VECTORS,queries=QUERIES) stage:mmr(k=3) stage:manifold(depth=9) stage:rm3>>coverage "
    "score@minmax FI/term/LM@z run:RUN@rank"
).split()


def test_every_registered_kind_has_a_row():
    tested = {spelling.split("@")[0].partition(":")[0] for spelling in SPELLINGS}
    # A column is read from its file and not extracted; a Python function does what it likes.
    assert set(registered("feature")) - tested == {"column", "python"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files that spellings name, which lack some documents."""
    folder, rng = tmp_path_factory.mktemp("features"), np.random.default_rng(4)
    known = [f"d{number}" for number in range(N - 3)]
    (folder / "prior").write_text("".join(f"{docid} {rng.random()}\n" for docid in known))
    write_run(Run(tuple(ranking.select(rng.random(N) < 0.7) for ranking in RANKINGS), "other"), folder / "run")
    write_run(Run(tuple(ranking.head(9) for ranking in RANKINGS[1:]), "again"), folder / "again")
    for name, ids in (("documents", known), ("queries", [ranking.qid for ranking in RANKINGS])):
        rows = [json.dumps({"id": one, "vector": rng.random(3).tolist()}) for one in ids]
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    names = {"PRIOR": "prior", "RUN": "run", "AGAIN": "again", "VECTORS": "documents.jsonl", "QUERIES": "queries.jsonl"}
    return {word: str(folder / name) for word, name in names.items()}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_keeps_the_contract(spelling, files, caplog):
    for name, path in files.items():
        spelling = spelling.replace(name, path)
    check_feature(parse_feature(spelling), INDEX, RANKINGS)
