"""The slow and obvious decoder of a shard's streams."""

from __future__ import annotations

from collections.abc import Iterator

from greylag.index.shard import Shard


def numbers(stream: bytes) -> Iterator[int]:
    """The numbers in variable-byte code."""
    value, shift = 0, 0
    for byte in stream:
        value += (byte % 128) << shift
        shift += 7
        if byte < 128:
            yield value
            value, shift = 0, 0
    assert shift == 0


def decode_postings(shard: Shard) -> dict[tuple[int, int], list[int]]:
    """The positions of each term in each document."""
    stream, found = numbers(shard.postings.tobytes()), {}
    for term, df in enumerate((shard.postings_offsets[1:] - shard.postings_offsets[:-1]).tolist()):
        document = 0
        for _ in range(df):
            difference, several = divmod(next(stream), 2)
            tf = next(stream) if several else 1
            document += difference
            positions = [next(stream)]
            while len(positions) < tf:
                positions.append(positions[-1] + next(stream))
            found[term, document] = positions
    assert next(stream, None) is None
    return found


def decode_entries(shard: Shard) -> dict[tuple[int, int], int]:
    """The tf of each term in each document."""
    found = {}
    for document in range(len(shard.forward_offsets) - 1):
        begin, end = shard.forward_offsets[document : document + 2]
        stream, term = numbers(shard.forward[begin:end].tobytes()), 0
        for number in stream:
            difference, several = divmod(number, 2)
            term += difference
            found[term, document] = next(stream) if several else 1
    return found
