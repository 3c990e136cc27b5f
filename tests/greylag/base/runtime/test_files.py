import gzip
import logging
import math
import os
import shutil
import time

import pytest
from tests.refusals import refuses

from greylag.base import FormatError, ParameterError
from greylag.base.runtime.files import (
    Faults,
    check_names,
    file_stamp,
    file_stamps,
    open_atomically,
    parse_number,
    read_bytes,
    read_json_lines,
    split_rows,
    write_text,
)
from greylag.evaluation import read_qrels, read_run, read_subtopic_qrels, read_topics
from greylag.evaluation.trec.runs import open_run

READERS = {
    read_topics: b"1\tgreylag goose\n2\tbarnacle goose\n",
    read_qrels: b"1 0 d1 1\n2 0 d2 0\n",
    read_subtopic_qrels: b"1 1 d1 1\n2 2 d2 0\n",
    read_run: b"1 Q0 d1 1 2.5 tag\n2 Q0 d2 1 0.5 tag\n",
}


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda text: text.encode("utf-16"), 1),
        (lambda text: b"\xfe\xff" + text.encode("utf-16-be"), 1),
        (lambda text: ("\ufeff\ufeff" + text).encode(), 1),
        (lambda text: "\n".join("\ufeff" + line for line in text.splitlines()).encode(), 2),  # as joined files
    ],
)
@pytest.mark.parametrize("reader", READERS)
def test_encodings_and_marks_are_refused_and_leniently_repaired(*, reader, spoil, line, tmp_path, caplog):
    clean, spoilt = tmp_path / "clean", tmp_path / "spoilt"
    clean.write_bytes(READERS[reader])
    spoilt.write_bytes(spoil(READERS[reader].decode()))
    with pytest.raises(FormatError) as error:
        reader(spoilt)
    assert error.value.line == line
    assert "--lenient" in str(error.value)
    assert not caplog.records
    assert reader(spoilt, lenient=True) == reader(clean)
    [record] = caplog.records
    assert (record.name, record.levelno) == ("greylag", logging.WARNING)
    assert record.getMessage().startswith(f"{spoilt}:{line}: ")
    assert record.getMessage().endswith("(1 in total)")


@pytest.mark.parametrize("reader", READERS)
def test_blank_lines_and_mixed_line_ends_change_nothing(reader, tmp_path):
    (tmp_path / "clean").write_bytes(READERS[reader])
    (tmp_path / "spoilt").write_bytes(
        b"\xef\xbb\xbf\n" + READERS[reader].replace(b"\n2", b"\r\n \t\r\n\n2") + b"\n\r\n"
    )
    values = [reader(tmp_path / name) for name in ("clean", "spoilt")]
    assert repr(values[0]) == repr(values[1])


def test_invalid_utf8_is_refused_and_leniently_read_as_latin1(tmp_path, caplog):
    path = tmp_path / "topics.tsv"
    path.write_bytes("1\tgoose\n2\tcafé\n".encode("latin-1"))
    refuses(lambda: read_topics(path), FormatError, "topics.tsv:2: 0xe9 UTF-8")
    assert read_topics(path, lenient=True) == {"1": "goose", "2": "café"}
    assert "Latin-1" in caplog.text
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_topics(path, lenient=True) == {"1": "goose", "2": "café"}


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"\x1f\x8b\x08 and no more", "gzip"),
        (b"\x1f\x8b" + bytes(30), "gzip"),
        (b"1\tx\n" + bytes(9), ":2: NUL"),
        ("1\tx\n".encode("utf-16-le"), ":1: NUL"),
    ],
)
def test_lenient_reading_repairs_no_damage(content, parts, tmp_path):
    (tmp_path / "file").write_bytes(content)
    for lenient in (False, True):
        refuses(lambda lenient=lenient: read_topics(tmp_path / "file", lenient=lenient), FormatError, f"file {parts}")


def test_paths_that_are_no_files_are_refused():
    for path, parts in (("a\0b", "null byte"), ("/dev/zero", "device"), ("/dev/null", "device")):
        refuses(lambda path=path: read_topics(path), FormatError, parts)


