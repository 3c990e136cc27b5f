"""What readers of runs, judgements, topics and texts refuse, where, and how lenient reading repairs it."""

import json
from functools import partial

import pytest

from greylag.base import FormatError, ParameterError, Ranking, Run
from greylag.evaluation import (
    read_aspects,
    read_groups,
    read_qrels,
    read_run,
    read_subtopic_qrels,
    read_titles,
    read_topics,
    write_rankings,
    write_run,
)
from greylag.evaluation.trec.runs import FLOAT32_MAX
from tests.refusals import refuses


def docids(path, *, lenient=False):
    """The docids of query 1 of a run, in its order."""
    return " ".join(read_run(path, lenient=lenient)["1"].docids)


def nugget(name, relevant, others):
    return {"_id": name, "relevant_corpus_ids": relevant, "non_relevant_corpus_ids": others}


def freshstack(*nuggets):
    return json.dumps({"query_id": "7", "nuggets": nuggets}) + "\n"


def assigned(docid="a", **fields):
    return json.dumps({"qid": "7", "docid": docid, "nuggets": [{"text": "drag", **fields}]}) + "\n"


TOP, XML = "<top>\n<num> {}\n<title> x\n</top>\n", '<web><topic number="{}"><query>goose</query></topic></web>'
SUPPORT, LATIN = {"assignment": "support"}, '<?xml version="1.0" encoding="{}"?>\n'
OF_DRAG = {"7": {"drag": {"a": 2}}}
LENIENT = [
    (docids, "1 Q0 a 1 3 t\n1 Q0 b 2 2\n", "2", "5 columns instead of 6: qid Q0 docid rank score tag", "a"),
    (docids, "1 a 1\n1 b 2 t\n", "2", "4 columns instead of 3: qid docid rank", "a"),
    (docids, "1 a 1\n1 b 0\n", "2", "rank '0'", "a"),
    (docids, "1 a 1\n1 b 2.0\n", "2", "rank '2.0'", "a"),
    (docids, "1 a 2\n1 b 1\n", "2", "rank 1 is not above the one before it, 2", "b a"),
    (docids, "1 a 1\n1 b 1\n", "2", "rank 1 is not above the one before it, 1", "b a"),
    (docids, "1 Q0 a 1 3 t\n1 Q0 b 2.0 2 t\n", "2", "rank '2.0'", "a b"),
    (docids, "1 Q0 a 1 3 t\n1 Q0 b 2 1_0 t\n", "2", "score '1_0'", "a"),
    (docids, "1 Q0 a 1 3 t\n1 Q0 b 2 NaN t\n", "2", "score 'NaN'", "a"),
    (docids, "1 Q0 a 1 3 t\n1 Q0 b 2 -inf t\n", "2", "score -inf", "a b"),
    (docids, "1 Q0 b 1 inf t\n1 Q0 a 2 3 t\n", "1", "score inf", "b a"),
    (docids, "1 Q0 a 1 3 t\n1 Q0 b 2 4 t\n", "2", "score 4 is higher than the one before it, 3.0", "b a"),
    (docids, "1 Q0 a 1 1 t\n1 Q0 b 1 2 t\n", "2", "score 2 is higher", "b a"),  # equal ranks are no order
    (docids, "1 Q0 a 1 1 t\n1 Q0 b 1 2 t\n1 Q0 c 3 0 t\n", "2", "score 2 is higher", "b a c"),
    (docids, "1 Q0 a 2 3 t\n1 Q0 b 1 4 t\n1 Q0 c 2 2 t\n", "2", "score 4 is higher", "b a c"),
    (docids, "1 Q0 a 1 3 t\n2 Q0 a 1 1 t\n1 Q0 b 2 4 t\n", "3", "score 4 is higher", "b a"),
    (docids, "1 a 1\n2 a 1\n1 b 3\n2 b 2\n1 c 2\n", "5", "score 0.5 is higher than the one before it, 0.3", "a c b"),
    (docids, "1 Q0 a 1 3 t\n1 Q0 b 2 2 t\n1 Q0 a 3 1 t\n", "3", "'a' for query '1', which is on line 1, too", "a b"),
    (docids, "1 Q0 b 1 3 t\n1 Q0 a 2 2 t\n1 Q0 a 3 1 t\n1 Q0 b 4 0 t\n", "3", "'a' for query '1', which is on line 2",
     "b a"),
    (docids, "1 Q0 a 1 3 t\n2 Q0 a 1 1 t\n1 Q0 a 2 2 t\n", "3", "'a' for query '1', which is on line 1", "a"),
    (docids, "1 Q0 a 1 2 t\n#2 Q0 a 1 1 t\n", "2", "begins with # as a comment, but has 6 columns", "a"),
    (read_run, "#1 d1 1\n2 d2 1\n", "1", "begins with # as a comment", Run((Ranking("2", "", ["d2"], [1.0]),), "file")),
    (read_qrels, "1 0 a 1\n\n1 0 b\n", "3", "3 columns instead of 4", {"1": {"a": 1}}),
    (read_qrels, "1 0 a 1\n1 0 b 2.5\n", "2", "'2.5'", {"1": {"a": 1, "b": 2}}),
    (read_qrels, "1 0 a 1\n1 0 b -0.9\n", "2", "'-0.9'", {"1": {"a": 1, "b": 0}}),
    (read_qrels, "1 0 a 1\n1 0 b inf\n", "2", "'inf'", {"1": {"a": 1}}),
    (read_qrels, "1 0 a 1\n1 0 b --1\n", "2", "'--1'", {"1": {"a": 1}}),
    (read_qrels, "1 0 a 1\n1 0 b 10001\n", "2", "'10001' is not a whole number from -10000 to 10000", {"1": {"a": 1}}),
    (read_qrels, "1 0 a 1\n1 0 b 0\n1 0 a 0\n", "3", "'a' is judged twice", {"1": {"a": 1, "b": 0}}),
    (read_qrels, "1 1 a 1\n1 2 a 1\n", "2", "are these judgements by subtopic?", {"1": {"a": 1}}),
    (read_qrels, "#1 0 a 1\n2 0 b 1\n", "1", "begins with # as a comment", {"2": {"b": 1}}),
    (read_qrels, "1 a 1\n", "1", "query-id corpus-id score", None),
    (read_qrels, "1 b 2\nquery-id corpus-id score\n", "1", "query-id corpus-id score", None),
    (read_qrels, "a b\n", "1", "2 columns", None),
    (read_qrels, "1 0 a x\n", "1", "'x'", None),
    (read_subtopic_qrels, "1 0 a 1\n1 0 b 0\n2 Q0 a 1\n", "", "all judgements are of subtopic 0", None),
    (read_subtopic_qrels, "1 0 b 1\n1 0 b 0\n1 1 a 1\n", "2", "'b' is judged twice for query '1' and subtopic '0'",
     {"1": {"0": {"b": 1}, "1": {"a": 1}}}),
    (read_subtopic_qrels, "1 1 a 1\n1 1 a 0\n", "2", "'a' is judged twice for query '1' and subtopic '1'",
     {"1": {"1": {"a": 1}}}),
    (read_subtopic_qrels, '{"id": "7", "contents": "a text"}', "1", "query of FreshStack", None),
    (read_subtopic_qrels, '{"query_id": "7"}', "1", "nuggets is None: it must be a list of dict", None),
    (read_subtopic_qrels, '{"query_id": true, "nuggets": []}', "1", "query_id is True", None),
    (read_subtopic_qrels, freshstack(nugget("", [], [])), "1", "_id is ''", None),
    (read_subtopic_qrels, freshstack(nugget("n", ["a"], []), nugget("n", ["b"], [])), "1", "two nuggets", None),
    (read_subtopic_qrels, freshstack(nugget("n", "a", [])), "1", "relevant_corpus_ids is 'a': it must be a list of str",
     None),
    (read_subtopic_qrels, freshstack(nugget("n", ["a", "b"], ["a"])), "1", "'a' is judged twice",
     {"7": {"n": {"a": 0, "b": 1}}}),  # as FreshStack takes it
    (read_subtopic_qrels, '{"qid": "7", "nuggets": [{"text": "drag"}]}', "1", "assign", None),
    (read_subtopic_qrels, assigned(importance="vital"), "1", "assign --input-kind retrieval", None),
    (read_subtopic_qrels, assigned(assignment="failed"), "1", "assignment 'failed'", {"7": {}}),
    (read_subtopic_qrels, assigned(**SUPPORT, importance="ok"), "1", "importance 'ok' is none of vital, okay", OF_DRAG),
    (read_subtopic_qrels, assigned(**SUPPORT, importance="okay") + assigned("b", **SUPPORT, importance="vital"), "2",
     "'drag' is vital here and okay", {"7": {"drag": {"a": 2, "b": 2}}}),
    (read_subtopic_qrels, 2 * assigned(**SUPPORT), "2", "'a' is judged twice for query '7' and subtopic 'drag'",
     OF_DRAG),
    (read_topics, "1\tgoose\n2 bean goose\n", "2", "no tab", {"1": "goose", "2": "bean goose"}),
    (read_topics, "1\tgoose\n2\tbean\tgoose\n", "2", "2 tabs", {"1": "goose", "2": "bean goose"}),
    (read_topics, "1\tgoose\n2\tbean\n1\tbrent\n", "3", "duplicate topic '1'", {"1": "goose", "2": "bean"}),
    (read_topics, "1\tgoose\n2\t \n", "2", "topic '2' has no text", {"1": "goose"}),
    (read_topics, "1\tgoose\n\tbean\n", "2", "''", None),
    (read_topics, "1\tgoose\n2 3\tbean\n", "2", "'2 3'", None),
    (read_topics, "1\t \n", "1", "no text", None),
    (read_topics, '{"_id": "1", "text": "x"}\n{"text": "x"}', "2", "_id", None),
    (read_topics, '{"_id": "1", "text": "x"}\n{"_id": true, "text": "x"}', "2", "_id", None),
    (read_topics, '{"_id": "1", "text": "x"}\n{"_id": "1", "text": 1}', "2", "<text>", None),
    (read_topics, '{"_id": "1", "text": "x"}\n{', "2", "JSON", None),
    (read_topics, '{"_id": "1", "text": "x"}\n{"_id": "1 2", "text": "x"}', "2", "'1 2'", None),
    (read_topics, "\n<top><title>goose</top>", "2", "<num>", None),
    (read_topics, "".join(map(TOP.format, (1, 2, 3, 2))), "13", "duplicate topic '2'", {"1": "x", "2": "x", "3": "x"}),
    (read_topics, "<web>\n" + XML.format(1).replace("</query>", ""), "2", "not well-formed", None),
    (read_topics, XML.format(1).replace("goose", "a <query>b</query>"), "", "several <query>", None),
    (read_topics, XML.format(1).replace("</topic>", XML.format(2)[5:-6] + "</topic>"), "", "several <query>", None),
    (read_topics, XML.format(""), "", "''", None),
    (read_topics, XML.format(1).replace("</web>", XML.format(1)[5:]), "", "duplicate topic '1'", {"1": "goose"}),
    (read_topics, LATIN.format("ISO-8859-1") + XML.format("é"), "1", "'ISO-8859-1'", {"é": "goose"}),
    (read_topics, LATIN.format("nonsense-9") + XML.format("é"), "1", "'nonsense-9'", {"é": "goose"}),
    (read_topics, "<web><!-- <topic number='1'/> --></web>", "", "no topics", None),
    (read_topics, "<DOC>no number</DOC>", "1", "<DOCNO>", None),
    (read_topics, "<DOC><DOCNO>1</DOCNO>x</DOC>\n<DOC DOC><DOCNO 2</DOCNO>x</DOC>", "2", "<DOCNO>", None),
    (read_topics, "<DOC><DOCNO>1</DOCNO>x</DOC>\n<DOC>\n<DOC><DOCNO>2</DOCNO>x</DOC>", "2", "<DOCNO>", None),
    (read_topics, "<DOC><DOCNO>1</DOCNO> x <DOCNO>2</DOCNO> y</DOC>", "1", "<DOCNO>", None),
    (read_topics, '[{"number": 1, "title": "x"},\n{"number": 2}]\n', "1", "array: write one object per line", None),
    (read_topics, '{"topic_id": "1", "topics": [{"lang": "eng", "topic_title": "x"}]}\n', "1", "jq -c", None),
    (docids, "0.5\n0.25\n", "1", "a score alone", None),
    (docids, "1 Q0 a 1 3 t\r1 Q0 b 2 2 t\r", "1", "carriage return", None),
    (read_qrels, "1 0 a 1\n1 0 b 1\r1 0 c 2\n", "2", "carriage return", None),
    (read_topics, "\xfd7zXZ\0", "", "unpack it first with xz", None),
    (read_topics, "\x28\xb5\x2f\xfd\4", "", "unpack it first with zstd", None),
]  # fmt: skip
"""The reader, a text, the number of the line, a part of the reason, and what lenient reading gives, if anything."""


