import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from greylag.cli.options import parse_measures
from greylag.evaluation import compare, compare_qrels, parse_measure, read_qrels
from greylag.studies import STUDY_FORMS
from tests.greylag.cli.conftest import write_qrels
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
    (tmp_path / "qids").write_text("\n".join(qids))
    plain = command("evaluate", "--topics", tmp_path / "qids", "--qrels", made / "qrels.txt", made / "bm25.run")
    assert plain[1] == whole[1]
    assert whole[0] == part[0] == 0
    assert whole[1].split()[-3:] == part[1].split()[-3:]
    assert "16 judged queries that are not among the topics" in whole[2]
    assert "16 queries that are not among the topics" in whole[2]
    (tmp_path / "none.tsv").write_text("none\tgoose\n")
    assert "no query in common with" in refused(
        "evaluate", "--topics", tmp_path / "none.tsv", "--qrels", made / "qrels.txt", made / "bm25.run"
    )


def test_a_figure_of_the_changes(command, refused, made, runs, tmp_path):
    words = ["evaluate", "--qrels", made / "qrels.txt", runs[1], "-m", "nDCG@10", "--baseline", runs[0]]
    assert command(*words, "--out-figure", tmp_path / "changes.svg") == command(*words)
    drawn = (tmp_path / "changes.svg").read_text()
    better, worse, equal = map(int, re.findall(r"(\d+) (?:better|worse|equal)", drawn))
    assert better + worse + equal == len((made / "topics.tsv").read_text().splitlines())
    assert drawn.count("<rect") == better + worse
    assert f"{runs[1]} against {runs[0]}" in drawn
    assert ".svg, .pdf or .png" in refused(*words, "--out-figure", tmp_path / "x.gif")


@pytest.mark.parametrize(
    ("name", "measure", "proposed"),
    [
        *((name, "AP", True) for name in ("dl19-passage", "irds:msmarco-passage-v2/trec-dl-2022")),
        ("irds:msmarco-passage/trec-dl-2020/judged", "R@1000", True),
        *(("dl19-passage", measure, False) for measure in ("nDCG@10", "AP(rel=1)", "AP(rel=2)")),
        *((name, "RR@10", False) for name in ("dl19-doc", "irds:msmarco-passage/dev/small", "qrels.txt")),
    ],
)
def test_a_level_is_proposed_where_published_figures_have_it(name, measure, proposed, caplog):
    """As in Pyserini's reproductions: level 2 for passages of the deep learning tracks, 1 for documents."""
    assert parse_measures([measure], Path(name)) == [parse_measure(measure)]
    assert ("(rel=2)" in caplog.text) == proposed


OPTIONS = {
    "": {},
    "--baseline BASE --margin 0.02 --test wilcoxon": {"baseline": "BASE", "margin": 0.02, "test": "wilcoxon"},
    "--all-pairs --correction bh": {"all_pairs": True, "correction": "bh"},
    "--baseline BASE --unjudged": {"baseline": "BASE", "unjudged": True},
    "--baseline BASE --predicted PREDICTED": {"baseline": "BASE", "predicted": "PREDICTED"},
    "--teams ^[A-Z]+|half --best-of-team --tau --unjudged": {"unjudged": "^[A-Z]+|half"},
    "--baseline BASE --other-qrels PREDICTED": {"baseline": "BASE", "other_qrels": "PREDICTED"},
    "--per-query": {},
}


@pytest.mark.parametrize("words", OPTIONS)
def test_the_shell_and_python_print_the_same(command, made, runs, half, predicted, words):
    files = {"BASE": runs[0], "QL": runs[1], "half": half}
    qrels = predicted[1] if "predicted" in OPTIONS[words] else made / "qrels.txt"
    options = {key: predicted[3] if value == "PREDICTED" else value for key, value in OPTIONS[words].items()}
    found = compare(files, qrels, ["AP", "nDCG@10"], **options)
    found = found.correlated().best_of("^[A-Z]+|half") if "best-of-team" in words else found
    named = [f"{name}={path}" for name, path in files.items()]
    given = [predicted[3] if word == "PREDICTED" else word for word in words.split()]
    for form in (*STUDY_FORMS, "html"):
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
    assert "BM25 names two runs" in refused(*words, half, "--baseline", f"BM25={made / 'qrels.txt'}")
    # A file of scores under the name of today's run: it is not left out, and the message has a road.
    earlier = half.with_name("earlier.json")
    earlier.write_text(command(*words, f"half={half}")[1])
    assert f"as in new={half}" in refused(*words, f"half={half}", "--baseline", f"half={earlier}")
    found = json.loads(command(*words, f"new={half}", "--baseline", f"half={earlier}")[1])
    assert (found["significance"]["baseline"], {*found["runs"]}) == ("half", {"half", "BM25", "new"})
    assert found["runs"]["half"]["per_query"] == found["runs"]["new"]["per_query"]
    assert "no-such.run" in refused(*words, "x=no-such.run")
    assert "half.run is given 2 times, and counts once" in command(*words, half, half)[2]
    equal = tmp_path / "a=b.run"
    equal.write_bytes(half.read_bytes())
    assert [*json.loads(command(*words, equal)[1])["runs"]] == ["BM25", str(equal)]


