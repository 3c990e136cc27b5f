import gzip
import random
import tracemalloc

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.base import FormatError, GreylagError, Ranking, Run, Stage
from greylag.base.ranking import SEEN
from greylag.base.runtime import files
from greylag.evaluation import Evaluation, evaluate, fuse_runs, read_run, write_rankings, write_run
from greylag.evaluation.trec.runs import FLOAT32_MAX, RunFile, open_run, strictly_decreasing
from tests.robustness.formats import FORMATS
from tests.robustness.mutations import mutate


class Identity(Stage):
    reads_query = False

    def __call__(self, ranking, /):
        return ranking


names = st.text(
    st.characters(codec="utf-8", exclude_characters="\ufeff\0 \t\n\r\x0b\x0c"), min_size=1, max_size=4
).filter(
    lambda name: name[0] != "#"  # a query of this name cannot be written
)
scores = st.one_of(
    st.floats(-FLOAT32_MAX / 2, FLOAT32_MAX / 2),
    st.floats(0.999999, 1.000001),
    st.sampled_from([0.0, -0.0, 1e-45, -1e-45, 1e-38, 16777217.0]),
)


@st.composite
def rankings(draw, qid):
    docids = draw(st.lists(names, min_size=1, max_size=12, unique=True))
    return Ranking.sort(qid, "", docids, draw(st.lists(scores, min_size=len(docids), max_size=len(docids))))


runs = st.builds(
    Run,
    st.lists(names, min_size=1, max_size=4, unique=True).flatmap(lambda qids: st.tuples(*map(rankings, qids))),
    names,
)


def write(tmp_path, text):
    path = tmp_path / "run"
    path.write_text(text)
    return path


def test_read(tmp_path):
    path = write(tmp_path, "q2 Q0 b 1 2.5 tag\nq2 Q0 a 2 1e-1 tag\nq1\t0 a  1 -3 tag\n")
    run = read_run(path, {"q1": "goose", "q2": "swan", "q3": "duck"})
    tenth = float(np.float32(0.1))
    assert run == Run((Ranking("q2", "swan", ("b", "a"), [2.5, tenth]), Ranking("q1", "goose", ("a",), [-3.0])), "tag")
    assert [ranking.query for ranking in read_run(path).values()] == ["", ""]


def test_float32_ties_are_broken_by_docid_descending(tmp_path):
    path = write(tmp_path, "1 Q0 a 1 1.000000001 t\n1 Q0 B 2 1 t\n1 Q0 é 3 1 t\n1 Q0 b 4 0.999999999 t\n1 Q0 z 5 0 t\n")
    assert read_run(path)["1"].docids == ("é", "b", "a", "B", "z")


@pytest.mark.parametrize(
    "text",
    [
        "1 Q0 c 3 1 t\n1 Q0 b 2 2 t\n2 Q0 a 1 0 t\n1 Q0 a 1 3 t\n",  # neither in order nor together
        "1 Q0 c 9 1 t\n1 Q0 b 7 2 t\n1 Q0 a 0 3 t\n2 Q0 a 1 0 t\n",
        "1 Q0 a 1 3 t\n2 Q0 a 1 0 t\n1 Q0 b 2 2 t\n1 Q0 c 3 1 t\n",
    ],
)
def test_scores_and_ranks_that_agree_are_read_in_any_order_of_lines(*, text, tmp_path):
    for read in (read_run, open_run):
        found = {ranking.qid: ranking.docids for ranking in read(write(tmp_path, text)).rankings}
        assert found == {"1": ("a", "b", "c"), "2": ("a",)}


def test_ranks_of_equal_scores_do_not_matter(tmp_path):
    path = write(tmp_path, "1 Q0 c 4 1 t\n1 Q0 a 2 2 t\n1 Q0 b 3 2 t\n1 Q0 d 1 3 t\n")
    assert read_run(path)["1"].docids == ("d", "b", "a", "c")