@pytest.mark.parametrize(("read", "text", "line", "part", "repaired"), LENIENT)
def test_faults_and_their_repair(read, text, line, part, repaired, tmp_path, caplog):
    path = tmp_path / "file"
    path.write_text(text, "latin-1" if part.startswith("unpack") else None)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert part in str(caught.value)
    assert not caplog.records
    if repaired is None:
        with pytest.raises(FormatError):
            read(path, lenient=True)
    else:
        assert read(path, lenient=True) == repaired
        warned = [message for message in caplog.messages if part in message and f"{path}:{line}".rstrip(":") in message]
        assert (len(warned), "--lenient" in str(caught.value)) == (1, True)


FIRST = '{"id": "a", "title": "x"}\n'
JSON = "not a JSON object"
STRICT = [
    (read_titles, FIRST + "{", "2", JSON),
    (read_titles, FIRST + '{"title": "x"}', "2", f"{JSON} with an id"),
    (read_titles, FIRST + '{"id": 1.5}', "2", f"{JSON} with an id"),
    (read_titles, FIRST + '{"id": true}', "2", f"{JSON} with an id"),
    (read_titles, FIRST + '{"id": "a", "title": "x"}', "2", "duplicate document 'a'"),
    (read_titles, FIRST + '{"id": "b", "title": 7}', "2", "title 7 is not a string: document 'b'"),
    (read_groups, '{"id": "a", "group": 7}\n', "1", "group 7 is not a string: document 'a'"),
    (read_aspects, "1\ta\n", "1", "QID TAB NAME TAB TEXT"),
    (read_aspects, "1\ta\tcats\n1\tb\t \n", "2", "QID TAB NAME TAB TEXT"),
    (read_aspects, "1\ta\tcats\n1\ta\tdogs\n", "2", "query '1' has the aspect 'a' twice"),
    (read_aspects, "", "", "is empty"),
    (read_aspects, "1 cat a 1\n1 cat a 2\n", "2", "'a' has two scores for aspect 'cat' of query '1'"),
    (read_aspects, "1 Q0 a 1 2 cat\n1 Q0 a 1 1 cat\n", "2", "give each run its own"),
    (read_aspects, "1 cat a high\n", "1", "score 'high'"),
    (read_aspects, "1 cat a 1\n1 cat 1\n", "2", "3 columns instead of 4"),
    (partial(read_topics, field="narrative"), '{"id": "b", "query": "x"}\n', "1", "<narrative>"),
    (partial(read_topics, field="narrative"), TOP.format(1), "1", "choose one of its fields: num, title"),
    (partial(read_topics, field="subtopic"), XML.format(1), "", "choose one of its fields: query"),
    (partial(read_run, topics={"9": "x"}), "1 Q0 a 1 3 t\n2 Q0 b 1 2 t\n", "", "2 queries that are not among"),
    (partial(read_run, topics={"1": "x"}), "1 Q0 a 1 3 t\n2 Q0 b 1 x t\n", "2", "score 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "text", "line", "part"), STRICT)
def test_refusals_by_place(read, text, line, part, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert part in str(caught.value)


def ranked(values, qid="1", docids="abc", tag="t"):
    return Run((Ranking(qid, "", list(docids)[: len(values)], values),), tag)


@pytest.mark.parametrize(
    ("run", "part"),
    [
        (ranked([], tag="empty"), "'empty'"),
        (ranked([1], qid="1 2"), "query '1 2'"),
        (ranked([1], qid="#2"), "query '#2'"),
        (ranked([2, 1], docids=["a", "b\tc"]), r"document 'b\tc'"),
        (ranked([1], tag=""), "tag ''"),
        (ranked([3.5e38, 1.0]), "float32"),
        (ranked([1.0, -1e300]), "float32"),
        (ranked([1.0, -FLOAT32_MAX, -FLOAT32_MAX]), "float32"),
    ],
)
def test_runs_that_cannot_be_written(run, part, tmp_path):
    for write in (write_run, lambda run, path: write_rankings(lambda ranking: ranking, run, path, tag=run.tag)):
        refuses(lambda write=write: write(run, tmp_path / "run"), ParameterError, part, "|")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ["1\tgoose\n", "<DOC><DOCNO>1</DOCNO>x</DOC>"])
def test_formats_with_one_text_have_no_other_field(text, tmp_path):
    (tmp_path / "topics").write_text(text)
    refuses(lambda: read_topics(tmp_path / "topics", field="description"), ParameterError, "'description'")
