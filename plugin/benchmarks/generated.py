"""Collections of generated text, with queries of 2 to 5 terms: of Zipfian words, or of sentences of real texts."""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from greylag.base import IntArray, Query
from greylag.index import LuceneIndex, PositionalIndex, build_index
from greylag.index.lucene.documents import read_documents
from greylag.index.shards import Parts

WORDS = 1_000_000
LENGTH = 50  # tokens of a document
PHRASES = 50_000
IN_PHRASES = 0.3  # of the tokens, about
BLOCK = 20_000  # documents generated at once
ASKED = 20, 20_000  # ranks of the words of queries, most frequent first
SENTENCES = 3  # of a document
LONGEST_SENTENCE = 25  # words; longer ones are cut, as some texts have no full stops
RARE_WORDS = 10_000_000


@contextmanager
def indexed(n_documents: int) -> Iterator[LuceneIndex]:
    """An index of so many documents, in a folder that goes with the block."""
    with tempfile.TemporaryDirectory() as folder:
        docs, place = Path(folder, "docs.jsonl"), Path(folder, "index")
        write_documents(docs, n_documents)
        build_index(docs, place)
        docs.unlink()
        yield LuceneIndex(place)


def without_statistics(index: PositionalIndex) -> PositionalIndex:
    """The index as one that keeps no statistics of windows between extractors, so that each counts them anew."""
    return replace(index, parts=Parts(replace(part, shard=replace(part.shard, folder=None)) for part in index.parts))


def write_documents(path: Path, n_documents: int, seed: int = 0) -> None:
    """Write documents of Zipfian words, into which Zipfian phrases of two or three words are mixed, as JSON lines."""
    rng = np.random.default_rng(seed)
    words = [f"w{word}x" for word in range(WORDS)]
    phrases = _phrases()
    with path.open("w") as file:
        for first in range(0, n_documents, BLOCK):
            n = min(BLOCK, n_documents - first)
            tokens = _ranks(rng, n * LENGTH, WORDS)
            starts = rng.choice(n * LENGTH - 3, int(n * LENGTH * IN_PHRASES / 2.5))
            chosen = phrases[_ranks(rng, len(starts), PHRASES)]
            for place in range(3):
                used = chosen[:, place] >= 0
                tokens[starts[used] + place] = chosen[used, place]
            for number, row in enumerate(tokens.reshape(n, LENGTH).tolist(), first):
                text = " ".join([words[word] for word in row])
                file.write(json.dumps({"id": f"g{number:07d}", "contents": text}) + "\n")


def queries(n: int, seed: int = 1, lengths: Sequence[int] = (2, 3, 4, 5)) -> list[Query]:
    """Queries of so many terms in turn: a phrase, and words of medium frequency."""
    rng = np.random.default_rng(seed)
    phrases, found = _phrases(), []
    for number in range(n):
        phrase = phrases[int(_ranks(rng, 1, PHRASES)[0])]
        low, high = np.log(ASKED)
        more = np.exp(rng.uniform(low, high, max(lengths))).astype(np.int64)
        terms = np.append(phrase[phrase >= 0], more)[: lengths[number % len(lengths)]]
        found.append(Query(str(number), " ".join(f"w{word}x" for word in terms.tolist())))
    return found


def _ranks(rng: np.random.Generator, size: int, n: int) -> IntArray:
    """Numbers from 0 to n - 1 whose probabilities fall as 1 / (number + 3)."""
    drawn: IntArray = ((n / 3 + 1) ** rng.random(size) * 3 - 3).astype(np.int64)
    return np.minimum(drawn, n - 1)


def _phrases() -> IntArray:
    """Phrases of two or three words of medium frequency, shape (phrases, 3), padded with -1."""
    rng = np.random.default_rng(2)
    low, high = np.log(ASKED)
    words = np.exp(rng.uniform(low, high, (PHRASES, 3))).astype(np.int64)
    words[rng.random(PHRASES) < 0.5, 2] = -1
    return words


def sentences_of(paths: Iterable[Path]) -> list[str]:
    """Return the sentences of the texts of files, of four words or more."""
    found = []
    for path in paths:
        for _, text in read_documents(path):
            for sentence in re.split(r"[.?!]\s", text):
                words = sentence.split()
                parts = [words[first : first + LONGEST_SENTENCE] for first in range(0, len(words), LONGEST_SENTENCE)]
                found += [" ".join(part) for part in parts if len(part) >= 4]
    return found


def write_sentences(path: Path, n_documents: int, sentences: Sequence[str], seed: int = 0) -> None:
    """Write documents of three sentences, drawn with replacement, and two rare words each, as JSON lines.

    A rare word is the beginning of one of the sentences' words and the end of another, of Zipfian frequencies, so that
    the vocabulary grows with the collection as it does in real ones.
    """
    rng = np.random.default_rng(seed)
    words = sorted({word for sentence in sentences for word in re.findall("[a-z]{4,}", sentence.lower())})
    heads, tails = sorted({word[:4] for word in words}), sorted({word[4:] for word in words})
    with path.open("w") as file:
        for first in range(0, n_documents, BLOCK):
            n = min(BLOCK, n_documents - first)
            chosen = rng.integers(0, len(sentences), (n, SENTENCES)).tolist()
            ranks = rng.permutation(_ranks(rng, n * 2, RARE_WORDS)).reshape(n, 2).tolist()
            for number, (drawn, rare) in enumerate(zip(chosen, ranks, strict=True), first):
                composed = [heads[rank % len(heads)] + tails[rank // len(heads) % len(tails)] for rank in rare]
                text = " ".join([sentences[place] for place in drawn] + composed)
                file.write(json.dumps({"id": f"g{number:08d}", "contents": text}) + "\n")


def sentence_queries(n: int, sentences: Sequence[str], seed: int = 1) -> list[Query]:
    """Return queries of 2 to 5 words in turn that follow each other in a sentence."""
    rng, found = np.random.default_rng(seed), []
    for number in range(n):
        words = sentences[int(rng.integers(len(sentences)))].split()
        size = min(2 + number % 4, len(words))
        first = int(rng.integers(len(words) - size + 1))
        found.append(Query(str(number), " ".join(words[first : first + size])))
    return found
