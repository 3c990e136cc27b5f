"""Window counts, beside the slow and obvious version of their definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from greylag.features.cliques import ABSENT, cliques, distinct_cliques
from greylag.features.spec import UNLIMITED, Window
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.index.positional import PositionalIndex

WIDTHS = (1, 2, 4, 8, 16, 32)
WINDOWS_PER_PROFILE = 100_000


def ordered_matches(document: list[str | None], clique: tuple[str, ...], width: int) -> list[tuple[int, int]]:
    """#M: from every occurrence of the first term, each next term at its first occurrence after the previous one."""
    found = []
    for begin, word in enumerate(document):
        if word != clique[0]:
            continue
        end = begin + 1
        for term in clique[1:]:
            later = [p for p in range(end, len(document)) if document[p] == term]
            if not later or later[0] - end + 1 > width:
                break
            end = later[0] + 1
        else:
            found.append((begin, end))
    return found


def unordered_matches(document: list[str | None], clique: tuple[str, ...], width: int) -> list[tuple[int, int]]:
    """#uw: from every occurrence of any term, the shortest stretch that holds them all, if it is short enough."""
    found = []
    for begin, word in enumerate(document):
        if word not in clique:
            continue
        for end in range(begin + 1, len(document) + 1):
            stretch = document[begin:end]
            if all(stretch.count(term) >= clique.count(term) for term in clique):
                if width == UNLIMITED or end - begin <= width * len(clique):
                    found.append((begin, end))
                break
    return found


def count(matches: list[tuple[int, int]], profile: str) -> int:
    if profile == "galago":
        return len(matches)
    total, free = 0, 0
    for begin, end in sorted(matches):
        if begin >= free:
            total, free = total + 1, end
    return total


def random_documents(rng: np.random.Generator, number: int) -> list[list[str | None]]:
    """Short documents over few words, with holes, so that windows overlap, repeat and fail in every way."""
    words: list[str | None] = ["cat", "cow", "dog", "pig", None]
    return [[words[i] for i in rng.integers(len(words), size=rng.integers(0, 40))] for _ in range(number)]


def as_text(document: list[str | None]) -> str:
    return " ".join("the" if word is None else word for word in document)


def counted(index: PositionalIndex, clique: tuple[str, ...], order: str, profile: str) -> tuple[list[int], list[int]]:
    """cf and df of a clique for every width, by the package."""
    widths = WIDTHS if order == "O" else (*WIDTHS, UNLIMITED)
    numbers = index.term_numbers(clique)[None, :]
    if order == "U":
        numbers = np.sort(numbers)
    windows = tuple(Window(order, width) for width in widths)  # type: ignore[arg-type]
    cf, df = WindowStatistics(index).counts(CliqueTable(order == "O", numbers, windows, profile == "galago"))
    return cf[0].tolist(), df[0].tolist()


@pytest.mark.parametrize("profile", ["indri", "galago"])
def test_counts_equal_the_definition(profile: str) -> None:
    rng = np.random.default_rng(20071106)
    checked = 0
    while checked < WINDOWS_PER_PROFILE:
        documents = random_documents(rng, 6)
        index = PositionalIndex.from_texts({str(i): as_text(document) for i, document in enumerate(documents)})
        for _ in range(4):
            clique = tuple(rng.choice(["cat", "cow", "dog", "pig"], size=rng.integers(1, 5)).tolist())
            for order, matches in (("O", ordered_matches), ("U", unordered_matches)):
                widths = WIDTHS if order == "O" else (*WIDTHS, UNLIMITED)
                tf = np.array([[count(matches(d, clique, width), profile) for width in widths] for d in documents])
                cf, df = counted(index, clique, order, profile)
                assert cf == tf.sum(axis=0).tolist(), (clique, order)
                assert df == (tf > 0).sum(axis=0).tolist(), (clique, order)
                checked += tf.size


@pytest.mark.parametrize(
    ("text", "clique", "order", "width", "indri", "galago"),
    [
        ("new york city", ("new", "york"), "O", 1, 1, 1),
        ("new big york", ("new", "york"), "O", 1, 0, 0),
        ("new big york", ("new", "york"), "O", 2, 1, 1),
        ("york new york", ("new", "york"), "U", 1, 1, 2),
        ("cat dog cat dog", ("cat", "dog"), "U", UNLIMITED, 2, 3),
        ("new jersey", ("new", "new"), "U", UNLIMITED, 0, 0),
        ("new york new jersey", ("new", "new"), "O", 2, 1, 1),
        ("bank of america", ("bank", "america"), "O", 1, 0, 0),
        ("bank of america", ("bank", "america"), "O", 2, 1, 1),
    ],
)
def test_examples_by_hand(text: str, clique: tuple[str, ...], order: str, width: int, indri: int, galago: int) -> None:
    index = PositionalIndex.from_texts({"1": text})
    terms = tuple(index.analyze(" ".join(clique)))
    place = ((*WIDTHS, UNLIMITED) if order == "U" else WIDTHS).index(width)
    assert counted(index, terms, order, "indri")[0][place] == indri
    assert counted(index, terms, order, "galago")[0][place] == galago


def test_cliques_of_new_york_city() -> None:
    def named(dependence: str, clique_set: str) -> set[tuple[str, ...]]:
        words = ["new", "york", "city"]
        return {tuple(words[i] for i in c) for c in cliques(3, dependence, clique_set)}  # type: ignore[arg-type]

    pairs = {("new", "york"), ("york", "city")}
    assert named("FI", "term") == {("new",), ("york",), ("city",)}
    assert named("FI", "ordered") == named("FI", "unordered") == set()
    assert named("SD", "ordered") == named("SD", "unordered") == pairs
    assert named("FD", "ordered") == pairs | {("new", "york", "city")}
    assert named("FD", "unordered") == pairs | {("new", "city"), ("new", "york", "city")}


@pytest.mark.parametrize("n", range(7))
@pytest.mark.parametrize("max_size", [2, 3, 9])
def test_clique_sets_nest(n: int, max_size: int) -> None:
    for dependence in ("SD", "FD"):
        ordered = cliques(n, dependence, "ordered", max_size)
        unordered = cliques(n, dependence, "unordered", max_size)
        assert set(ordered) <= set(unordered)
        assert len(set(unordered)) == len(unordered)
        assert all(2 <= len(clique) <= max_size for clique in unordered)
    if max_size >= n:
        assert len(cliques(n, "FD", "unordered", max_size)) == 2**n - n - 1


@pytest.mark.parametrize("ordered", [True, False])
def test_distinct_cliques_count_as_often_as_the_query_has_them(ordered: bool) -> None:
    sets = (("FI", "term"), ("SD", "ordered"), ("FD", "ordered"), ("FD", "unordered"))
    for terms in ([0, 1, 0], [0], [], [1, 1, 0, 2, 1], [0, 1, 2, 3]):
        rows, multiplicity = distinct_cliques(np.array(terms, dtype=np.int64), sets, 3, ordered=ordered)  # type: ignore[arg-type]
        found = [tuple(term for term in row if term != ABSENT) for row in rows.tolist()]
        assert len(set(found)) == len(found)
        for column, (dependence, clique_set) in enumerate(sets):
            named = [tuple(terms[i] for i in c) for c in cliques(len(terms), dependence, clique_set, 3)]  # type: ignore[arg-type]
            expected = Counter(c if ordered else tuple(sorted(c)) for c in named)
            assert {c: m for c, m in zip(found, multiplicity[:, column], strict=True) if m} == expected
