"""The command line as a whole: commands, options, errors, interrupts and the terminal.

Tests `terminal`.
"""

import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
import typer
from tqdm import tqdm

import greylag
from greylag.base.core.tables import visible
from greylag.cli import COMMANDS, MAX_MESSAGE, SHARED, app
from greylag.cli.options import MEASURE, Shared
from greylag.cli.running import OUTPUTS
from greylag.cli.terminal import write_line
from tests.processes import SECONDS, run

MOST_OPTIONS = 136  # with the eight of all commands
WRITING = ("index", "search", "features", "train", "fuse", "rerank", "pool", "experiment")


def test_the_number_of_options():
    group = typer.main.get_command(app)
    options = [
        (name, parameter.opts[0])
        for name in ("", *COMMANDS)
        for parameter in (group.get_command(None, name) if name else group).params
        if parameter.param_type_name == "option" and parameter.name != "help" and not parameter.hidden
    ]
    assert len(options) <= MOST_OPTIONS
    assert {flag for name, flag in options if not name} >= set(SHARED)


@pytest.mark.parametrize("name", COMMANDS)
def test_outputs_are_out_and_out_kind_and_the_default_measure_is_the_same(name):
    group = typer.main.get_command(app)
    options = {option.name: option for option in group.get_command(None, name).params}
    for key, option in options.items():
        assert (key in OUTPUTS) == (option.opts[-1] == "--out" or option.opts[-1].startswith("--out-")), key
    assert ("out" in options) == (name in WRITING)
    if name in ("train", "fuse"):
        assert options["measure"].default == MEASURE


def test_the_list_of_commands(command):
    for words in ([], ["--help"]):
        code, out, err = command(*words)
        assert (code, err) == (0, "")
        for name, summary in COMMANDS.items():
            assert re.search(rf"^  {name} +{re.escape(summary)}$", out, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(command, name):
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    assert f"{name} [OPTIONS]" in out
    function = getattr(import_module(f"greylag.cli.{name}"), name)
    first = function.__doc__.partition("\n")[0]
    assert " ".join(first.split()) in " ".join(out.split())


GIVEN = ["--jobs=3", "--scheduler=tcp://x", "--field=desc", "--lenient", "--metadata=a.yml"]


@pytest.mark.parametrize("place", range(len(GIVEN) + 1))
def test_options_of_all_commands_before_and_after_the_command(command, monkeypatch, place):
    """Those after the command override those before it."""
    seen = []

    def spy(context: typer.Context):  # which typer passes by its type
        seen.append(context.obj)

    monkeypatch.setattr("greylag.cli.running.surrounded", lambda doctor: spy)
    assert [word.partition("=")[0] for word in GIVEN] == list(SHARED)
    overridden = ["--jobs=7", "--field=title"] if place == 0 else []
    assert command(*overridden, *GIVEN[:place], "doctor", *GIVEN[place:]) == (0, "", "")
    assert seen == [Shared(3, "tcp://x", "desc", True, Path("a.yml"))]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("search --model b", ["bm25", "bm25+rm3"]),
        ("train --model mr", ["mrf", "mrf-lm", "mrf-bm25"]),
        ("rerank --stage m", ["manifold", "max-passage", "mmr", "mrf", "msd"]),
        ("rera", ["rerank"]),
    ],
)
def test_names_complete(command, monkeypatch, words, expected):
    monkeypatch.setenv("_GREYLAG_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"greylag {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    code, out, err = command()
    assert (code, out.split(), err) == (0, expected, "")


def test_version(command):
    assert command("--version") == (0, f"greylag {greylag.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["serch"], "No such command 'serch': did you mean search? (see greylag --help)"),
        (["train", "--index", "no/x"], "Missing option '--out'"),
        (["--tea"], "No such option: --tea"),
        (["search", "--tea"], "No such option: --tea"),
        (["--jobs", "0", "doctor"], "0 is neither -1 nor from 1 to 1024"),
        ([f"--jobs={'9' * 5000}", "doctor"], "--jobs"),
        (["--jobs", "1.5", "doctor"], "--jobs"),
        (["doctor", "--jobs", "0"], "0 is neither -1 nor from 1 to 1024"),
        (["doctor", "--jobs", "1", "--jobs", "1"], "--jobs is given 2 times: give it once (see greylag doctor --help)"),
        (
            ["evaluate", "a", "--correction", "bh", "--qrels", "c", "--correction=holm", "-m", "AP", "-m", "RR"],
            "--correction is given 2 times: give it once",
        ),
        (["train", "--out", "a", "-m", "AP", "--measure", "RR"], "--measure is given 2 times"),
        (["evaluate", "-y", "9"], "No such option: -y (see"),
        (["evaluate", "-x", "9"], "No such option: -x; leave it out: --fail-if and --floor alone are checked"),
        (["doctor", "--version"], "No such option: --version"),
        (["fuse", "--metadata", "absent.yml", "--run", "x", "--run", "y", "--out", "z"], "absent.yml: cannot be read"),
    ],
)
def test_mistakes(refused, words, reason):
    assert reason in refused(*words)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device", "big.run"), "big.run: No space left on device"),
        (OSError("odd"), "odd"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"), r"'\udcff' is not valid UTF-8"),
        (greylag.ParameterError("two\n lines"), "two lines"),
        (greylag.ParameterError("9" * 3 * MAX_MESSAGE), "9" * 60 + "..."),
        (greylag.ParameterError("99 999 " * MAX_MESSAGE), ("99 999 " * MAX_MESSAGE)[:MAX_MESSAGE] + "..."),
        (OSError(28, "No space left on device"), "output: No space left on device"),
        (RecursionError("maximum depth"), "an input is too large or too deeply nested: maximum depth"),
        (MemoryError("terabytes"), "an input is too large or too deeply nested: terabytes"),
    ],
)
def test_errors_are_one_line(refused, monkeypatch, error, reason):
    def fail(path):
        raise error

    monkeypatch.setattr("greylag.index.diagnose", fail)
    assert refused("doctor") == f"greylag: error: {reason}\n"