@pytest.mark.parametrize("reader", [read_qrels, read_subtopic_qrels, read_run])
def test_only_ascii_white_space_separates_columns(reader, tmp_path):
    path = tmp_path / "table"
    name = "a\u00a0b\u2028c\x85d"
    path.write_bytes(READERS[reader].replace(b"d1", name.encode()))
    found = reader(path)
    assert name in {**found["1"], **found["1"].get("1", {})} if reader is not read_run else found["1"].docids


def test_faults_of_one_kind_give_one_warning_with_count_and_first_line(tmp_path, caplog):
    path = tmp_path / "qrels"
    path.write_text("1 0 a 1\n1 0 a 0\n1 0 b x\n1 0 a 2\n1 0 c y\n1 0 c 2\n")
    assert read_qrels(path, lenient=True) == {"1": {"a": 1, "c": 2}}
    duplicate, grade = (record.getMessage() for record in caplog.records)
    assert duplicate.startswith(f"{path}:2: document 'a' is judged twice")
    assert duplicate.endswith("keeps the first (2 in total)")
    assert grade.startswith(f"{path}:3: grade 'x'")
    assert grade.endswith("skips the judgement (2 in total)")


@pytest.mark.parametrize("name", ["file", "file.gz"])
@pytest.mark.parametrize("error", [KeyError("x"), OSError(28, "No space left on device")])
def test_a_write_that_fails_keeps_the_old_file_and_nothing_else(name, error, tmp_path):
    path = tmp_path / name
    write_text(path, "old\n")
    old = path.read_bytes()

    def fail():
        with open_atomically(path) as file:
            file.write("new\n" * 100_000)
            raise error

    with pytest.raises((KeyError, ParameterError)) as raised:
        fail()
    assert isinstance(raised.value, KeyError) or "No space left" in str(raised.value)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == [name]


def test_bytes_are_written_unchanged(tmp_path):
    with open_atomically(tmp_path / "file", binary=True) as file:
        file.write(b"a\r\n\xff")
    assert (tmp_path / "file").read_bytes() == b"a\r\n\xff"


def test_a_link_is_followed_and_the_umask_respected(tmp_path):
    target, link, ordinary = tmp_path / "target", tmp_path / "link", tmp_path / "ordinary"
    target.touch()
    link.symlink_to(target)
    write_text(link, "x\n")
    ordinary.write_text("")
    assert link.is_symlink()
    assert target.read_text() == "x\n"
    assert target.stat().st_mode == ordinary.stat().st_mode


def test_a_file_keeps_its_mode(tmp_path):
    """What is private stays so, while it is written and afterwards."""
    (tmp_path / "a").touch(mode=0o600)
    with open_atomically(tmp_path / "a") as file:
        file.write("x\n")
        assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*a*part")} == {0o600}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader, writer = os.pipe()
    named = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    places = {tmp_path / "pipe": named, f"/dev/fd/{writer}": reader, f"/proc/self/fd/{writer}": reader}
    for name, read in places.items():
        write_text(name, "through\n")
        assert os.read(read, 99) == b"through\n"
    assert (tmp_path / "pipe").is_fifo()
    for descriptor in (reader, writer, named):
        os.close(descriptor)


