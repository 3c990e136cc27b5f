"""A stand-in for a Lucene index that needs no JVM, so that a process with it can be forked."""

import numpy as np

from greylag.base import Ranking
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.index import analysis
from greylag.index.export import open_export
from greylag.index.lucene.bulk_calls import PostingsBlock
from greylag.index.lucene.lucene_index import Statistics
from greylag.index.lucene.open_index import commit_fingerprint
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard

TEXTS = {f"d{n}": f"new york w{n % 7} goose w{n % 3} york city w{n % 5} new york" for n in range(20)}
QUERY = "new york city goose"


class MemorySource:
    """The methods of `LuceneIndex` that an export uses, for texts in memory."""

    is_assumed_english = False

    def __init__(self, path, texts):
        path.mkdir(exist_ok=True)
        (path / "segments_1").write_text(repr(texts))
        self.path, self.fingerprint = path, commit_fingerprint(path)
        self._texts = texts
        self._tokens = [
            [(term, place) for place, term in enumerate(analysis.tokens(text)) if term] for text in texts.values()
        ]

    def check_integrity(self):
        """Find nothing."""

    def likely_language(self):
        """Find nothing."""

    def docid_blocks(self):
        docids = [docid.encode() for docid in self._texts]
        order = sorted(range(len(docids)), key=docids.__getitem__)
        for own in (order[:7], order[7:]):
            yield [docids[number] for number in own], np.array(own, dtype=np.int32)

    def statistics(self):
        tokens = [[term for term, _ in document] for document in self._tokens]
        terms = {term for document in tokens for term in document}
        return Statistics(
            len(tokens), sum(map(len, tokens)), len(terms), sum(len(set(document)) for document in tokens)
        )

    def postings_blocks(self):
        terms = sorted({term.encode() for document in self._tokens for term, _ in document})
        for first in range(0, len(terms), 4):
            own = terms[first : first + 4]
            postings = [
                [(doc, [place for word, place in tokens if word == term.decode()])
                 for doc, tokens in enumerate(self._tokens)]
                for term in own
            ]  # fmt: skip
            found = [[(doc, places) for doc, places in of_term if places] for of_term in postings]
            flat = [posting for of_term in found for posting in of_term]
            yield PostingsBlock(
                own,
                np.array([len(of_term) for of_term in found], dtype=np.int64),
                np.array([doc for doc, _ in flat], dtype=np.int32),
                np.array([len(places) for _, places in flat], dtype=np.int32),
                np.array([place for _, places in flat for place in places], dtype=np.int32),
            )

    def open(self):
        """The exported index."""
        return PositionalIndex.of_shard(Shard(**open_export(self)), analysis.analyze)


def outcome(index):
    """What must not change: features, term frequencies, token streams and docids."""
    docids = sorted(TEXTS)[::2]
    ranking = Ranking("1", QUERY, tuple(docids), np.arange(len(docids), 0.0, -1.0))
    numbers = index.documents(docids)
    streams = [array for number in numbers for array in index.token_stream(int(number))]
    features = FeatureExtractor(index, candidate_pool())(ranking)
    weights = index.tfidf(numbers).toarray()
    return [np.asarray(array).tobytes() for array in (features, weights, *streams)] + [index.fingerprint.encode()]


def flip(path, rng):
    """Flip a bit of a file."""
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
