"""Feature files: lossless round trips, and the format of the LETOR collections.

Tests `greylag.evaluation.trec.letor`.
"""

import random
from itertools import chain

import numpy as np
import pytest
from fastrank import CDataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

import greylag
from greylag.base import FormatError, ParameterError, Ranking
from greylag.base.runtime import files
from greylag.evaluation.trec import letor
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.index.positional import PositionalIndex
from greylag.learning.extraction import training_data
from greylag.learning.greedy import GreedySelection
from greylag.learning.letor import FIRST_NAMED_QID, read_letor, read_scores, write_features
from tests.greylag.learning.samples import row_name, row_names
from tests.refusals import refuses

NUMBER = str(FIRST_NAMED_QID + 1)


@pytest.mark.parametrize("name", ["features.txt", "features.txt.gz"])
@pytest.mark.parametrize("with_qrels", [False, True])
def test_reads_back_what_was_written(tmp_path, name, with_qrels):
    rng = np.random.default_rng(2)
    words = ["cat", "dog", "pig", "cow"]
    index = PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(words, size=9)) for i in range(30)})
    extract = FeatureExtractor(index, candidate_pool("sd"))
    docids = tuple(f"d{i}" for i in range(30))
    rankings = [Ranking(f"q{i}", " ".join(rng.choice(words, size=2)), docids[i:], np.zeros(30 - i)) for i in range(4)]
    qrels = {f"q{i}": {f"d{d}": int(rng.integers(-1, 3)) for d in range(10)} | {"lost": 2, "d29": 1} for i in range(4)}
    names = [str(spec) for spec in extract.specs]
    write_features(tmp_path / name, names, ((ranking, extract(ranking)) for ranking in rankings), qrels)
    data = read_letor(tmp_path / name, qrels if with_qrels else None)
    expected = training_data(rankings, qrels, extract)
    assert (data.names, data.qids, data.docids) == (expected.names, expected.qids, expected.docids)
    for found, own in zip(
        (data.features, data.grades, data.offsets), (expected.features, expected.grades, expected.offsets), strict=True
    ):
        np.testing.assert_array_equal(found, own)
    for found, own, ranking in zip(data.relevant_grades, expected.relevant_grades, rankings, strict=True):
        ranked = [g for d, g in qrels[ranking.qid].items() if g > 0 and d in ranking.docids]
        assert found.tolist() == (own.tolist() if with_qrels else sorted(ranked, reverse=True))
    if with_qrels:
        learner = GreedySelection("AP", max_features=2)
        assert learner.fit(data) == learner.fit(expected)


def test_an_archive_has_the_same_with_grade_0_for_what_is_not_judged(tmp_path):
    rankings = [Ranking("q1", "", ("a", "b", "c"), np.zeros(3)), Ranking("q2", "", ("a",), np.zeros(1))]
    values = [np.array([[1.0], [2.0], [3.0]]), np.array([[4.0]])]
    write_features(tmp_path / "x.npz", ["f"], zip(rankings, values, strict=True), {"q1": {"b": 2, "c": -1}})
    arrays = np.load(tmp_path / "x.npz")
    assert {name: arrays[name].tolist() for name in arrays} == {
        "features": [[1.0], [2.0], [3.0], [4.0]], "names": ["f"], "qids": ["q1", "q1", "q1", "q2"],
        "docids": ["a", "b", "c", "a"], "grades": [0, 2, -1, 0],
    }  # fmt: skip


def test_reads_the_format_of_the_letor_collections(tmp_path):
    path = tmp_path / "letor.txt"
    path.write_text(
        "2 qid:10032 1:0.056537 3:0.666667 #docid = GX029-35-5894638 inc = 0.0119 prob = 0.139842\n"
        "0 qid:10032 2:-1e-3 # GX030-77-6315042\n1 qid:7 4:5\n"
    )
    data = read_letor(path)
    assert data.names == ("1", "2", "3", "4")
    assert data.docids == ("GX029-35-5894638", "GX030-77-6315042", row_name({4: 5.0}))
    assert data.features.tolist() == [[0.056537, 0, 0.666667, 0], [0, -1e-3, 0, 0], [0, 0, 0, 5]]
    assert (data.grades.tolist(), data.offsets.tolist(), data.qids) == ([2, 0, 1], [0, 2, 3], ("10032", "7"))