@pytest.mark.parametrize(
    "words", ["experiment demo --out x", "experiment x.yaml", "search --index x --topics y --out z"]
)
def test_a_working_folder_that_was_removed(refused, tmp_path, monkeypatch, words):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused(words)


def test_an_interrupt(command, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("greylag.index.diagnose", interrupt)
    assert command("doctor") == (130, "", "greylag: interrupted\n")


def test_a_reader_that_stops_early():
    """As in ``greylag ... | head``."""
    code = (
        "import sys; import greylag.index; from greylag.cli import main\n"
        "greylag.index.diagnose = lambda index: sys.stdin.read() and [] or print('x' * 10**6) or []\n"
        "sys.argv = ['greylag', 'doctor']; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


@pytest.mark.parametrize("seconds", [0.05, 0.1, 0.2])
def test_an_interrupt_at_the_start_is_at_most_one_line(seconds):
    """Python itself may be interrupted before it runs a line of greylag."""
    words = [sys.executable, "-m", "greylag", "train", "--help"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=SECONDS)[1]
    assert "greylag/cli" not in errors
    assert process.returncode in (0, 130, -signal.SIGINT, 1)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    for words, code in (("--version", 0), ("nothing", 2)):
        line = f"{sys.executable} -m greylag {words} {closed}"
        done = run(line, shell=True)
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_characters_that_change_the_terminal_are_escaped():
    assert visible("a\tb\nc é") == "a\tb\nc é"
    assert visible("\x1b[2J\r\x9b\u202e\u2066\udcff\uffff") == r"\x1b[2J\r\x9b\u202e\u2066\udcff\uffff"


def test_lines_are_above_the_progress_line(capfd):
    with tqdm(total=2, desc="folds", file=sys.stderr, ncols=60):
        before = capfd.readouterr().err
        write_line("fold 1\n")
        out, after = capfd.readouterr()
    assert before.count("0/2") == 1
    assert out == "fold 1\n"
    assert after.startswith("\r ")  # the line is cleared
    assert after.count("0/2") == 1
    assert after.rstrip().endswith("]")
