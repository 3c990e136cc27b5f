"""YAML is read as version 1.2 has it, and what is written is read back, also by programs of version 1.1."""

import math

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.refusals import refuses

from greylag.base import FormatError
from greylag.base.runtime.yaml_text import MAX_BYTES, parse_yaml, write_yaml

# From the tables of YAML 1.2.2, section 10.3.2 and example 10.9, and what version 1.1 has in other ways.
SCALARS = {
    "~": None, "null": None, "Null": None, "nuLL": "nuLL", "true": True, "False": False, "TRUE": True, "truE": "truE",
    "yes": "yes", "No": "No", "on": "on", "y": "y", "0": 0, "-19": -19, "+12": 12, "010": 10, "0o7": 7, "0x3A": 58,
    "-0x1": "-0x1", "0b11": "0b11", "1_000": "1_000", "1:30": "1:30", "190:20:30.15": "190:20:30.15", "0.": 0.0,
    "-0.0": 0.0, ".5": 0.5, "+12e03": 12000.0, "-2E+05": -200000.0, "1e3": 1000.0, ".e3": ".e3", "1.e": "1.e",
    ".inf": math.inf, "-.Inf": -math.inf, "+.INF": math.inf, ".iNf": ".iNf", "2020-01-01": "2020-01-01",
    "2001-12-14 21:59:43.10 -5": "2001-12-14 21:59:43.10 -5", "=": "=", "<<": "<<", "nan": "nan", "inf": "inf",
}  # fmt: skip


@pytest.mark.parametrize("text", SCALARS)
def test_scalars_are_those_of_the_core_schema(text):
    read = parse_yaml(f"a: {text}\nb: [{text}]".encode())
    assert read == {"a": SCALARS[text], "b": [SCALARS[text]]}
    assert type(read["a"]) is type(SCALARS[text])
    assert parse_yaml(f"a: '{text}'".encode()) == {"a": text}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        *(
            (text, "aliases tags")
            for text in (b"a: &a [x]\nb: *a", b"a: &a [*a]", b"a: !!binary aGk=", b"a: !!set {x}")
        ),
        (b"a: !!python/object/apply:os.system [ls]", "aliases tags"),
        (b"a: 1\nb: 2\na: 3", ":3: 'a'"),
        (b"1: a", "key '1' text"),
        (b"true: a", "key 'true' text"),
        (b"? [a]\n: b", "key text"),
        (b"a: x\x00", "special characters"),
        (b"[" * 100_000, "nested"),
        (b"a: " + b"9" * 5000, "digits"),
        (b"a: \xff", "utf-8"),
        (b"#" * (MAX_BYTES + 1), f"{MAX_BYTES}"),
    ],
)
def test_what_is_not_data_is_refused(text, parts):
    refuses(lambda: parse_yaml(text), FormatError, parts)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), values))
@example(dict(zip(map(str, range(99)), SCALARS, strict=False)))
@example({"a": 1e20, "b": 1e-7, "no": "\u2028"})
def test_what_is_written_is_read_by_both_versions(content):
    text = write_yaml(content)
    assert parse_yaml(text.encode()) == content
    assert yaml.safe_load(text) == content