def test_names_may_stand_in_a_comment_before_the_first_document_and_blank_lines_anywhere(tmp_path):
    path = tmp_path / "letor.txt"
    path.write_text("# by hand\n\n# 1=bm25 3=age\n1 qid:7 1:5 2:6 3:7 # d 3=years\n \t\n# 2=later\n0 qid:7 1:8\n\n")
    data = read_letor(path)
    assert (data.names, data.docids) == (("bm25", "2", "years"), ("d", row_name({1: 8.0})))
    assert data.features.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert np.shares_memory(data.features, data.columns)


SCANNED = 0, 1 << 60  # bytes of a file from which on the compiled reader is asked first
D, E = "1 qid:1 1:2 # d\n", "1 qid:1 1:2 # e\n"
BAD = {
    "no line with a document": ["# nothing\n"],
    ":1: 100001": ["# 100001=a\n1 qid:7 1:5 # d\n"],
    ":3: 00": ["1 qid:7 1:5\n\n0 qid:7 00:6\n"],
    ":1: no qid": ["1 1:2 # d\n", "1\n", "1 qid: 1:2 # d\n"],
    ":1: grade integer": ["2.0 qid:1 1:2", "1_0 qid:1 1:2", "\u0661 qid:1 1:2", "1234567890 qid:1 1:1"],
    ":1: form": ["1 qid:1 1 # d\n", "1 qid:1 1:0.1 2", "1 qid:1 #\n", "1 qid:1 \u0661:2", "1 qid:1 1000000000:2"],
    ":1: feature 1 finite": ["1 qid:1 1:1_0", "1 qid:1 1:nan", "1 qid:1 1:0x1", "1 qid:1 1:1.2.3", "1 qid:1 1:1e"],
    ":1: feature 1 twice": ["1 qid:1 1:2 1:3 # d\n"],
    ":2: feature 1 twice": [f"{D}1 qid:1 1:2 1:3 # e\n"],
    ":2: feature 2 twice": ["1 qid:1 1:2\n1 qid:1 2:2 1:3 2:4 # d\n"],
    ":2: feature 3 1e+100": [f"{D}1 qid:1 3:-1e101 # e\n"],
    ":1: feature 1 beyond": ["1 qid:1 1:1e400 # d\n"],
    ":1: names 1000000000": ["1 qid:1 1:2 # d 1=a 1000000000=b\n"],
    ":1: 100000000: 100000": ["1 qid:1 100000000:2 # d\n"],
    "'1' contiguous": [f"{D}1 qid:2 1:2 # d\n{E}"],
    "'1' 'd' twice": [D + D, D + E + D],
    ":4: form": ["1 qid:1 1:2\n1 qid:1 1:2\n\n1 qid:1\n"],
    ":3: feature 1": ["1 qid:1 1:2\n1 qid:1 1:2\n1 qid:1 1:\xe9"],
    ":3: NUL": ["1 qid:1 1:2\n1 qid:1 1:2\n1 qid:1 1:2\0"],
    "empty": ["\n \n\n \n" * 10],
    ":1: carriage return": ["1 qid:1 1:2 # d\r0 qid:1 1:3 # e\r", "1 qid:1 1:2\r0 qid:1 1:3\r\n"],
}


@pytest.mark.parametrize("block", [1, 20, letor.BLOCK_BYTES])
@pytest.mark.parametrize("parts", BAD)
@pytest.mark.parametrize("scanned", SCANNED)
def test_bad_files(tmp_path, parts, block, scanned, monkeypatch):
    monkeypatch.setattr(letor, "MIN_BYTES", scanned)
    for text in BAD[parts]:
        monkeypatch.setattr(letor, "BLOCK_BYTES", block)
        monkeypatch.setattr(files, "_BLOCK_BYTES", block)
        (tmp_path / "f.txt").write_bytes(text.encode())
        refuses(lambda: read_letor(tmp_path / "f.txt"), FormatError, parts)