@pytest.mark.parametrize(
    ("text", "topics", "docids", "told"),
    [
        ("1 Q0 a 1 3 t\n1 Q0 b 2 2 t x y\n1 Q0 c 3 1 t x\n", None, "abc", ":2: 2 lines have more columns than qid Q0"),
        ("1 Q0 a 1 3 t\n2 Q0 b 1 2 t\n2 Q0 c 2 1 t\n", {"1": "goose"}, "a", ": left out are 1 queries that are not"),
        ("1\tb\t1\n1\ta\t3\n", None, "ba", "1 / rank"),
        ("1 Q0 a 1 2 t\n1 Q0 b 2 2 t\n2 Q0 a 1 1 t\n", {"1": "x"}, "ba", "1 of 1 queries have one score for all"),
    ],
)
def test_oddities_are_told(text, topics, docids, told, tmp_path, caplog):
    caplog.set_level("INFO", logger="greylag")
    path = write(tmp_path, text)
    for read in (read_run, open_run):
        caplog.clear()
        (ranking,) = read(path, topics).rankings
        assert "".join(ranking.docids) == docids
        assert told in caplog.text


def test_scores_that_differ_are_no_oddity(tmp_path, caplog):
    read_run(write(tmp_path, "1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n"))
    assert not caplog.messages


def test_ranks_of_ms_marco(tmp_path):
    path = write(tmp_path, "1\tb\t1\n1\ta\t3\n2\tc\t1\n")
    third, one = float(np.float32(1 / 3)), [1.0]
    assert read_run(path) == Run((Ranking("1", "", ("b", "a"), [1.0, third]), Ranking("2", "", ("c",), one)), "run")
    assert [*open_run(path).rankings] == [*read_run(path).rankings]


def test_training_topics_are_told_wherever_the_run_goes(tmp_path, caplog):
    path, own = tmp_path / "seen.run", tmp_path / "own.run"
    write_run(Run((Ranking("1", "", ("a", "b"), [2.0, 1.0]),), f"x{SEEN}"), path)
    run = read_run(path)
    assert [SEEN in message for message in caplog.messages] == [True]
    assert pytrec_eval.parse_run(path.open()) == {"1": {"a": 2.0, "b": 1.0}}
    other = Run(run.rankings, "other")
    assert [fuse_runs(runs, tag="mine").tag for runs in ([other], [other, run])] == ["mine", f"mine{SEEN}"]
    assert [Identity().run(before, tag="mine").tag for before in (other, run)] == ["mine", f"mine{SEEN}"]
    assert Identity().run(run, tag=f"{run.tag}-y").tag == f"x{SEEN}-y"
    for before in (run, open_run(path)):
        write_rankings(Identity(), before, own, tag="mine")
        assert read_run(own).tag == f"mine{SEEN}"
    names = {"other": other, "run": run}
    told = str(Evaluation({name: evaluate(each, {"1": {"b": 1}}, ["AP"]) for name, each in names.items()}))
    assert [line.startswith("run:") for line in told.splitlines() if "trained on" in line] == [True]


def test_queries_without_documents_are_told(tmp_path, caplog):
    write_rankings(
        lambda query: Ranking(query.qid, "", ("d",) * (query.qid == "2"), [1.0] * (query.qid == "2")),
        {"1": "x", "2": "y", "3": "z"},
        tmp_path / "out",
        tag="t",
    )
    assert caplog.messages == ["2 of 3 queries have no documents, as none has a word of theirs: '1', '3'"]
    caplog.clear()
    searched = Run((Ranking("1", "", ("d",), [1.0]), Ranking("2", "", ("d",), [1.0]), Ranking("3", "", (), ())), "t")
    write_rankings(lambda ranking: ranking.head(int(ranking.qid) - 1), searched, tmp_path / "out", tag="t")
    assert caplog.messages == ["1 of 3 queries have no documents: '1'"]  # of 3, the search has told