def test_names_of_files_and_tags_where_they_differ(command, refused, made, half, tmp_path):
    """A tag that two runs share names neither; a name of one's own stays."""
    lines = half.read_text().splitlines(keepends=True)
    (tmp_path / "a.b.run").write_text("".join(f"{line.rsplit(None, 1)[0]} Mine\n" for line in lines))
    words = ["evaluate", "--qrels", made / "qrels.txt", "--format", "json", "--names"]
    runs, tag = [made / "bm25.run", half, tmp_path / "a.b.run"], half.read_text().split()[5]

    def names(by, *given):
        return [*json.loads(command(*words, by, *given)[1])["runs"]]

    assert names("tag", *runs) == [*map(str, runs[:2]), "Mine"]
    assert names("tag", *runs[1:]) == [tag, "Mine"]
    assert names("tag", runs[0], f"own={half}", "--baseline", runs[2]) == ["Mine", tag, "own"]
    assert names("file", *runs, "--baseline", "a.b") == ["a.b", "bm25", "half"]
    assert "no-such.run" in refused(*words, "tag", *runs, "no-such.run")


def test_a_workflow_passes_and_fails(command, made, half, tmp_path, monkeypatch):
    """The steps of the workflow on the page of the gate, but for pip, as a build server runs them in a fresh clone."""
    page = (Path(__file__).parents[3] / "plugin" / "docs" / "how-to" / "gate.md").read_text()
    workflow = yaml.safe_load(re.search("```yaml\n(.*?)```", page, re.DOTALL)[1])
    assert workflow["permissions"] == {"contents": "read"}
    used, steps = ([step[key] for step in workflow["jobs"]["gate"]["steps"] if key in step] for key in ("uses", "run"))
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
    assert steps.pop(0).startswith("pip install ")
    last = workflow["jobs"]["gate"]["steps"][-1]
    assert last["if"] == "always()"  # also after a gate that failed
    uploaded = last["with"]["path"]
    for name in ("qrels.txt", "topics.tsv"):
        shutil.copy(made / name, tmp_path)
    first = re.search(r"^greylag .*(?= > accepted.json)", page, re.MULTILINE)[0]
    monkeypatch.chdir(tmp_path)
    shutil.copy(made / "bm25.run", "bm25.run")
    Path("accepted.json").write_text(command(*first.split()[1:])[1])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    Path("rank.sh").write_text('#!/bin/sh\nset -e\ntest -s "$1"\ncat "$RANKED"\n')
    Path("rank.sh").chmod(0o755)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["clone", "-q", ".", "clone"]):
        assert run([*git, *words]).returncode == 0
    for run_file, code in ((made / "bm25.run", 0), (half, 3)):
        summary = tmp_path / f"summary {code}.md"
        environment = {**os.environ, "PATH": path, "RANKED": str(run_file), "GITHUB_STEP_SUMMARY": str(summary)}
        *before, done = [run(["bash", "-e", "-c", step], env=environment, cwd="clone") for step in steps]
        assert [step.returncode for step in before] == [0]
        assert done.returncode == code, done.stderr
        assert done.stdout.startswith(f"gate {'failed: 2' if code else 'passed: 0'} of 3 checks fail")
        assert len((done.stdout + done.stderr).splitlines()) <= 10
        assert summary.read_text().startswith(f"**gate {'failed: 2' if code else 'passed: 0'} of 3 checks fail")
        assert (Path("clone") / uploaded).read_text().count("<failure ") == (2 if code else 0)


def test_a_gate_by_category(command, refused, made, half, tmp_path):
    qids = [line.split("\t")[0] for line in (made / "topics.tsv").read_text().splitlines()]
    (tmp_path / "of.csv").write_text("".join(f"{qid},{'ab'[n % 2]}\n" for n, qid in enumerate(qids)))
    words = ["evaluate", "--qrels", made / "qrels.txt", half, "-m", "AP", "--categories", tmp_path / "of.csv"]
    code, out, _ = command(*words, "--baseline", made / "bm25.run", "--fail-if", "worse")
    assert (code, {line.split()[0] for line in out.splitlines()[2:]}) == (3, {"all", "a", "b"})
    assert command(*words, "--baseline", half, "--fail-if", "lower", made / "bm25.run")[0] == 0
    assert "baseline" in refused(*words, "--fail-if", "worse")
    for form in ("csv", "markdown"):
        code, _, err = command(*words, "--baseline", made / "bm25.run", "--fail-if", "worse", "--format", form)
        assert (code, "gate failed: " in err, out.splitlines()[2] in err) == (3, True, True)