@pytest.mark.parametrize("name", ["a\x85b", "a\u2028b", "a\x1cb", "docid=5", "a#b", "1=x", "\u0661"])
def test_names_with_odd_characters_are_read_back(tmp_path, name):
    ranking = Ranking(name.replace("#", ""), "x", (name, "d"), np.array([2.0, 1.0]))
    write_features(tmp_path / "f.txt", [name, "b"], [(ranking, np.eye(2))])
    data = read_letor(tmp_path / "f.txt")
    assert (data.names, data.qids, data.docids) == ((name, "b"), (ranking.qid,), (name, "d"))


def test_more_values_than_fit_in_memory_are_refused(tmp_path):
    (tmp_path / "f.txt").write_text("".join(f"1 qid:1 100000:1 # d{i}\n" for i in range(50_000)))
    refuses(lambda: read_letor(tmp_path / "f.txt"), FormatError, "50000 100000 memory")


def test_names_that_cannot_be_read_back_are_refused(tmp_path):
    for qid, docid, name in (("a b", "d", "f"), ("1", "", "f"), ("1", "d", "f g"), ("#", "d", "f")):
        rows = [(Ranking(qid, "x", (docid,), np.ones(1)), np.ones((1, 1)))]
        refuses(lambda: write_features(tmp_path / "f.txt", [name], rows), ParameterError, "rename it", "|")  # noqa: B023
    assert not list(tmp_path.iterdir())


def test_fastrank_reads_what_was_written(tmp_path):
    path = tmp_path / "letor.txt"
    rankings = [Ranking(qid, "x", ("d1", "d2"), np.array([2.0, 1.0])) for qid in ("7", "8")]
    features = np.array([[1.5, -2.0], [0.0, 1e-9]])
    write_features(path, ["FI/term/LM", "FI/term/BM25"], [(ranking, features) for ranking in rankings])
    data = CDataset.open_ranksvm(str(path))
    assert (data.num_instances(), sorted(data.queries())) == (4, ["7", "8"])


CELLS = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.one_of(
            st.floats(-1e100, 1e100).map(repr),
            st.from_regex(r"[-+]?([0-9]{1,4}\.?[0-9]{0,4}|\.[0-9]{1,9})([eE][-+]?[0-8]?[0-9])?", fullmatch=True),
        ),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda cell: cell[0],
)
LINES = st.tuples(
    st.sampled_from(["-1", "0", "+2", "4"]),
    CELLS,
    st.sampled_from([" ", "  ", "\t", " \x0b"]),
    st.sampled_from(["", "#", "# docid = {} inc = 1", " # {} 1=a 3=b", "#{}"]),
)


