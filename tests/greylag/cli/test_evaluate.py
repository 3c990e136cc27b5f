import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from greylag.cli.options import parse_measures
from greylag.reports import compare
from greylag.reports.evaluation import FORMS
from greylag.trec import read_qrels, read_run
from tests.greylag.cli.conftest import write_qrels
from tests.greylag.studies.samples import Page
from tests.processes import run


@pytest.fixture
def runs(command, made, collection, tmp_path):
    """BM25's run and one of query likelihood."""
    assert command("search", *collection, "--out", tmp_path / "ql.run", "--model", "ql")[0] == 0
    return [made / "bm25.run", tmp_path / "ql.run"]


def test_topics_restrict_runs_and_judgements(command, refused, made, tmp_path):
    """A split by topics alone: the figures are those of files that were cut by hand."""
    lines = (made / "topics.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "test.tsv").write_text("".join(lines[16:]))
    qids = {line.split("\t")[0] for line in lines[16:]}
    for name in ("bm25.run", "qrels.txt"):
        kept = [line for line in (made / name).read_text().splitlines(keepends=True) if line.split()[0] in qids]
        (tmp_path / name).write_text("".join(kept))
    whole = command("evaluate", "--topics", tmp_path / "test.tsv", "--qrels", made / "qrels.txt", made / "bm25.run")
    part = command("evaluate", "--qrels", tmp_path / "qrels.txt", tmp_path / "bm25.run")
    assert whole[0] == part[0] == 0
    assert whole[1].split()[-3:] == part[1].split()[-3:]
    assert "16 judged queries that are not among the topics" in whole[2]
    assert "16 queries that are not among the topics" in whole[2]
    (tmp_path / "none.tsv").write_text("none\tgoose\n")
    assert "no query in common with" in refused(
        "evaluate", "--topics", tmp_path / "none.tsv", "--qrels", made / "qrels.txt", made / "bm25.run"
    )


def test_a_figure_of_the_changes(command, refused, made, runs, tmp_path):
    words = ["evaluate", "--qrels", made / "qrels.txt", runs[1], "-m", "nDCG@10"]
    plain = command(*words, "--baseline", runs[0])
    assert command(*words, "--baseline", runs[0], "--out-figure", tmp_path / "changes.svg") == plain
    drawn = (tmp_path / "changes.svg").read_text()
    assert drawn.count("<rect") == len((made / "topics.tsv").read_text().splitlines())
    assert "change of nDCG@10" in drawn
    assert f"{runs[1]} against {runs[0]}" in drawn
    wrong = [*words, "--baseline", runs[0], "--out-figure"]
    assert "a figure is written as .svg, .pdf or .png" in refused(*wrong, tmp_path / "x.gif")
    assert "is the input" in refused(*wrong, runs[1])
    named = [*words[:-3], f"RUN={runs[1]}", "--baseline", runs[0], "--out-figure", runs[1]]
    assert "is the input" in refused(*named)


def test_nuggets_keep_their_importance(command, refused, tmp_path):
    """Also where topics choose the queries that are scored."""
    nuggets = [("n1", "vital", "partial_support"), ("n2", "okay", "support"), ("n3", "vital", "not_support")]
    keys = ("text", "importance", "assignment")
    record = {"docid": "a", "nuggets": [dict(zip(keys, nugget, strict=True)) for nugget in nuggets]}
    (tmp_path / "nuggets.jsonl").write_text("".join(json.dumps({"qid": qid, **record}) + "\n" for qid in "12"))
    (tmp_path / "topics.tsv").write_text("1\tgeese\n")
    (tmp_path / "a.run").write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n")
    words = ["evaluate", "--subtopics", "--qrels", tmp_path / "nuggets.jsonl", tmp_path / "a.run"]
    words += ["--topics", tmp_path / "topics.tsv", "--format", "json"]
    names = ["Coverage(rel=2,importance=vital,partial=0.5)@20", "Coverage(rel=2,importance=weighted)@20"]
    code, out, _ = command(*words, "-m", names[0], "-m", names[1])
    assert code == 0
    means = json.loads(out)["runs"][str(tmp_path / "a.run")]["means"]
    assert means == pytest.approx({names[0]: 0.5 / 2, names[1]: 0.5 / 2.5})


@pytest.mark.parametrize(
    ("name", "measure", "proposed"),
    [
        ("dl19-passage", "AP", True),
        ("dl23-passage", "RR@10", True),
        ("irds:msmarco-passage/trec-dl-2020/judged", "R@1000", True),
        ("irds:msmarco-passage-v2/trec-dl-2022", "AP", True),
        ("dl19-passage", "nDCG@10", False),
        ("dl19-passage", "AP(rel=2)", False),
        ("dl19-doc", "AP", False),
        ("irds:msmarco-document/trec-dl-2019", "AP", False),
        ("irds:msmarco-passage/dev/small", "RR@10", False),
        ("qrels.txt", "AP", False),
    ],
)
def test_a_level_is_proposed_where_published_figures_have_it(name, measure, proposed, caplog):
    """As in Pyserini's reproductions: level 2 for passages of the deep learning tracks, 1 for documents."""
    assert [str(found) for found in parse_measures([measure], Path(name))] == [measure]
    assert ("(rel=2)" in caplog.text) == proposed
    caplog.clear()
    parse_measures(["AP(rel=1)"], Path(name))
    assert not caplog.text


OPTIONS = {
    "": {},
    "--baseline BASE --margin 0.02 --test wilcoxon": {"baseline": "BASE", "margin": 0.02, "test": "wilcoxon"},
    "--all-pairs --correction bh": {"all_pairs": True, "correction": "bh"},
    "--baseline BASE --unjudged": {"baseline": "BASE", "unjudged": True},
    "--baseline BASE --predicted PREDICTED": {"baseline": "BASE", "predicted": "PREDICTED"},
    "--per-query": {},
}


@pytest.mark.parametrize("words", OPTIONS)
def test_the_shell_and_python_print_the_same(command, made, runs, half, predicted, words):
    files = {"BASE": runs[0], "QL": runs[1], "half": half}
    qrels = predicted[1] if "predicted" in OPTIONS[words] else made / "qrels.txt"
    options = {key: predicted[3] if value == "PREDICTED" else value for key, value in OPTIONS[words].items()}
    found = compare(files, qrels, ["AP", "nDCG@10"], **options)
    named = [f"{name}={path}" for name, path in files.items()]
    given = [predicted[3] if word == "PREDICTED" else word for word in words.split()]
    for form in FORMS:
        line = ["evaluate", *named, "--qrels", qrels, "-m", "AP", "-m", "nDCG@10", "--format", form, *given]
        code, out, _ = command(*line)
        shown = found.format(form, per_query="per-query" in words)
        assert (code, out.removesuffix("\n")) == (0, shown.removesuffix("\n")), form
        assert form != "text" or "per-query" in words or out == f"{found}\n"


@pytest.fixture
def half(made, tmp_path):
    """BM25's run with half of its documents under new names."""
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    path = tmp_path / "half.run"
    path.write_text("".join(line.replace(" Q0 ", " Q0 new-") if n % 2 else line for n, line in enumerate(lines)))
    return path


def test_a_run_with_more_unjudged_documents_is_told(command, made, half):
    words = ["evaluate", "--qrels", made / "qrels.txt", made / "bm25.run"]
    assert f"{made / 'bm25.run'} is given 2 times, and counts once" in command(*words, made / "bm25.run")[2]
    code, told, err = command(*words, half)
    assert code == 0
    qrels, run = read_qrels(made / "qrels.txt"), read_run(half)
    top = [(qid, docid) for qid in qrels for docid in run[qid].docids[:10]]  # all rankings are longer
    share = sum(docid not in qrels[qid] for qid, docid in top) / len(top)
    assert f"{half} {100 * share:.1f} %" in told
    shares = json.loads(command(*words, half, "--format", "json")[1])["unjudged_at_10"]
    assert shares[str(half)] == pytest.approx(share)
    assert re.search(r"of the top 10 documents, \d+% of \S*half.run are not judged, against \d+% of \S*bm25.run", err)


def test_runs_have_names(command, refused, made, half, tmp_path):
    words = ["evaluate", "--qrels", made / "qrels.txt", f"BM25={made / 'bm25.run'}", "--format", "json"]
    plain = json.loads(
        command("evaluate", "--qrels", made / "qrels.txt", made / "bm25.run", half, "--format", "json")[1]
    )
    named = json.loads(command(*words, f"half={half}")[1])
    assert [*named["runs"]] == ["BM25", "half"]
    assert [*named["runs"].values()] == [*plain["runs"].values()]
    for baseline in ("half", half, f"half={half}"):
        found = json.loads(command(*words, f"half={half}", "--baseline", baseline)[1])
        assert [*found["runs"]] == ["half", "BM25"]
        assert found["significance"]["baseline"] == "half"
    assert "BM25 names two runs" in refused(*words, f"BM25={half}")
    assert "no-such.run" in refused(*words, "x=no-such.run")
    equal = tmp_path / "a=b.run"
    equal.write_bytes(half.read_bytes())
    assert [*json.loads(command(*words, equal)[1])["runs"]] == ["BM25", str(equal)]


def test_lenient_reading_warns(command, refused, made, tmp_path):
    twice = tmp_path / "twice.run"
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    twice.write_text("".join([lines[0], *lines]))
    words = ["evaluate", "--qrels", made / "qrels.txt", twice]
    assert f"{twice}:2: duplicate document" in refused(*words)
    code, out, err = command("--lenient", *words)
    assert code == 0
    assert err.startswith(f"greylag: warning: {twice}:2: duplicate document")
    assert re.search(r"twice\.run +0\.\d+", out)


def test_all_runs_are_read_before_any_is_refused(command, refused, made, runs, tmp_path):
    """Each bad file has a line, whether it cannot be read or scored, and the last line has their number."""
    (tmp_path / "empty.run").write_text("")
    (tmp_path / "latin.run").write_bytes(b"1 Q0 \xe4 1 1 x\n")
    (tmp_path / "other.run").write_text("999 Q0 d1 1 1 x\n")
    words = ["evaluate", "--qrels", made / "qrels.txt", runs[0]]
    code, out, err = command(*words, tmp_path / "empty.run", runs[1], tmp_path / "latin.run", "nowhere.run")
    lines = err.splitlines()
    assert (code, out, len(lines)) == (2, "", 4)
    assert all(line.startswith("greylag: error: ") for line in lines)
    for line, reason in zip(lines, ("empty.run: is empty", "latin.run:1: ", "nowhere.run: ", "3 of 5"), strict=True):
        assert reason in line
    told = refused(*words, tmp_path / "other.run", runs[1])
    assert "other.run: run 'x' and the judgements have no query in common" in told
    assert told.endswith("(1 of 3 runs; the others are fine)\n")
    err = command(*words, tmp_path / "other.run", tmp_path / "empty.run")[2]
    assert [
        reason in line for reason, line in zip(("no query in", "is empty", "2 of 3"), err.splitlines(), strict=True)
    ]


def test_a_baseline_that_is_no_file_is_found_by_number_name_or_tag(refused, made, half):
    words = ["evaluate", "--qrels", made / "qrels.txt", f"BM25={made / 'bm25.run'}", half, "--baseline"]
    tag = (made / "bm25.run").read_text().split()[5]
    for baseline, name in (("2", half), ("half", half), ("half.run", half), ("1", "BM25"), (tag, "BM25")):
        told = refused(*words, baseline)
        assert f"--baseline {baseline} is neither a file nor a run's name: write --baseline {name}" in told
    assert refused(*words, "no-such").endswith("is neither a file nor a run's name\n")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("nowhere.run", "nowhere.run"),
        (".", ".: "),
        ("RUN -m mapp", "'mapp'"),
        ("RUN --subtopics", "subtopic 0"),
        ("RUN --baseline RUN", "another run"),
        ("RUN --unjudged --per-query", "--per-query"),
        ("RUN --margin 0.01", "--margin"),
        ("RUN --out-figure x.svg", "--out-figure needs --baseline or --all-pairs"),
        ("RUN --test sign", "--test"),
        ("RUN --format csv", "--format"),
    ],
)
def test_refusals(refused, words, part):
    assert part in refused(f"evaluate --qrels QRELS {words}")


