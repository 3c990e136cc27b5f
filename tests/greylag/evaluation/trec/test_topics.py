"""Topics in all formats, titles of documents, and aspects of queries.

Tests `texts`.
"""

import gzip
import time
from contextlib import suppress

import numpy as np
import pytest

from greylag.base import FormatError, Ranking, Run
from greylag.evaluation import read_aspects, read_groups, read_titles, read_topics, write_run
from tests.greylag.studies.samples import DEMO

TREC = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate in
international criminal activity.

<narr> Narrative:
A relevant document must name one; 3 < 5 of them.

</top>
<top>
<head> Tipster Topic Description
<num> Number: 052
<dom> Domain: International Politics
<title> Topic: South African Sanctions: why?
<desc> Description:
Document discusses sanctions.
</top>
"""

XML = """<?xml version="1.0"?>
<!DOCTYPE web [ <!ELEMENT web (topic)*> ]>
<web>
<!-- <topic number="9"><query>not one</query></topic> -->
<topic number="1" type="faceted">
  <query>AT&amp;T  <b>phones</b></query>
  <description> Prices. </description>
  <subtopic number="1"> one </subtopic>
</topic>
<topic number="2"><query>horse</query><description>Hooves.</description></topic>
</web>
"""


def write(tmp_path, text, name="topics"):
    path = tmp_path / name
    path.write_text(text)
    return path


JSON_ROWS = """{"query_id": 7, "title": "goose", "narrative": "Grey ones."}
{"id": "b", "query": "x"}
{"topic_id": "c", "topic_title": "y"}"""
CLOSED = """<top>\n<num>7</num><title>\nBAND PASS\nFILTERS\n</title>\n</top>
<top lang='en'><num>MB01</num><title>x</title></top>"""
CACM = """<DOC>\n<DOCNO> 1 </DOCNO>\n\n What <i>is</i> TSS\n(Time Sharing)?\n</DOC>
<DOC>\n<DOCNO> 02 </DOCNO>\nx\n</DOC>\n"""
TITLES = {"301": "International Organized Crime", "52": "South African Sanctions: why?"}
DESCRIPTIONS = {
    "301": "Identify organizations that participate in international criminal activity.",
    "52": "Document discusses sanctions.",
}
NARRATIVE = {"301": "A relevant document must name one; 3 < 5 of them."}
FORMS = {
    "table": ("b2\t goose  <top> \n10\tbean goose", "title", {"b2": "goose <top>", "10": "bean goose"}),
    "JSON": (JSON_ROWS, "title", {"7": "goose", "b": "x", "c": "y"}),
    "TREC": (TREC, "title", TITLES),
    "TREC, description": (TREC, "description", DESCRIPTIONS),
    "TREC, desc": (TREC, "desc", DESCRIPTIONS),
    "TREC, narrative": (TREC[: TREC.index("</top>") + 6], "narrative", NARRATIVE),
    "TREC with closing tags and no label": (CLOSED, "title", {"7": "BAND PASS FILTERS", "MB01": "x"}),
    "XML": (XML, "title", {"1": "AT&T phones", "2": "horse"}),
    "XML, description": (XML, "description", {"1": "Prices.", "2": "Hooves."}),
    "CACM": (CACM, "title", {"1": "What <i>is</i> TSS (Time Sharing)?", "02": "x"}),
}


@pytest.mark.parametrize(("text", "field", "topics"), FORMS.values(), ids=FORMS)
def test_forms_keep_all_text_of_a_field_and_the_order_of_topics(text, field, topics, tmp_path):
    found = read_topics(write(tmp_path, text), field=field)
    assert [*found.items()] == [*topics.items()]


def test_a_header_is_no_topic(tmp_path, caplog):
    caplog.set_level("INFO", logger="greylag")
    assert read_topics(write(tmp_path, "qid\tQuery\n1\tgoose\nid\ttext\n")) == {"1": "goose", "id": "text"}
    assert "is read as a header" in caplog.text


@pytest.mark.parametrize(
    "text", [TREC.replace("</top>\n", ""), TREC.replace("</top>\n<top>", "</top><top>"), TREC.upper()]
)
def test_trec_format_with_unclosed_adjacent_or_upper_case_tags(text, tmp_path):
    assert list(read_topics(write(tmp_path, text))) == ["301", "52"]


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "nonsense-9"])
def test_xml_of_another_encoding_is_refused(tmp_path, encoding):
    """Its bytes would be read as other letters; those of ASCII are the same."""
    text = XML.replace('"1.0"', f'"1.0" encoding="{encoding}"')
    assert read_topics(write(tmp_path, text)) == {"1": "AT&T phones", "2": "horse"}
    path = write(tmp_path, text.replace("phones", "téléphones"))
    assert read_topics(path, lenient=True)["1"] == "AT&T téléphones"
    path = write(tmp_path, text.replace(encoding, "UTF-8").replace("phones", "téléphones"))
    assert read_topics(path)["1"] == "AT&T téléphones"


@pytest.mark.parametrize(
    ("collection", "name", "count", "qid", "text"),
    [
        ("cacm", "topics.cacm.txt", 64, "3",
         "Intermediate languages used in construction of multi-targeted compilers; TCOLL"),
        ("vaswani", "query-text.trec", 93, "4", "SYSTEMS OF DATA CODING FOR INFORMATION TRANSFER"),
        ("ambient", "topics.tsv", 44, "2", "B-52"),
        ("trec_diversity_qrels", "topics.web.1-50.txt", 50, "50", "dog heat"),
        ("trec_diversity_qrels", "topics.web.51-100.txt", 50, "52", "avp"),
    ],
)  # fmt: skip
def test_real_topics(*, collection, name, count, qid, text, data):
    topics = read_topics(data(collection) / name)
    assert len(topics) == count
    assert topics[qid] == text


def time_of(path):
    """The least CPU time of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        with suppress(FormatError):
            read_topics(path)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(
    "topic",
    [
        "<top>\n<num> Number: {}\n<title> goose\n</top>\n",
        "<top><num>{}<title>goose\n",
        "<DOC>\n<DOCNO>{}</DOCNO>\ngoose\n</DOC>\n",
        "<DOC><DOCNO>{}</DOCNO>goose\n",
        "<DOC><DOCNO>no end {}\n",
    ],
)
def test_reading_and_refusing_take_linear_time(topic, tmp_path):
    """16 times as many topics take less than 80 times as long, where quadratic time is 256 times."""
    few, many = (write(tmp_path, "".join(map(topic.format, range(n))), str(n)) for n in (2_500, 40_000))
    assert time_of(many) < 80 * time_of(few)
    if "no end" not in topic:
        assert len(read_topics(many)) == 40_000