def test_collections_and_baselines_are_those_of_python(command, refused, made, runs, tmp_path):
    """{} is the place of a collection's name in judgements and runs, whose names are the same in each."""
    qrels = (made / "qrels.txt").read_text().splitlines(keepends=True)
    for name, part in (("first", qrels[::2]), ("second", qrels)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "qrels.txt").write_text("".join(part))
        for path in runs:
            (tmp_path / name / path.name).write_bytes(path.read_bytes())
    words = ["evaluate", "--collection", "first", "--collection", "second", "--qrels", tmp_path / "{}" / "qrels.txt"]
    words += [tmp_path / "{}" / "ql.run", "-m", "AP", "-m", "P@5", "--names", "file"]
    collections = {
        name: ({path.stem: tmp_path / name / path.name for path in runs}, tmp_path / name / "qrels.txt")
        for name in ("first", "second")
    }
    for baselines in (["bm25"], ["ql", "bm25"]):
        given = [word for name in baselines for word in ("--baseline", tmp_path / "{}" / f"{name}.run")]
        code, out, _ = command(*words, *given, "--format", "json")
        found = compare(collections, measures=["AP", "P@5"], baseline=baselines)
        assert (code, json.loads(out)) == (0, json.loads(found.format("json")))
    assert "no place for a collection's name" in refused(*words, made / "bm25.run")
    assert "no place for a collection's name" in refused(*words, "--baseline", made / "bm25.run")
    assert "--baseline bm is neither a file nor a run's name" in refused(*words, "--baseline", "bm")
    assert "third" in refused(*words, "--collection", "third")
    for name in ("ql.run", "qrels.txt"):
        assert "is the input" in refused(*words, "--format", f"json={tmp_path / 'first' / name}")
    assert "is no folder" in refused(*words, "--format", f"json={tmp_path / 'third' / 'x'}")
    assert "--predicted" in refused(*words, "--predicted", made / "qrels.txt")


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


def test_all_runs_are_read_before_any_is_refused(command, refused, made, tmp_path):
    """Each bad file has a line, whether it cannot be read or scored, and the last line has their number."""
    (tmp_path / "empty.run").write_text("")
    (tmp_path / "other.run").write_text("999 Q0 d1 1 1 x\n")
    words = ["evaluate", "--qrels", made / "qrels.txt", made / "bm25.run", tmp_path / "other.run"]
    code, out, err = command(*words, tmp_path / "empty.run", "nowhere.run")
    assert (code, out) == (2, "")
    for line, part in zip(err.splitlines(), ("other.run: ", "empty.run: ", "nowhere.run: ", "3 of 4"), strict=True):
        assert line.startswith("greylag: error: ")
        assert part in line
    assert "other.run: " in refused(*words)


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
        ("RUN x.run --baseline RUN --margin 2%", "write 0.02 for '2%'"),
        ("RUN x.run --baseline RUN --margin two", "not 'two'"),
        ("RUN x.run --baseline RUN --margin 5 -m AP", "margin of 5"),
        ("RUN x.run --baseline RUN --fail-if 2%", "write 0.02 for '2%'"),
        ("RUN x.run --baseline RUN --fail-if 2 -m AP", "perhaps 0.02 is meant"),
        ("RUN --out-figure x.svg", "--out-figure needs --baseline or --all-pairs"),
        ("RUN --test sign", "--test"),
        ("RUN --best-of-team", "--teams"),
        ("RUN --out-sheets RUN", "RUN, which it would replace".partition(" ")[2]),
        ("--other-qrels QRELS --tau", "RUN is missing: --tau"),
        ("--topics x.tsv", "or --other-qrels"),
        ("RUN --subtopics --qrels SUBTOPICS", "corrected"),
        ("RUN --other-qrels nowhere", "nowhere"),
        ("RUN --collection x --collection x", "x is given twice"),
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


def test_several_files_of_judgements_are_one(command, made, predicted):
    """People's correct the lenient ones of ten topics, so that these score as by people alone."""
    words = ["evaluate", made / "bm25.run", "--qrels", predicted[3], "--format", "json"]
    _, out, err = command(*words, "--qrels", predicted[1])
    joined = read_qrels(predicted[3]) | read_qrels(predicted[1])
    assert (
        json.loads(out)["runs"]
        == json.loads(compare({str(made / "bm25.run"): made / "bm25.run"}, joined).format("json"))["runs"]
    )
    assert "no topic in common" not in err
    assert re.search(r"people.txt: of \d+ judgements, \d+ correct earlier ones, \d+ repeat them, 0 are new", err)