@pytest.mark.parametrize("block", [1, 100, letor.BLOCK_BYTES])
@pytest.mark.parametrize("scanned", SCANNED)
@given(lines=st.lists(LINES, min_size=1, max_size=8), ended=st.booleans(), remark=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_reads_what_a_split_at_spaces_gives(*, tmp_path, block, scanned, lines, ended, remark):
    text, rows = "# remark\n" if remark else "", []
    for number, (grade, cells, space, comment) in enumerate(lines):
        words = [grade, f"qid:{number // 3}", *(f"{feature}:{value}" for feature, value in cells)]
        text += space.join(words) + comment.format(f"d{number}") + "\n"
        docid = f"d{number}" if "{" in comment else None
        rows.append((int(grade), docid, {feature: float(value) for feature, value in cells}))
    path = tmp_path / "f.txt"
    path.write_text(text if ended else text.removesuffix("\n"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letor, "BLOCK_BYTES", block)
        patch.setattr(files, "_BLOCK_BYTES", block)
        patch.setattr(letor, "MIN_BYTES", scanned)
        data = read_letor(path)
    width = max(feature for _, _, values in rows for feature in values)
    if any("1=a 3=b" in comment for *_, comment in lines[:1]):
        width = max(width, 3)
    expected = [[values.get(feature, 0.0) for feature in range(1, width + 1)] for _, _, values in rows]
    assert repr(data.features.tolist()) == repr(expected)  # tells -0.0 from 0.0
    names = row_names((number // 3, docid, values) for number, (_, docid, values) in enumerate(rows))
    assert (data.grades.tolist(), data.docids) == ([row[0] for row in rows], tuple(names))
    assert data.offsets.tolist() == [*range(0, len(rows), 3), len(rows)]


ODD = """ 0:1 00:1 :1 1:nan x 1:1 07:1 -1:2 2:0x1 2:1_0 2:. 3:1e 3:+.5e-3 4:1e99 4:1e101 5:1. 99999:0 100000:1 100001:1
6:-0 #docid = d7 inc # d4 qid=one #\xe9 qid= # d5\x1cqid=a # #d 1=a \xe9 \x0b \x7f qid:2 12345678901 \r""".split(" ")
NUMBERS = "9007199254740993 0.1234567890123456789 4.35 0.30000000000000004 1e-22 1e22 12345678901234567e-30".split()


def random_features(rng):
    lines = []
    numbered = range(rng.choice([0, 1]), 30)
    for row in range(rng.randint(1, 20)):
        digits = f".{rng.choice([1, 6, 15, 17])}{rng.choice('fge')}"
        cells = [f"{number}:{rng.uniform(-9, 9):{digits}}" for number in sorted(rng.sample(numbered, 4))]
        comment = rng.choice(["", "", f"# d{row}", f"#docid = d{row} inc = 1", f"# d{row} qid=q{row // 5}"])
        lines.append([str(rng.randint(-1, 4)), f"qid:{row // 5}", *cells, *comment.split(" ")])
    for _ in range(rng.choice([0, 0, 1, 2])):
        line = rng.choice(lines)
        line.insert(rng.randint(0, len(line)), rng.choice([*ODD, *(f"31:{number}" for number in NUMBERS)]))
    ends = [*["\n"] * 40, "\n\n", " \n", "\n# 1=one\n", "\r\n"]
    return "".join(rng.choice([" ", " ", "\t", "  "]).join(line) + rng.choice(ends) for line in lines).encode()


def test_both_readers_agree(tmp_path, monkeypatch):
    path, rng, used, read = tmp_path / "f.txt", random.Random(0), [], letor.scan_features
    monkeypatch.setattr(letor, "scan_features", lambda *given: used.append(read(*given)) or used[-1])
    for size in [1, 200, letor.BLOCK_BYTES] * 70:
        path.write_bytes(random_features(rng))
        monkeypatch.setattr(letor, "BLOCK_BYTES", size)
        monkeypatch.setattr(files, "_BLOCK_BYTES", size)
        found = []
        for scanned in SCANNED:
            monkeypatch.setattr(letor, "MIN_BYTES", scanned)
            try:
                data = read_letor(path)
                rest = data.qids, data.docids, data.names, data.grades.tolist(), data.offsets.tolist()
                found.append((data.features.shape, data.features.tobytes(), *rest))
            except FormatError as error:
                found.append((str(error),))
        assert found[0] == found[1], path.read_bytes()
    assert 150 < sum(one is not None for one in used) < len(used) - 100


def test_qids_that_are_not_numbers_are_numbered_for_other_programs(tmp_path):
    """scikit-learn, an independent reader, takes the file; greylag has the names back."""
    from sklearn.datasets import load_svmlight_file

    qids = ["q-1", "7", "PLAIN-2", "007", "9" * 20, "é", NUMBER, "900000000", "2147483648"]
    rows = [
        (Ranking(qid, "", ("a", "b"), [2.0, 1.0]), np.array([[i + 0.5, 1.0], [0.0, 2.0]])) for i, qid in enumerate(qids)
    ]
    write_features(tmp_path / "f.txt", ["one", "two"], rows)
    data = read_letor(tmp_path / "f.txt")
    assert (data.qids, data.names, data.docids) == (tuple(qids), ("one", "two"), ("a", "b") * len(qids))
    values, _, numbers = load_svmlight_file(str(tmp_path / "f.txt"), query_id=True)
    np.testing.assert_array_equal(values.toarray(), data.features)
    given = [1, None, 2, 3, 4, 5, 6, None, 7]
    expected = [int(qid) if n is None else 900_000_000 + n for qid, n in zip(qids, given, strict=True)]
    assert numbers.tolist() == np.repeat(expected, 2).tolist()
    scores = "".join(f"{qid}\t{i}\t{3 - i}\n" for qid in expected for i in range(2))  # as RankLib writes them
    (tmp_path / "scores").write_text(scores)
    assert [ranking.qid for ranking in read_scores(tmp_path / "scores", tmp_path / "f.txt").rankings] == qids


@pytest.fixture(params=["features.txt", "features.npz"])
def scored(request, tmp_path):
    """The features of two queries, one of them without a number."""
    rankings = [Ranking("q1", "", ("b", "a", "c"), [3.0, 2.0, 1.0]), Ranking("7", "", ("a", "d"), [2.0, 1.0])]
    write_features(tmp_path / str(request.param), ["x"], ((one, np.zeros((len(one), 1))) for one in rankings))
    return tmp_path / str(request.param)


@pytest.mark.parametrize(
    "text",
    [
        "0.5\n0.5\n2\n-1\n1e-3\n",
        "900000001\t0\t0.5\n900000001\t1\t0.5\n900000001\t2\t2\n7\t0\t-1\n7\t1\t1e-3\n",
        "q1 0 0.5\nq1 1 0.5\nq1 2 2\n7 0 -1\n7 1 1e-3\n",
    ],
)
def test_scores_of_other_programs_are_a_run(scored, text):
    path = scored.with_name("trees.scores")
    path.write_text(text)
    run = read_scores(path, scored)
    assert run.tag == "trees"
    assert [(one.qid, one.docids, one.scores.tolist()) for one in run.rankings] == [
        ("q1", ("c", "b", "a"), [2.0, 0.5, 0.5]),
        ("7", ("d", "a"), [0.001, -1.0]),
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1\n2\n3\n4\n", "4 5"),
        ("1\n2\n3\n4\n5\n6\n", "6 5"),
        ("1\nnan\n3\n4\n5\n", "trees:2: 'nan' finite"),
        ("1\n2 3\n", "trees:2: 2 columns"),
        ("7 0 1\n", "trees:1: '0' '7' 'q1'"),
        ("8 0 1\n8 2 1\n", "trees:2: '2' '8' 1 'q1'"),
        ("d1 Q0 a 1 2.0 t\n", "trees:1: 6 columns"),
    ],
)
def test_scores_of_other_documents_are_refused(scored, text, parts):
    (scored.parent / "trees").write_text(text)
    refuses(lambda: read_scores(scored.parent / "trees", scored), FormatError, parts)


def test_other_arrays_are_refused(tmp_path):
    scores, path = tmp_path / "scores", tmp_path / "x.npz"
    scores.write_text("1\n2\n3\n")
    for arrays, parts in (({}, "x.npz: qids"), ({"qids": np.array(["1", "2", "1"])}, "x.npz: contiguous")):
        np.savez(path, docids=["a", "b", "c"], **arrays)
        refuses(lambda: read_scores(scores, path), FormatError, parts)


@pytest.mark.parametrize("block", [1, 30, 1 << 26])
def test_features_are_numbered_from_0_if_a_line_has_it(block, tmp_path, monkeypatch, caplog):
    """Also if most blocks of the file begin with 1; scikit-learn reads the same."""
    caplog.set_level("INFO", "greylag")
    monkeypatch.setattr(letor, "BLOCK_BYTES", block)
    text = "".join(f"{n % 2} qid:{n // 3} {'0:7 ' if n == 8 else ''}1:{n} 3:{n / 8}\n" for n in range(12))
    (tmp_path / "f.txt").write_text(text)
    data = read_letor(tmp_path / "f.txt")
    expected = load_svmlight_file(str(tmp_path / "f.txt"), zero_based=True)[0].toarray()
    np.testing.assert_array_equal(data.X, expected)
    assert (data.names, caplog.messages) == (tuple("0123"), [f"{tmp_path / 'f.txt'}: features are numbered from 0"])
    caplog.clear()
    (tmp_path / "f.txt").write_text(text.replace("0:7 ", ""))
    np.testing.assert_array_equal(read_letor(tmp_path / "f.txt").X, expected[:, 1:])
    assert not caplog.messages
    (tmp_path / "f.txt").write_text(f"# 1=bm25 3=age\n{text}")
    assert greylag.read_letor(tmp_path / "f.txt").names == ("0", "bm25", "2", "age")


@pytest.mark.parametrize("scanned", SCANNED)
@pytest.mark.parametrize("block", [1, 300, letor.BLOCK_BYTES])
@pytest.mark.parametrize("seed", range(3))
def test_documents_without_docids_are_named_by_their_values_alone(tmp_path, scanned, block, seed, monkeypatch):
    """Whatever their line, grade, file and spelling of numbers; equal ones are numbered."""
    monkeypatch.setattr(letor, "MIN_BYTES", scanned)
    monkeypatch.setattr(letor, "BLOCK_BYTES", block)
    monkeypatch.setattr(files, "_BLOCK_BYTES", block)
    rng, path = np.random.default_rng(seed), tmp_path / "f.txt"
    values = [(qid, row) for qid in range(6) for row in rng.choice([0, -0.0, 1, 2.5], size=(9, 3)).tolist()]
    grades = [int(sum(row) > 2) for _, row in values]
    expected = row_names((qid, None, dict(enumerate(row, 1))) for qid, row in values)

    def read(places, spelt, *, without_zeros=False):
        """Read lines, with numbers as they are spelt; the query, docid and grade of each row, sorted."""
        lines = []
        for place in places:
            qid, row = values[place]
            cells = [f"{n}:{x:{spelt}}" for n, x in enumerate(row, 1) if x or n == 1 or not without_zeros]
            lines.append(f"{grades[place]} qid:{qid} {' '.join(cells)}\n")
        path.write_text("".join(lines))
        data = read_letor(path)
        return sorted(zip(np.repeat(data.qids, data.groups).tolist(), data.docids, data.grades.tolist(), strict=True))

    whole = sorted((str(qid), name, grade) for (qid, _), name, grade in zip(values, expected, grades, strict=True))
    assert any(name.endswith("-2") for _, name, _ in whole)
    assert read(range(54), ".1f") == whole
    shuffled = [9 * qid + place for qid in rng.permutation(6).tolist() for place in rng.permutation(9).tolist()]
    assert read(shuffled, "+.3e") == whole
    assert read(shuffled, "", without_zeros=True) == whole
    parts = [read(shuffled[first : first + 18], ".20f", without_zeros=first == 18) for first in (0, 18, 36)]
    assert sorted(chain.from_iterable(parts)) == whole
    grades = rng.permutation(grades).tolist()
    assert [row[:2] for row in read(range(54), ".1f")] == [row[:2] for row in whole]


def test_a_name_of_two_different_documents_is_refused(tmp_path, monkeypatch):
    """As a collision of digests would give; rows of other queries, or with docids, may have it, too."""
    monkeypatch.setattr(letor, "digest_rows", lambda features, start: np.zeros(len(features), np.uint64))
    path = tmp_path / "f.txt"
    path.write_text("1 qid:1 1:1\n1 qid:2 1:2\n1 qid:2 1:2 2:-0\n0 qid:2 1:3 # d\n")
    assert read_letor(path).docids == (f"row-{0:016}", f"row-{0:016}", f"row-{0:016}-2", "d")
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    refuses(lambda: read_letor(path), FormatError, "f.txt: row-0000000000000000 two write docids")
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2 # row-0000000000000000\n")
    refuses(lambda: read_letor(path), FormatError, "'1' 'row-0000000000000000' twice")
