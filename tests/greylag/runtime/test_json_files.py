import pytest

from greylag.errors import FormatError
from greylag.runtime.json_files import read_json_lines


def test_json_lines_skip_blank_lines_and_end_at_line_feeds_only(tmp_path):
    (tmp_path / "x.jsonl").write_bytes('{"a": "1\u2028"}\n \n{"b": [2]}'.encode())
    assert list(read_json_lines(tmp_path / "x.jsonl")) == [(1, {"a": "1\u2028"}), (3, {"b": [2]})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 1,', r": .* at column 9$"),
        ("[1]", ": list$"),
        ('{"a": 1, "b": {"c": 2, "c": 3}}', ": duplicate key 'c'; keep one of them$"),
        ("[" * 100_000, ": .*recursion"),
        (f'{{"a": {"1" * 5000}}}', ": .*digits"),
    ],
)
def test_lines_that_are_not_json_objects_are_refused(line, reason, tmp_path):
    (tmp_path / "x.jsonl").write_text(f"{{}}\n{line}\n")
    with pytest.raises(FormatError, match=rf"x\.jsonl:2: not a JSON object{reason}"):
        list(read_json_lines(tmp_path / "x.jsonl"))
