"""An index of texts that came and went, against one that is made anew."""

from itertools import pairwise

import numpy as np
import pytest

from greylag.base import Query
from greylag.index import PositionalIndex, spliced
from greylag.index.tables import DTYPES
from greylag.index.vectors import latent
from greylag.index.vectors.latent import basis_of, decomposed

WORDS = [
    f"{first}{second}" for first in ("goose", "wing", "the", "Moor's", "gänse", "x") for second in ("", "s", "ing")
]


def text_of(rng):
    return " ".join(
        rng.choice(WORDS, rng.integers(0, 12))
    ) + f" w{rng.integers(40)} q{rng.integers(40)}" * rng.integers(2)


def words_of(index):
    """What the words of an index say, without their numbers."""
    (words,) = index.words.parts
    starts = words.term_offsets
    names = [words.terms[begin:end].tobytes() for begin, end in pairwise(starts)]
    assert [names[number] for number in words.term_order.tolist()] == sorted(names)
    documents = np.split(words.words, words.document_offsets[1:-1])
    assert all((np.diff(document) > 0).all() for document in documents)
    grams = np.split(words.gram_hashes[words.grams], words.gram_offsets[1:-1])
    return (
        [{names[number] for number in document.tolist()} for document in documents],
        dict(zip(names, words.document_frequencies.tolist(), strict=True)),
        {name: own.tolist() for name, own in zip(names, grams, strict=True)},
        dict(zip(words.gram_hashes.tolist(), words.gram_frequencies.tolist(), strict=True)),
        {name: array.dtype for name, array in vars(words).items()},
    )


@pytest.mark.parametrize("seed", range(12))
def test_is_the_index_made_anew(seed):
    """After changes, one after another, by which documents go, come, change places, and occur twice."""
    rng = np.random.default_rng(seed)
    texts = [text_of(rng) for _ in range(rng.integers(1, 40))]
    index = PositionalIndex.from_texts({f"d{n}": text for n, text in enumerate(texts)})
    for _ in range(3):
        new = [text_of(rng) for _ in range(rng.integers(0, 5))]
        kept = rng.integers(0, 2, len(texts)).nonzero()[0] if seed % 3 else rng.permutation(len(texts))
        sources = np.concatenate([kept, kept[: seed % 2], len(texts) + np.arange(len(new))]).astype(np.int64)
        sources = rng.permutation(sources) if seed % 4 > 1 else sources
        if not len(sources):
            continue
        texts = [[*texts, *new][source] for source in sources.tolist()]
        docids = [f"e{n}" for n in rng.permutation(len(texts))]
        index = spliced(index, docids, sources, new)
        anew = PositionalIndex.from_texts(dict(zip(docids, texts, strict=True)))
        assert index.fingerprint == anew.fingerprint
        for name in DTYPES:
            made, expected = (getattr(one.parts[0].shard, name) for one in (index, anew))
            np.testing.assert_array_equal(made, expected, err_msg=name)
            assert (made.dtype, made.flags.writeable) == (expected.dtype, False)
        assert words_of(index) == words_of(anew)
        assert index.bm25(9)(Query("q", "geese winging moors")) == anew.bm25(9)(Query("q", "geese winging moors"))


def test_latent_semantics_are_folded_in_until_a_tenth_has_changed(monkeypatch):
    monkeypatch.setattr(latent, "ALWAYS_ANEW", 50)
    rng = np.random.default_rng(0)
    texts = [text_of(rng) for _ in range(100)]
    index = first = PositionalIndex.from_texts({f"d{n}": text for n, text in enumerate(texts)})
    for step in range(1, 8):
        sources = np.append(np.arange(1, 100), 100)
        index = spliced(index, [f"d{n + step}" for n in range(100)], sources, [f"{text_of(rng)} new{step}"])
        if step < 6:
            assert basis_of(index).changed == 2 * step
            terms = first.terms_of(np.arange(first.n_terms))
            places = dict(zip(terms, decomposed(first)[0].tolist(), strict=True))
            assert decomposed(index)[1] is decomposed(first)[1]
            own = index.terms_of(np.arange(index.n_terms))
            assert decomposed(index)[0].tolist() == [places.get(term, -1) for term in own]
    assert basis_of(index).changed == 2  # anew at the sixth, of which one more has changed since
    for source in (0, 100):  # each copy of a text comes, be it one of before or a new one
        index = spliced(first, [*map(str, range(109))], np.append(np.arange(100), [source] * 9), ["a new text"])
        assert basis_of(index).changed == 9