@settings(deadline=None)
@given(run=runs)
def test_round_trip_preserves_order_and_bytes(run, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round-trip.run"
    write_run(run, path)
    first = path.read_bytes()
    back = read_run(path)
    assert back.tag == run.tag
    assert [(r.qid, r.docids) for r in back.rankings] == [(r.qid, r.docids) for r in run.rankings]
    write_run(back, path)
    assert path.read_bytes() == first


@settings(deadline=None)
@given(run=runs)
def test_trec_eval_sees_the_order_of_the_rankings(run, tmp_path_factory):
    """Infer the rank of a document from the reciprocal rank with only that document relevant."""
    path = tmp_path_factory.getbasetemp() / "trec-eval.run"
    write_run(run, path)
    for ranking in run.rankings:
        for rank, docid in enumerate(ranking.docids, 1):
            evaluator = pytrec_eval.RelevanceEvaluator({ranking.qid: {docid: 1}}, ["recip_rank"])
            assert evaluator.evaluate(_original_scores(path))[ranking.qid]["recip_rank"] == 1 / rank


@pytest.mark.parametrize("seed", range(5))
def test_evaluation_equals_trec_eval_on_the_original_file(seed, tmp_path):
    """Scores with many ties, in float64 or only in float32, and queries that only the run or the qrels have."""
    rng = np.random.default_rng(seed)
    docids = [f"d{i}" for i in range(40)]
    qrels = {f"q{q}": {d: int(rng.integers(-1, 4)) for d in rng.permutation(docids)[:25]} for q in range(1, 8)}
    lines = []
    for q in range(6):
        values = -np.sort(-np.round(rng.normal(size=30), 1) - 1e-10 * rng.integers(0, 2, 30))
        for rank, (docid, value) in enumerate(zip(rng.permutation(docids), values, strict=False), 1):
            lines.append(f"q{q} Q0 {docid} {rank} {value} t\n")
    path = write(tmp_path, "".join(lines))
    measures = "map ndcg ndcg_cut_7 P_5 recip_rank recall_10 bpref Rprec map_cut_3 success_2".split()
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(_original_scores(path))
    scores = evaluate(read_run(path), qrels, measures)
    for qid, row in zip(scores.qids, scores.values, strict=True):
        assert row.tolist() == [expected.get(qid, {}).get(measure, 0.0) for measure in measures]
    assert (scores.missing, scores.unjudged) == (("q6", "q7"), ("q0",))


def test_only_ties_are_lowered():
    one = np.float32(1)
    below = np.nextafter(one, np.float32(0))
    below_that = np.nextafter(below, np.float32(0))
    lowered = strictly_decreasing(np.array([3.5, 1.0, 1.0, 1 - 1e-12, 0.5, 0.1]))
    assert lowered.tolist() == [3.5, 1.0, below, below_that, 0.5, float(np.float32(0.1))]


@settings(deadline=None)
@given(st.lists(scores, max_size=30))
def test_lowering_equals_its_sequential_definition(values):
    values = np.sort(np.array(values))[::-1]
    expected, last = [], np.float32(np.inf)
    for value in values.astype(np.float32):
        last = min(value, np.nextafter(last, np.float32(-np.inf)))
        expected.append(last)
    assert strictly_decreasing(values).tolist() == expected


def test_the_full_range_of_float32_is_written(tmp_path):
    run = Run((Ranking("1", "", ("a", "b", "c"), [FLOAT32_MAX, 1e-45, -FLOAT32_MAX]),))
    write_run(run, tmp_path / "run")
    tiny = float(np.float32(1e-45))
    assert read_run(tmp_path / "run")["1"].scores.tolist() == [FLOAT32_MAX, tiny, -FLOAT32_MAX]


def test_real_run(data):
    run = read_run(data("ambient") / "candidates.run")
    assert (len(run), sum(map(len, run.values())), run.tag) == (44, 4400, "original")
    assert run["1"].docids == tuple(f"1.{i}" for i in range(1, 101))


def _original_scores(path):
    with open(path, encoding="utf-8", newline="\n") as lines:
        rows = [line.encode().split() for line in lines]
    given = {}
    for qid, _, docid, _, score, _ in rows:
        given.setdefault(qid.decode(), {})[docid.decode()] = float(score)
    return given


def backwards(ranking):
    return ranking.permute(range(len(ranking))[::-1])


def lines_of(n_queries, depth=5):
    return "".join(
        f"q{q} Q0 d{q * 31 % 17}x{d} {d + 1} {(depth - d) / 7!r} bm25\n" for q in range(n_queries) for d in range(depth)
    )


@pytest.fixture(params=[7, 64, 1 << 20])
def block(request, monkeypatch):
    """The size of the blocks that files are read in."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", request.param)
    return int(request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("name", ["a.run", "a.run.gz"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_query_at_a_time(tmp_path, name, end):
    path, content = tmp_path / name, (lines_of(40).rstrip("\n") + end).encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    topics = {f"q{q}": f"text {q}" for q in range(50)}
    opened, whole = open_run(path, topics), read_run(path, topics)
    assert isinstance(opened, RunFile)
    assert (opened.tag, list(opened), len(opened)) == (whole.tag, list(whole), len(whole))
    assert list(opened.rankings) == list(whole.rankings)
    assert list(opened.rankings) == list(whole.rankings)  # again


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_any_file_is_read_or_refused_as_at_once(tmp_path_factory, seed):
    rng, path = random.Random(seed), tmp_path_factory.mktemp("run") / "a.run"
    sample = FORMATS["run"].make(rng)
    for content in (sample, *(mutate(rng, sample)[1] for _ in range(5))):
        path.write_bytes(content)
        for lenient in (False, True):
            assert outcome(path, lenient, whole=False) == outcome(path, lenient, whole=True)


@pytest.mark.parametrize(
    "content", [b"x" * 10**7, b"x" * 10**7 + b" Q0 d 1 1 t\n", b"1 " * 10**6, b"1 Q0 d 1" + b"1" * 10**7]
)
def test_long_words_are_read_in_linear_time(tmp_path, content):
    """If the time were quadratic, it would be a day."""
    (tmp_path / "a.run").write_bytes(content)
    assert outcome(tmp_path / "a.run", lenient=False, whole=False) == outcome(
        tmp_path / "a.run", lenient=False, whole=True
    )


def outcome(path, lenient, *, whole):
    try:
        if whole:
            return list(read_run(path, lenient=lenient).rankings)
        return list(open_run(path, lenient=lenient).rankings)
    except GreylagError as error:
        return str(error)


def test_a_file_that_changes_while_it_is_read(tmp_path):
    (tmp_path / "a.run").write_text(lines_of(3))
    opened = open_run(tmp_path / "a.run")
    (tmp_path / "a.run").write_text(lines_of(3, depth=6))
    with pytest.raises(FormatError, match="has changed while it was read"):
        list(opened.rankings)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_file_is_that_of_write_run(tmp_path, n_jobs):
    (tmp_path / "a.run").write_text(lines_of(300))
    whole = read_run(tmp_path / "a.run")
    write_run(Run(tuple(map(backwards, whole.rankings)), "b"), tmp_path / "expected")
    write_rankings(backwards, open_run(tmp_path / "a.run"), tmp_path / "b", tag="b", n_jobs=n_jobs)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "expected").read_bytes()
    write_rankings(backwards, whole, tmp_path / "c", tag="b", n_jobs=n_jobs)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "expected").read_bytes()


def test_topics_are_ranked_by_a_source(tmp_path):
    def words(query):
        found = query.text.split()
        return Ranking(query.qid, query.text, tuple(found), [*range(len(found), 0, -1)])

    write_rankings(words, {"1": "a b", "2": "", "3": "c"}, tmp_path / "a.run", tag="words")
    assert (tmp_path / "a.run").read_text() == "1 Q0 a 1 2.0 words\n1 Q0 b 2 1.0 words\n3 Q0 c 1 1.0 words\n"


def test_memory_does_not_grow_with_the_number_of_queries(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1 << 14)

    def peak(n_queries):
        with (tmp_path / "a.run").open("w") as file:
            file.writelines(lines(n_queries))
        tracemalloc.start()
        write_rankings(backwards, open_run(tmp_path / "a.run"), tmp_path / "b.run", tag="b")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def lines(n_queries):
        return (f"q{q} Q0 d{d} {d + 1} {60 - d} bm25\n" for q in range(n_queries) for d in range(60))

    peak(10)
    assert peak(800) < peak(400) + 200_000  # the file grows by 540,000 bytes
