"""The reader of whole blocks of runs against the strict one, which reads line by line."""

import logging
import random
import struct

import pytest

from greylag.base import FormatError, GreylagError
from greylag.base.runtime import files
from greylag.evaluation import read_run
from greylag.evaluation.reports.comparison import compare
from greylag.evaluation.trec import runs
from greylag.evaluation.trec.runs import open_run, run_tag
from greylag.evaluation.trec.scan import scan

NUMBERS = """0 -0 -0.0 +1.5 .5 5. . - 1e3 1E-3 1e 1e400 nan inf -inf 1_0 0x1 123456789012345 1234567890123456 0.1 1,5
12.345600128173828 0.30000000000000004 9007199254740993 4.35 1e22 1e23 1.7976931348623157e308 3.5e38 0.000000000000001
0.00000000000000000000000001 -17.25 --1 1- 2e-5 000000000000000000001 0000.00000000000000000000012""".split()
TOKENS = [
    b"", b"#1", b"x", b"-1", b"1.0", b"12345678901", "caf\u00e9".encode(), b"\xff", b"a" * 300, b"a\x0bb", b"a\x7fb",
]  # fmt: skip
TOKENS += ["\u00a0\u2028\x85".encode(), "\ufeff1".encode(), b"nul\0", b"more columns", b"a\x1cb"]


def random_file(rng):
    lines = []
    for query in range(rng.randint(1, 4)):
        score = rng.uniform(1, 100)
        for rank in range(1, rng.randint(2, 12)):
            score -= rng.choice([0, 0.1, rng.random()])
            text = f"{score:.{rng.choice([1, 6, 15, 17])}{rng.choice('gf')}}"
            lines.append([f"q{query}", "Q0", f"d{rng.choice([rank, rng.randint(1, 900)])}", str(rank), text, "tag"])
    if rng.random() < 0.2:
        rng.shuffle(lines)
    rows = [[token.encode() for token in line] for line in lines]
    for _ in range(rng.choice([0, 0, 1, 2])):
        row = rng.choice(rows)
        if rng.random() < 0.5:
            row[4] = rng.choice(NUMBERS).encode()
        else:
            row[rng.randrange(6)] = rng.choice(TOKENS)
    spaces = [b" "] * 30 + [b"\t", b"  ", b" \t"]
    ends = [b"\n"] * 300 + [b"\r\n", b"\n\n", b" \n", b"\n \n", b"\n# a comment\n", b"\r"]
    parts = [b"".join(token + rng.choice(spaces) for token in row[:-1]) + row[-1] + rng.choice(ends) for row in rows]
    text = b"".join(parts)
    return text.rstrip(b"\n") if rng.random() < 0.2 else text


def outcome(read, path, caplog, **options):
    """What reading gives, bit for bit, with the lines of the log."""
    caplog.clear()
    try:
        run = read(path, **options)
        found = (
            [(one.qid, one.docids, struct.pack(f"{len(one)}d", *one.scores.tolist())) for one in [*run.rankings]],
            run.tag,
        )
    except FormatError as error:
        found = str(error)
    return found, type(found), caplog.messages[:]


@pytest.mark.parametrize("block", [64, 1 << 20])
@pytest.mark.parametrize(("read", "options"), [(read_run, {}), (open_run, {}), (read_run, {"lenient": True})])
def test_both_readers_agree(tmp_path, monkeypatch, caplog, block, read, options):
    caplog.set_level(logging.INFO, "greylag")
    monkeypatch.setattr(files, "_BLOCK_BYTES", block)
    path, rng, used = tmp_path / "a.run", random.Random(block), []
    for _ in range(300):
        path.write_bytes(random_file(rng))
        found = []
        for scanned in (lambda block: used.append(scan(block)) or used[-1], lambda block: None):
            monkeypatch.setattr(runs, "scan", scanned)
            found.append(outcome(read, path, caplog, **options))
        assert found[0] == found[1], path.read_bytes()
    assert 50 < sum(one is not None for one in used) < len(used) - 50


def test_scores_are_those_that_float_reads():
    rng = random.Random(0)
    texts = [
        f"{rng.uniform(-1, 1) * 10 ** rng.randint(-12, 12):.{rng.randint(0, 20)}{rng.choice('fge')}}"
        for _ in range(5000)
    ]
    texts += [
        text for text in NUMBERS if text.strip("+-.0123456789eE") == "" and text not in {".", "-", "1e", "--1", "1-"}
    ]
    found = scan("".join(f"q Q0 d{n} 1 {text} t\n" for n, text in enumerate(texts)).encode())
    assert struct.pack(f"{len(texts)}d", *found.scores) == struct.pack(f"{len(texts)}d", *map(float, texts))
    assert found.docids == [f"d{n}" for n in range(len(texts))]


def judged(rng):
    return {f"q{q}": {f"d{rng.randint(1, 40)}": rng.randint(-1, 3) for _ in range(6)} for q in rng.sample(range(9), 5)}


def evaluated(named, qrels, measures):
    try:
        found = compare(named, qrels, measures)
    except GreylagError as error:
        return str(error)
    one = found.scores["a"]
    ranked = one.qids, one.missing, one.unjudged, one.empty, one.seen, found.unjudged, found.warnings
    return one.values.tolist(), ranked


@pytest.mark.parametrize("measures", [None, ["AP", "num_ret", "RBP", "Judged@10", "nDCG(judged_only=True)"], ["ERR"]])
def test_runs_are_scored_as_they_are_read(tmp_path, monkeypatch, measures):
    monkeypatch.setattr("greylag.evaluation.trec.runs.PART_DOCUMENTS", 30)
    path, rng, outcomes = tmp_path / "a.run", random.Random(0), []
    for number in range(60):
        lines = [
            [f"q{q} Q0 d{d} {r} {60 - r} a{'+training-topics' * (number % 7 == 0)}" for r, d in enumerate(documents, 1)]
            for q in rng.sample(range(9), rng.randint(1, 6))
            for documents in [rng.sample(range(60), rng.randint(1, 40))]
        ]
        flat = [line for of_query in lines for line in of_query]
        if number % 5 == 0:
            rng.shuffle(flat)
        path.write_text("\n".join(flat))
        qrels = judged(rng) if number % 9 else {"other": {"d1": 1}}
        twin = tmp_path / "b.run"
        twin.write_text(path.read_text())
        found = evaluated({"a": path, "b": twin}, qrels, measures)
        assert found == evaluated({"a": read_run(path), "b": read_run(twin)}, qrels, measures)
        outcomes.append(isinstance(found, str))
    assert 5 < sum(outcomes) < 50


def test_a_tag_is_read_from_one_line(tmp_path, monkeypatch):
    used = []
    monkeypatch.setattr(runs, "scan", used.append)
    path = tmp_path / "a.run"
    path.write_text("".join(f"q Q0 d{d} {d + 1} {1000 - d} t\n" for d in range(1000)))
    assert run_tag(path) == "t"
    assert not used
    read_run(path)
    assert b"".join(used) == path.read_bytes()