@pytest.fixture
def predicted(made, tmp_path):
    """The options of people's judgements of ten topics, and lenient ones of all."""
    qrels = read_qrels(made / "qrels.txt")
    lenient = {q: {d: min(2, g + (len(d) + n) % 2) for n, (d, g) in enumerate(j.items())} for q, j in qrels.items()}
    write_qrels({qid: qrels[qid] for qid in [*qrels][:10]}, tmp_path / "people.txt")
    write_qrels(lenient, tmp_path / "predicted.txt")
    return ["--qrels", tmp_path / "people.txt", "--predicted", tmp_path / "predicted.txt"]


def test_rounds_in_the_second_column_are_ignored(command, made, tmp_path):
    judged = [line.split() for line in (made / "qrels.txt").read_text().splitlines()]
    rounds = (f"{qid} {number % 5 + 0.5} {docid} {grade}\n" for number, (qid, _, docid, grade) in enumerate(judged))
    (tmp_path / "covid.txt").write_text("".join(rounds))
    told = command("evaluate", "--qrels", tmp_path / "covid.txt", made / "bm25.run")
    assert told == command("evaluate", "--qrels", made / "qrels.txt", made / "bm25.run")
    assert told[0] == 0


def test_a_full_disk_behind_the_output_is_one_line(made):
    words = [sys.executable, "-m", "greylag", "evaluate", "--qrels", made / "qrels.txt", made / "bm25.run"]
    with open("/dev/full", "w") as full:
        done = run(words, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "greylag: error: output: No space left on device\n")


