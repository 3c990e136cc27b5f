"""Interrupts, in processes of their own: wherever they come, they end in one exception, and the process in its code."""

import subprocess
import sys
from pathlib import Path

import pytest

from greylag.runtime import interrupts

START = "import signal, sys, time; from greylag.runtime import interrupts; interrupts.prepare()\n"


def ended(code: str, folder: Path) -> tuple[int, str, str]:
    """The exit code and what is printed by a process in which interrupts are handled."""
    (folder / "case.py").write_text(START + code)
    words = [sys.executable, "-m", "case"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder, timeout=60)
    return done.returncode, done.stdout, done.stderr


CAUGHT = """
try:
{body}
    time.sleep(9)
except BaseException as error:
    assert interrupts.caused(error), error
    interrupts.ignore()
    signal.raise_signal(signal.SIGINT)
    sys.exit(130)
"""


@pytest.mark.parametrize(
    "body",
    [
        "signal.raise_signal(signal.SIGINT)",
        # Python ends by the signal if it was raised in a text like this, whatever has caught it
        "eval('signal.raise_signal(signal.SIGINT)')",
        # the exception is lost in a finaliser, as in C code that cannot hand it on
        "type('', (), {'__del__': lambda self: signal.raise_signal(signal.SIGINT)})()",
        # another exception is made of it, as by Numba
        "\n    try: signal.raise_signal(signal.SIGINT)\n    except KeyboardInterrupt: raise SystemError('result')",
        # an import is finished before it is raised
        "import interrupted",
        # twice: what is cleaned up is not interrupted
        "\n    try: signal.raise_signal(signal.SIGINT)\n    finally: signal.raise_signal(signal.SIGINT)",
    ],
)
def test_an_interrupt_is_raised_wherever_it_comes(body: str, tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nprint('imported')\n")
    told = "imported\n" if "import interrupted" in body else ""
    assert ended(CAUGHT.format(body=f"    {body}"), tmp_path) == (130, told, "")


def test_a_late_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    body = "try: signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt: pass\n"
    late = f"interrupts.PATIENCE = 0.0\n{body}time.sleep(0.01)\nsignal.raise_signal(signal.SIGINT)\nprint('on')"
    assert ended(late, tmp_path) == (130, "", "greylag: interrupted\n")


def test_ignored_interrupts_stay_ignored(tmp_path: Path) -> None:
    """As under nohup."""
    code = "signal.signal(signal.SIGINT, signal.SIG_IGN); interrupts.prepare(); signal.raise_signal(signal.SIGINT)"
    assert ended(code, tmp_path) == (0, "", "")


def test_other_errors_are_told_as_ever(tmp_path: Path) -> None:
    code, _, errors = ended("type('', (), {'__del__': lambda self: 1 / 0})()", tmp_path)
    assert code == 0
    assert "ZeroDivisionError" in errors
    assert not interrupts.caused(SystemError())
