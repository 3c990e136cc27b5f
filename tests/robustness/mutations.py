"""Mutations of a file's content: what editors, transfers, other programs and attackers make of a valid file."""

import gzip
import random
import re
from collections.abc import Callable

Mutation = Callable[[random.Random, bytes], bytes]

ODD = [
    *(b"", b" ", b"0", b"-0", b"-1", b"+1", b"01", b"1.0", b"1.5", b".5", b"5.", b"1e1", b"1e999", b"-1e999", b"1_0"),
    *(b"nan", b"NaN", b"inf", b"-Infinity", b"0x10", b"1,5", b"10000", b"10001", b"2147483648", b"1000000000"),
    *(b"9" * 400, b"9" * 5000, b"1" + b"0" * 12, b"x" * 5000, b"null", b"true", b"[]", b"{}", b'""', b"''", b"[a]"),
    *(b"..", b"../..", b"a/b", b"/", b"$", b"a$b", b"#", b"%s", b"{0}", b"\\", b'"', b"'", b"<", b">"),
    *(b"&amp;", b"&x;"),
    *(b"\0", b"\x01", b"\x1b[31m", b"\x1c", b"\x7f", b"\r", b"\t", b"\x0b", b"\x0c", b"\xff", b"\xe9", b"\xc0\x80"),
    *("\u0661", "\u00e9", "\u0085", "\u00a0", "\u2028", "\ufeff", "\u202e", "\U0001f986"),
    *(b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"2020-02-30", b"2020-01-01", b"12:30", b"yes", b"~", b"*a", b"&a b"),
    *(b"<top>", b"</top>", b"<DOC>", b"</DOC>", b"<DOCNO>", b"</DOCNO>", b"<TEXT>", b"<num>", b"<!--", b"<![CDATA["),
    *(b"[" * 100_000, b'{"a":' * 50_000, b"<a>" * 20_000, b"- " * 2000),
]
VALUES = [value.encode() if isinstance(value, str) else value for value in ODD]
_FIELDS = [re.compile(rb"[^\s]+"), re.compile(rb"[^\s\"'\[\]{}:,<>#]+")]


def _place(rng, text):
    return rng.randrange(len(text) + 1)


def flip_byte(rng, text):
    if not text:
        return b"\x80"
    place = rng.randrange(len(text))
    return text[:place] + bytes([text[place] ^ 1 << rng.randrange(8)]) + text[place + 1 :]


def insert(rng, text):
    place = _place(rng, text)
    return text[:place] + rng.choice(VALUES) + text[place:]


def delete(rng, text):
    place = _place(rng, text)
    return text[:place] + text[place + rng.randint(1, 9) :]


def truncate(rng, text):
    return text[: _place(rng, text)]


def _fields(rng, text, change):
    found = list(rng.choice(_FIELDS).finditer(text))
    if not found:
        return text
    field = rng.choice(found)
    return text[: field.start()] + change(field[0]) + text[field.end() :]


def replace_field(rng, text):
    return _fields(rng, text, lambda _: rng.choice(VALUES))


def remove_field(rng, text):
    return _fields(rng, text, lambda _: b"")


def repeat_field(rng, text):
    return _fields(rng, text, lambda field: field + rng.choice([b" ", b"", b"\t", b","]) + field)


def copy_field(rng, text):
    found = rng.choice(_FIELDS).findall(text)
    return _fields(rng, text, lambda _: rng.choice(found)) if found else text


def _lines(rng, text, change):
    lines = text.splitlines(keepends=True)
    if lines:
        change(lines, rng.randrange(len(lines)))
    return b"".join(lines)


def repeat_line(rng, text):
    return _lines(rng, text, lambda lines, at: lines.insert(rng.randrange(len(lines) + 1), lines[at]))


def remove_line(rng, text):
    return _lines(rng, text, lambda lines, at: lines.__delitem__(at))


def shuffle_lines(rng, text):
    return _lines(rng, text, lambda lines, _: rng.shuffle(lines))


def blank_line(rng, text):
    return _lines(rng, text, lambda lines, at: lines.insert(at, rng.choice([b"\n", b" \n", b"\t\n"])))


def join_lines(rng, text):
    return _lines(rng, text, lambda lines, at: lines.__setitem__(at, lines[at].rstrip(b"\n")))


def encode(rng, text):
    decoded = text.decode(errors="replace")
    return decoded.encode(rng.choice(["utf-16", "utf-16-le", "utf-8-sig", "latin-1", "utf-32"]), errors="replace")


def end_lines(rng, text):
    return text.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\r", b"\x85", b"\0"]))


def compress(rng, text):
    packed = gzip.compress(text, mtime=0)
    return rng.choice([packed, packed[:-4], packed[: len(packed) // 2], packed + packed, packed + b"x", packed[::-1]])


def empty(rng, text):
    return rng.choice([b"", b"\n", b" ", b"\0" * 64, b"\xff" * 64, b"\x1f\x8b", b"#\n", b"{}\n", b"[]", b"null"])


def swap_case(rng, text):
    return rng.choice([text.upper(), text.lower(), text.swapcase()])


def respace(rng, text):
    return text.replace(*rng.choice([(b" ", b"\t"), (b"\t", b" "), (b" ", b"  "), (b" ", b"\xc2\xa0"), (b" ", b"")]))


MUTATIONS = [
    *(flip_byte, insert, delete, truncate, replace_field, remove_field, repeat_field, copy_field, repeat_line),
    *(remove_line, shuffle_lines, blank_line, join_lines, encode, end_lines, compress, empty, swap_case, respace),
]


def mutate(rng, text):
    """A variant of the content by one to three mutations, and their names."""
    chosen = rng.choices(MUTATIONS, k=rng.choice([1, 1, 2, 3]))
    for mutation in chosen:
        text = mutation(rng, text)
    return "+".join(mutation.__name__ for mutation in chosen), text
