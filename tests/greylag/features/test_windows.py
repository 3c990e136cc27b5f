"""Window counts, compared with a direct implementation of their definition."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from greylag.base import CollectionError, Ranking
from greylag.features import statistics
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import UNLIMITED, FeatureSpec, Window
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.index.analysis import analyze
from greylag.index.positional import PositionalIndex
from tests.greylag.features.oracle import as_text, count, ordered_matches, random_documents, unordered_matches
from tests.refusals import refuses

WIDTHS = (1, 2, 4, 8, 16, 32)
WINDOWS_PER_PROFILE = 30_000


def counted(index, clique, order, profile):
    """cf and df of a clique for every width, by the package."""
    widths = WIDTHS if order == "O" else (*WIDTHS, UNLIMITED)
    numbers = index.term_numbers(clique)[None, :]
    if order == "U":
        numbers = np.sort(numbers)
    windows = tuple(Window(order, width) for width in widths)
    cf, df = WindowStatistics(index).counts(CliqueTable(order == "O", numbers, windows, profile))[0]
    return cf[0].tolist(), df[0].tolist()


@pytest.mark.parametrize("profile", ["indri", "galago", "inquery"])
def test_counts_equal_the_definition(profile):
    rng = np.random.default_rng(20071106)
    checked = 0
    while checked < WINDOWS_PER_PROFILE:
        documents = random_documents(rng, 6)
        index = PositionalIndex.from_texts({str(i): as_text(document) for i, document in enumerate(documents)})
        for _ in range(4):
            clique = tuple(rng.choice(["cat", "cow", "dog", "pig"], size=rng.integers(1, 5)).tolist())
            for order, matches in (("O", ordered_matches), ("U", partial(unordered_matches, profile=profile))):
                widths = WIDTHS if order == "O" else (*WIDTHS, UNLIMITED)
                tf = np.array([[count(matches(d, clique, width), profile) for width in widths] for d in documents])
                cf, df = counted(index, clique, order, profile)
                assert cf == tf.sum(axis=0).tolist(), (clique, order)
                assert df == (tf > 0).sum(axis=0).tolist(), (clique, order)
                checked += tf.size


@pytest.mark.parametrize(
    ("text", "clique", "order", "width", "indri", "galago", "inquery"),
    [
        ("new york city", ("new", "york"), "O", 1, 1, 1, 1),
        ("new big york", ("new", "york"), "O", 1, 0, 0, 0),
        ("new big york", ("new", "york"), "O", 2, 1, 1, 1),
        ("york new york", ("new", "york"), "U", 1, 1, 2, 0),
        ("york new york", ("new", "york"), "U", 2, 1, 2, 1),
        ("new big york", ("new", "york"), "U", 2, 1, 1, 0),
        ("new big york city", ("new", "york", "city"), "U", 4, 1, 1, 1),
        ("cat dog cat dog", ("cat", "dog"), "U", UNLIMITED, 2, 3, 2),
        ("new jersey", ("new", "new"), "U", UNLIMITED, 0, 0, 0),
        ("new york new jersey", ("new", "new"), "O", 2, 1, 1, 1),
        ("bank of america", ("bank", "america"), "O", 1, 0, 0, 0),
        ("bank of america", ("bank", "america"), "O", 2, 1, 1, 1),
    ],
)
def test_examples_by_hand(text, clique, order, width, indri, galago, inquery):
    index = PositionalIndex.from_texts({"1": text})
    terms = tuple(index.analyze(" ".join(clique)))
    place = ((*WIDTHS, UNLIMITED) if order == "U" else WIDTHS).index(width)
    assert counted(index, terms, order, "indri")[0][place] == indri
    assert counted(index, terms, order, "galago")[0][place] == galago
    assert counted(index, terms, order, "inquery")[0][place] == inquery


@pytest.mark.parametrize("value", [-1, -(2**40), 10**6, 2**62])
@pytest.mark.parametrize("name", ["postings_offsets", "block_places"])
@pytest.mark.parametrize("spec", ["FI/term/LM", "SD/ordered/LM-O-4", "FD/unordered/BM25-U-8"])
def test_nothing_is_read_outside_damaged_arrays(name, value, spec):
    texts = {f"{n}": "new york city new york" if n % 2 else "york new city" for n in range(20)}
    shard = PositionalIndex.from_texts(texts).parts[0].shard
    array = getattr(shard, name).copy()
    array[-2] = value
    damaged = PositionalIndex.of_shard(replace(shard, **{name: array}), analyze)
    extract, ranking = (
        FeatureExtractor(damaged, (FeatureSpec.parse(spec),)),
        Ranking("1", "new york city", ("1", "2", "18"), np.zeros(3)),
    )
    refuses(lambda: extract(ranking), CollectionError, "damaged")


@pytest.mark.parametrize("value", [0, 2, 3, 255])
def test_postings_of_documents_that_cannot_be(value):
    index = PositionalIndex.from_texts({f"{n}": "new york" for n in range(3)})
    array = index.parts[0].shard.postings_docs.copy()  # 0 1 2 0 1 2
    array[1] = value
    damaged = PositionalIndex.of_shard(replace(index.parts[0].shard, postings_docs=array), analyze)
    table = CliqueTable(True, index.term_numbers(["new", "york"])[None], (Window("O", 1),), "indri")
    refuses(lambda: WindowStatistics(damaged).counts(table), CollectionError, "damaged")


def test_counts_of_a_collection_of_several_blocks():
    rng = np.random.default_rng(11)
    words = [f"w{i}x" for i in range(60)]
    drawn = rng.integers(60, size=(1000, 4))  # more than a block
    index = PositionalIndex.from_texts({f"{i}": " ".join(words[word] for word in row) for i, row in enumerate(drawn)})
    numbers = index.term_numbers(words)
    pairs = [(a, b) for a in range(60) for b in range(60) if a != b]
    table = CliqueTable(True, numbers[np.array(pairs)], (Window("O", 1),), "indri")
    cf, df = WindowStatistics(index).counts(table)[0][:, :, 0]
    expected = {pair: [] for pair in pairs}
    for number, row in enumerate(drawn.tolist()):
        for pair in pairwise(row):
            if pair in expected:
                expected[pair].append(number)
    assert cf.tolist() == [len(found) for found in expected.values()]
    assert df.tolist() == [len(set(found)) for found in expected.values()]


@pytest.mark.parametrize("quick", [0, 1 << 15])
def test_counts_that_take_long_are_stored_and_read_again(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(statistics, "_MAX_UNSAVED_POSTINGS", quick)
    index = PositionalIndex.from_texts({f"{n}": "new york city" for n in range(9)})
    shard = replace(index.parts[0].shard, folder=tmp_path)
    kept = PositionalIndex.of_shard(shard, analyze)
    table = CliqueTable(True, index.term_numbers(["new", "york"])[None], (Window("O", 1),), "indri")
    counts = WindowStatistics(kept).counts(table)[0]
    assert counts.ravel().tolist() == [9, 9]
    assert (tmp_path / "windows.sqlite").exists() == (quick == 0)
    if quick == 0:
        monkeypatch.setattr(statistics, "collection_counts", None)
    np.testing.assert_array_equal(WindowStatistics(kept).counts(table)[0], counts)
