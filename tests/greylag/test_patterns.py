"""Patterns that see data take time in proportion to the text, whatever the text is."""

import re
import time

import pytest

from greylag.base import errors
from greylag.evaluation.trec import letor, topics
from greylag.index import analysis, expansion, word_breaks
from greylag.index.lucene import documents

LENGTH = 100_000
SECONDS = 2.0  # of CPU time, hundreds of times what is needed; a quadratic pattern takes minutes
# Alone and in a row, the characters that patterns look for, and what they begin with.
PIECES = [
    "a", "0", "_", ".", "a.", "0,", "'", "-", " ", "\t", "\n", "\x01", " \x01", "<", ">", "<a", "<a>", "<a></b>", "<!",
    "<!--", "<script",
    "<top ", "<top>", "<DOC ", "<DOC>\n<DOCNO>", "<?xml ", "1 qid:1 1:1 ", "1:1 ", "1=1", "#", "é", "\u0301",
    "\u200d", "\u2139", "\U0001f600\u200d", "\U0001f3fb", "\U0001f1e6", "\u05d0'", "\u30ab", "\u0e01", "a\u0301",
]  # fmt: skip


AT_THE_START = ("_CACM", "_ENCODING", "_TREC_DOCUMENT", "_LINE", "_SPARSE_LINE")  # patterns that are never searched for


def _reader(name, pattern):
    """Try the whole text, and find all matches."""

    def read(text):
        data = text if isinstance(pattern.pattern, str) else text.encode()
        pattern.fullmatch(data)
        pattern.match(data)
        if name not in AT_THE_START:
            for _ in pattern.finditer(data):
                pass

    return read


# All that see documents, queries, topics, feature files or messages about these; grammars of options do not.
READERS = {
    **{
        f"{module.__name__}.{name}": _reader(name, value)
        for module in (analysis, expansion, topics, documents, letor, errors)
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    },
    "index.words": lambda text: [*word_breaks.words(text)],
    "index.tokens": analysis.tokens,
    "index.split_words": analysis.split_words,
    "documents.elements": documents._without_elements,
    "errors": lambda text: str(errors.ParameterError(text)),
}


@pytest.mark.parametrize("name", READERS)
def test_long_texts_of_anything_take_seconds(name):
    for piece in PIECES:
        for length in (LENGTH // 30, LENGTH):  # the shorter one first, so that a failure is told in time
            text = piece * (length // len(piece))
            start = time.process_time()
            READERS[name](text)
            spent = time.process_time() - start
            assert spent < SECONDS * length / LENGTH, (
                f"{name} took {spent:.1f} s for {length:,} characters of {piece!r}"
            )