def test_a_full_disk_behind_the_output_is_one_line(made):
    words = [sys.executable, "-m", "greylag", "evaluate", "--qrels", made / "qrels.txt", made / "bm25.run"]
    with open("/dev/full", "w") as full:
        done = run(words, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "greylag: error: output: No space left on device\n")


def test_metadata_of_a_search_and_a_fusion(command, made, collection, tmp_path, refused):
    """The fields that CLEF LongEval 2026 requires: those that greylag knows, and those of the user's file."""
    given, first, fused = tmp_path / "me.yml", tmp_path / "ql.run", tmp_path / "rrf.run"
    given.write_text(
        "actor: {team: geese}\nimplementation: {source: {repository: 'https://example.org/geese'}}\n"
        "research goal: {description: likelihoods}\ndata: {training data: [{name: none}]}\n"
    )
    assert command("--metadata", given, "search", *collection, "--model", "ql", "--out", first)[0] == 0
    assert "#     method: ql\n#     hits: 1000\n" in first.read_text()
    words = ["fuse", "--run", made / "bm25.run", "--run", first, "--tag", "both", "--out", fused]
    assert command("--metadata", given, *words)[0] == 0
    head, _, rest = fused.read_text().partition("# ir_metadata.end\n")
    found = yaml.safe_load(head.partition("# ir_metadata.start\n")[2].replace("\n# ", "\n").removeprefix("# "))
    assert (found["tag"], found["actor"]["team"]) == ("both", "geese")
    assert "numpy" in "".join(found["platform"]["software"]["libraries"]["python"])
    assert found["implementation"]["source"] == {"lang": ["python"], "repository": "https://example.org/geese"}
    assert found["implementation"]["executable"]["cmd"].split()[1:3] == ["--metadata", str(given)]
    assert (found["data"]["training data"], found["method"]["automatic"]) == ([{"name": "none"}], True)
    steps = found["method"]["retrieval"]
    assert [step["name"] for step in steps] == ["bm25", "ql", "both"]
    assert (steps[2]["method"], steps[2]["interpolates"]) == ("rrf", ["bm25", "ql"])
    assert command(*words)[0] == 0
    assert rest == fused.read_text()
    given.write_text("actors: {}\n")
    assert "'actors': did you mean actor" in refused("--metadata", given, *words[:-1], tmp_path / "new.run")


def test_judgements_are_compared_without_runs(command, made, tmp_path):
    (tmp_path / "other.txt").write_text("".join((made / "qrels.txt").read_text().splitlines(keepends=True)[:50]))
    words = ["evaluate", "--qrels", made / "qrels.txt", "--other-qrels", tmp_path / "other.txt"]
    for form in (*STUDY_FORMS, "html"):
        code, out, _ = command(*words, "--format", form)
        shown = compare_qrels(made / "qrels.txt", tmp_path / "other.txt").format(form)
        assert (code, out.removesuffix("\n")) == (0, shown.removesuffix("\n"))


def test_sheets_are_those_of_python(command, made, runs, tmp_path):
    files = {"BASE": runs[0], "QL": runs[1]}
    words = ["evaluate", *(f"{name}={path}" for name, path in files.items()), "--qrels", made / "qrels.txt", "-m", "AP"]
    assert command(*words, "--teams", "^[A-Z]", "--out-sheets", tmp_path / "new" / "sheets")[0] == 0
    expected = compare(files, made / "qrels.txt", ["AP"]).of_teams("^[A-Z]").sheets()
    written = {path.name: path.read_text() for path in (tmp_path / "new" / "sheets").iterdir()}
    assert written.keys() == expected.keys()
    assert {name: text for name, text in written.items() if name.endswith("csv")} == {
        name: text for name, text in expected.items() if name.endswith("csv")
    }
    (tmp_path / "file").write_text("")
    assert "name a folder" in command(*words, "--out-sheets", tmp_path / "file")[2]
    assert "has participant-1-B.csv of other sheets" in command(*words, "--out-sheets", tmp_path / "new" / "sheets")[2]
    (odd := tmp_path / os.fsdecode(b"\xff.run")).write_bytes(runs[0].read_bytes())
    assert command("evaluate", odd, *words[3:], "--out-sheets", tmp_path / "odd")[0] == 0
    assert "\\udcff.run" in next((tmp_path / "odd").glob("participant-1-*.csv")).read_text()
