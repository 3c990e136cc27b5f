"""The slow and obvious decoder of a shard's streams."""

from itertools import pairwise


def numbers(stream):
    """The numbers in variable-byte code."""
    value, shift = 0, 0
    for byte in stream:
        value += (byte % 128) << shift
        shift += 7
        if byte < 128:
            yield value
            value, shift = 0, 0
    assert shift == 0


def decode_postings(shard):
    """The positions of each term in each document."""
    stream, found = numbers(shard.positions.tobytes()), {}
    width = max(1, (len(shard.document_lengths) - 1).bit_length() + 7 >> 3)
    docs = shard.postings_docs.tobytes()
    for term, (first, end) in enumerate(pairwise(shard.postings_offsets.tolist())):
        for posting in range(first, end):
            position, several = divmod(next(stream), 2)
            tf, positions = next(stream) if several else 1, [position]
            while len(positions) < tf:
                positions.append(positions[-1] + next(stream))
            document = int.from_bytes(docs[width * posting : width * (posting + 1)], "little")
            found[term, document] = positions
    assert next(stream, None) is None
    return found


def decode_entries(shard):
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