@pytest.mark.parametrize(("number", "qid"), [("0", "0"), ("000", "0"), ("051", "51"), ("100", "100"), ("0a", "0a")])
def test_leading_zeros_of_trec_numbers(number, qid, tmp_path):
    (tmp_path / "topics").write_text(f"<top>\n<num> Number: {number}\n<title> goose\n</top>\n")
    assert read_topics(tmp_path / "topics") == {qid: "goose"}


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.jsonl.gz"])
def test_reads_titles(tmp_path, name):
    text = '{"id": "a", "title": "Blue\u2028Öl"}\n\n{"id": 2, "contents": "x"}\n{"id": "c", "title": ""}\n'
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert read_titles(tmp_path / name) == {"a": "Blue\u2028Öl", "2": "", "c": ""}


def test_reads_groups(tmp_path):
    path = tmp_path / "groups.jsonl"
    path.write_text('{"id": "a", "group": "sé"}\n{"id": 2, "contents": "x"}\n{"id": "c", "group": ""}\n', "utf-8")
    assert read_groups(path) == {"a": "sé"}


def test_reads_aspects():
    aspects = read_aspects(DEMO / "subtopics.tsv")
    assert aspects["1"][:2] == ("the big cat of the Americas", "the British car maker")
    assert len(aspects) == 24


def test_aspects_have_lines_and_comments_as_other_files(tmp_path):
    path = tmp_path / "aspects"
    path.write_text("1\ta\tcats\u2028and\x85dogs\x0cor mice\n2\ta\tbirds\n", "utf-8")
    assert read_aspects(path) == {"1": ("cats\u2028and\x85dogs\x0cor mice",), "2": ("birds",)}
    run = Run((Ranking("1", "", ("a", "b"), np.array([2.0, 1.0])),), "cat")
    write_run(run, path, metadata={"tag": "cat"})
    assert path.read_text().startswith("# ")
    assert read_aspects(path) == {"1": {"cat": {"a": 2.0, "b": 1.0}}}


def test_reads_scores_of_aspects(tmp_path):
    path, scores = tmp_path / "aspects", {"1": {"cat": {"a": 0.5, "b": -2.0}, "car": {"b": 1.0}}}
    path.write_text("1 cat a .5\n1 cat b -2\n1\tcar\tb\t1\n")
    assert read_aspects(path) == scores
    path.write_text("1 Q0 a 1 .5 cat\n1 Q0 b 2 -2 cat\n1 Q0 b 1 1 car\n")  # two runs, one after the other
    assert read_aspects(path) == scores
    path.write_text("1\tcat\tbig wild cat\n")  # four words, but three fields
    assert read_aspects(path) == {"1": ("big wild cat",)}
