"""Runs read and written a query at a time: as `read_run` and `write_run` do at once."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.errors import FormatError, GreylagError, ParameterError
from greylag.ranking import Query, Ranking, Run
from greylag.runtime import files
from greylag.trec import RunFile, open_run, read_run, streams, write_members, write_rankings, write_run
from tests.robustness.formats import FORMATS
from tests.robustness.mutations import mutate


def backwards(ranking: Ranking) -> Ranking:
    return ranking.permute(range(len(ranking))[::-1])


def text(n_queries: int, depth: int = 5) -> str:
    return "".join(
        f"q{q} Q0 d{q * 31 % 17}x{d} {d + 1} {(depth - d) / 7!r} bm25\n" for q in range(n_queries) for d in range(depth)
    )


def rankings(run: Run | RunFile) -> list[Ranking]:
    return list(run.rankings) if isinstance(run, Run) else [lines.ranking() for lines in run.rankings]


@pytest.fixture(params=[7, 64, 1 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The size of the blocks that files are read in."""
    monkeypatch.setattr(files, "_BLOCK", request.param)
    return int(request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("name", ["a.run", "a.run.gz"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_query_at_a_time(tmp_path: Path, name: str, end: str) -> None:
    path, content = tmp_path / name, (text(40).rstrip("\n") + end).encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    topics = {f"q{q}": f"text {q}" for q in range(50)}
    opened, whole = open_run(path, topics), read_run(path, topics)
    assert isinstance(opened, RunFile)
    assert (opened.tag, list(opened), len(opened)) == (whole.tag, list(whole), len(whole))
    assert rankings(opened) == list(whole.rankings)
    assert rankings(opened) == list(whole.rankings)  # again


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_any_file_is_read_or_refused_as_at_once(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng, path = random.Random(seed), tmp_path_factory.mktemp("run") / "a.run"
    sample = FORMATS["run"].make(rng)
    for content in (sample, *(mutate(rng, sample)[1] for _ in range(5))):
        path.write_bytes(content)
        for lenient in (False, True):
            assert outcome(path, lenient, whole=False) == outcome(path, lenient, whole=True)


@pytest.mark.parametrize(
    "content", [b"x" * 10**7, b"x" * 10**7 + b" Q0 d 1 1 t\n", b"1 " * 10**6, b"1 Q0 d 1" + b"1" * 10**7]
)
def test_long_words_are_read_in_linear_time(tmp_path: Path, content: bytes) -> None:
    """If the time were quadratic, it would be a day."""
    (tmp_path / "a.run").write_bytes(content)
    assert outcome(tmp_path / "a.run", lenient=False, whole=False) == outcome(
        tmp_path / "a.run", lenient=False, whole=True
    )


def outcome(path: Path, lenient: bool, *, whole: bool) -> object:
    try:
        if whole:
            return list(read_run(path, lenient=lenient).rankings)
        return rankings(open_run(path, lenient=lenient))
    except GreylagError as error:
        return str(error)


def test_a_topic_that_the_topics_lack_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(text(3))
    with pytest.raises(FormatError, match=r"a\.run:11: query 'q2' is not among the topics"):
        open_run(tmp_path / "a.run", {"q0": "", "q1": ""})


def test_a_file_that_grows_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, blocks = tmp_path / "a.run", streams._whole_lines
    path.write_text(text(3))

    def growing(path: Path) -> Iterator[bytes]:
        yield from blocks(path)
        with path.open("a") as file:
            file.write("last Q0 d 1 1 t\n")

    monkeypatch.setattr(streams, "_whole_lines", growing)
    with pytest.raises(FormatError, match="has changed while it was read"):
        open_run(path)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(text(3))
    opened = open_run(tmp_path / "a.run")
    (tmp_path / "a.run").write_text(text(3, depth=6))
    with pytest.raises(FormatError, match="has changed while it was read"):
        rankings(opened)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_file_is_that_of_write_run(tmp_path: Path, n_jobs: int) -> None:
    (tmp_path / "a.run").write_text(text(300))
    whole = read_run(tmp_path / "a.run")
    write_run(Run(tuple(map(backwards, whole.rankings)), "b"), tmp_path / "expected")
    write_rankings(backwards, open_run(tmp_path / "a.run"), tmp_path / "b", tag="b", n_jobs=n_jobs)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "expected").read_bytes()
    write_rankings(backwards, whole, tmp_path / "c", tag="b", n_jobs=n_jobs)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "expected").read_bytes()


def test_topics_are_ranked_by_a_source(tmp_path: Path) -> None:
    def words(query: Query) -> Ranking:
        found = query.text.split()
        return Ranking(query.qid, query.text, tuple(found), list(range(len(found), 0, -1)))  # type: ignore[arg-type]

    write_rankings(words, {"1": "a b", "2": "", "3": "c"}, tmp_path / "a.run", tag="words")
    assert (tmp_path / "a.run").read_text() == "1 Q0 a 1 2.0 words\n1 Q0 b 2 1.0 words\n3 Q0 c 1 1.0 words\n"
    with pytest.raises(ParameterError, match="run 'words' has no documents"):
        write_rankings(words, {"1": ""}, tmp_path / "b.run", tag="words")
    assert not (tmp_path / "b.run").exists()


def test_several_runs_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(text(9))
    paths = [tmp_path / "one", tmp_path / "two"]
    write_members(lambda ranking: (ranking, backwards(ranking)), open_run(tmp_path / "a.run"), paths, tag="m")
    whole = read_run(tmp_path / "a.run")
    for number, (path, member) in enumerate(zip(paths, (lambda r: r, backwards), strict=True), 1):
        write_run(Run(tuple(map(member, whole.rankings)), f"m-{number}"), tmp_path / "expected")
        assert path.read_bytes() == (tmp_path / "expected").read_bytes()


def test_memory_does_not_grow_with_the_number_of_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 1 << 14)

    def peak(n_queries: int) -> int:
        with (tmp_path / "a.run").open("w") as file:
            file.writelines(lines(n_queries))
        tracemalloc.start()
        write_rankings(backwards, open_run(tmp_path / "a.run"), tmp_path / "b.run", tag="b")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def lines(n_queries: int) -> Iterator[str]:
        return (f"q{q} Q0 d{d} {d + 1} {60 - d} bm25\n" for q in range(n_queries) for d in range(60))

    peak(10)
    assert peak(1200) < peak(400) + 300_000  # the file grows by 1.1 MB, and qids by 0.1 MB