def test_writing_gzip_by_suffix_is_reproducible(tmp_path, monkeypatch):
    for name, now in (("a.gz", 1e9), ("b.gz", 2e9)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        write_text(tmp_path / name, "1 0 d 1\n")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"1 0 d 1\n"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("packed", [False, True])
def test_pipes_are_read(packed):
    """As a shell's process substitution gives them; the content fits into the pipe."""
    content = b"1\tgrey goose\n"
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(gzip.compress(content) if packed else content)
    assert read_topics(f"/dev/fd/{reading}") == {"1": "grey goose"}
    os.close(reading)


def test_numbers_are_those_of_c_and_all_else_is_nan():
    assert [*map(parse_number, b"1 -.5e1 +7. INF -infinity".split())] == [1.0, -5.0, 7.0, math.inf, -math.inf]
    odd = [b"", b"1_0", b"0x10", b"nan", "\u0661".encode(), b"1e", b".", b" 1", b"1,5"]
    assert all(math.isnan(parse_number(text)) for text in odd)


def test_names_that_cannot_be_read_back_are_refused():
    for name in ("", "a b", "a\0", "a\n", "\udcff"):
        refuses(lambda name=name: check_names("document", ["good", name]), ParameterError, f"{name!r}|rename", "|")
    check_names("document", ["a\u00a0b", "a\x1cb", "\u2028"])


def test_json_lines_skip_blank_lines_and_end_at_line_feeds_only(tmp_path):
    (tmp_path / "x.jsonl").write_bytes('{"a": "1\u2028"}\n \n{"b": [2]}'.encode())
    assert list(read_json_lines(tmp_path / "x.jsonl")) == [(1, {"a": "1\u2028"}), (3, {"b": [2]})]


def test_lines_that_are_not_json_objects_are_refused(tmp_path):
    lines = {'{"a": 1,': "9", "[1]": "list", '{"b": {"c": 2, "c": 3}}': "'c'", "[" * 100_000: "", "1" * 5000: "digits"}
    for line, part in lines.items():
        (tmp_path / "x.jsonl").write_text(f"{{}}\n{line}\n")
        refuses(lambda: list(read_json_lines(tmp_path / "x.jsonl")), FormatError, f"x.jsonl:2: {part}")


def rewrite(path):
    state = path.stat()
    path.write_text("b")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def replace(path):
    (path.parent / "other").write_text("b")
    shutil.copystat(path, path.parent / "other")
    (path.parent / "other").rename(path)


@pytest.mark.parametrize("change", [replace, rewrite, lambda path: os.utime(path, (1, 1))])
def test_a_changed_file_has_another_stamp(change, tmp_path):
    path = tmp_path / "file"
    path.write_text("a")
    before = file_stamp(path)
    time.sleep(0.02)  # more than a tick of the file system's clock
    assert path.read_text() == "a"
    assert file_stamp(path) == before
    change(path)
    assert file_stamp(path) != before


def test_stamps_of_a_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("12")
    (tmp_path / "c.txt").write_text("1")
    stamps = [file_stamp(tmp_path / name) for name in ("a/b.txt", "c.txt")]
    assert [stamp[1] for stamp in stamps] == [2, 1]
    assert file_stamps(tmp_path) == [("a/b.txt", stamps[0]), ("c.txt", stamps[1])]
    assert file_stamps(tmp_path / "c.txt") == [(".", stamps[1])]


def rows(content, columns="a b", **options):
    return [*split_rows(iter([content]), columns, Faults("file", lenient=False), **options)]


def test_rows_have_all_columns_and_no_more_unless_the_reader_ignores_them():
    assert rows(b"x 1\n\ny 2\n") == [(1, [b"x", b"1"]), (3, [b"y", b"2"])]
    refuses(lambda: rows(b"x 1\ny 2 z\n"), FormatError, "file:2: 3 columns")
    assert rows(b"x 1\ny 2 z\n", further=True) == [(1, [b"x", b"1"]), (2, [b"y", b"2", b"z"])]


def test_a_comment_with_all_columns_is_one_if_its_name_is_that_of_a_line():
    for content in (b"# a word or more\nx 1\n", b"#x 1\nx 1\n"):
        assert rows(content, "qid score", comments=True) == [(2, [b"x", b"1"])]
    refuses(lambda: rows(b"#y 1\nx 1\n", "qid score", comments=True), FormatError, "file:1: 2 columns")


@pytest.mark.parametrize(
    ("read", "parser"),
    [
        (open_run, "greylag.evaluation.trec.runs.scan"),
        (read_run, "greylag.evaluation.trec.runs.scan"),
        (read_qrels, "greylag.evaluation.trec.qrels._grade"),
        (read_topics, "greylag.base.runtime.files.read_blocks"),
        (read_bytes, "greylag.base.runtime.files.read_blocks"),
    ],
)
def test_what_does_not_fit_in_memory_is_named(read, parser, tmp_path, monkeypatch):
    path = tmp_path / "large"
    path.write_text("q1 0 d1 1\n" if read is read_qrels else "q1 Q0 d1 1 2.0 tag\n")

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(parser, full)
    refuses(lambda: read(path), FormatError, "large|does not fit in memory", "|")


def test_a_file_of_zeros_is_refused_by_its_first_bytes(tmp_path):
    path = tmp_path / "zeros.run"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    refuses(lambda: read_run(path), FormatError, "zeros.run:1|NUL", "|")