def test_metadata_of_a_search_and_a_fusion(command, made, collection, tmp_path, refused):
    """The fields that CLEF LongEval 2026 requires: those that greylag knows, and those of the user's file."""
    given, first, fused = tmp_path / "me.yml", tmp_path / "ql.run", tmp_path / "rrf.run"
    given.write_text(
        "actor: {team: geese}\n"
        "research goal: {description: likelihoods}\n"
        "implementation: {source: {repository: 'https://example.org/geese'}}\n"
        "data: {training data: [{name: none}]}\n"
    )
    assert command("--metadata", given, "search", *collection, "--model", "ql", "--out", first)[0] == 0
    words = ["fuse", "--run", made / "bm25.run", "--run", first, "--tag", "both", "--out", fused]
    assert command("--metadata", given, *words)[0] == 0
    head = fused.read_text().partition("# ir_metadata.start\n")[2].partition("# ir_metadata.end\n")[0]
    found = yaml.safe_load(head.replace("\n# ", "\n").removeprefix("# "))
    assert found["tag"] == "both"
    assert found["actor"]["team"] == "geese"
    assert found["research goal"]["description"] == "likelihoods"
    assert "numpy" in "".join(found["platform"]["software"]["libraries"]["python"])
    assert "hardware" not in found["platform"]
    assert found["implementation"]["source"] == {"lang": ["python"], "repository": "https://example.org/geese"}
    assert found["implementation"]["executable"]["cmd"].split()[1:3] == ["--metadata", str(given)]
    assert found["data"]["training data"] == [{"name": "none"}]
    assert found["method"]["automatic"] is True
    steps = found["method"]["retrieval"]
    assert [step["name"] for step in steps] == ["bm25", "ql", "both"]
    assert "#     method: ql\n#     hits: 1000\n" in first.read_text()
    assert (steps[2]["method"], steps[2]["interpolates"]) == ("rrf", ["bm25", "ql"])
    plain = tmp_path / "plain.run"
    assert command("fuse", *words[1:-1], plain)[0] == 0
    assert fused.read_text().partition("# ir_metadata.end\n")[2] == plain.read_text()
    given.write_text("actors: {}\n")
    assert "unknown field 'actors': did you mean actor" in refused("--metadata", given, *words)


def test_a_page(command, made, runs):
    """It begins with the verdict of the comparison and the means, has all figures, and loads nothing."""
    words = ["evaluate", "--qrels", made / "qrels.txt", *runs, "--baseline", runs[0]]
    code, page, errors = command(*words, "-m", "AP", "--format", "html")
    assert code == 0, errors
    found = json.loads(command(*words, "-m", "AP", "--format", "json")[1])
    (one,) = found["significance"]["comparisons"]
    parsed = Page(page)
    assert parsed.open == []
    assert f"{abs(one['difference']):.4f}" in parsed.texts["p"][0]
    assert f"better on {one['wins']} of " in parsed.texts["p"][0]
    assert f"{one['corrected_p']:.4f}" in page
    assert page.index("<table") < page.index("<svg")
    assert not {"script", "link", "img"} & {tag for tag, *_ in parsed.attributes}
    assert found["trec_eval"] == "10.0"
    assert re.search(r"trec_eval&#34;: &#34;10\.0", page)
