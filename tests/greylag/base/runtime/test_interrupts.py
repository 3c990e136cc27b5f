"""Interrupts, in processes of their own: the first is raised, and a second one a second later ends the process."""

import pytest
from tests.processes import python

from greylag.base.runtime import interrupts

START = """
import signal, sys, time
from greylag.base.runtime import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs in the background ignore it
interrupts.handle_interrupts()
"""
PRESS = "signal.raise_signal(signal.SIGINT)"


def ended(code, folder):
    """The exit code, standard output and standard error of a process in which interrupts are handled."""
    done = python("-c", START + code, cwd=folder)
    return done.returncode, done.stdout, done.stderr


CAUGHT = f"""
try:
{{body}}
    time.sleep(9)
except BaseException as error:
    assert interrupts.is_interrupt(error), error
    interrupts.ignore_interrupts()
    {PRESS}
    sys.exit(130)
"""


@pytest.mark.parametrize(
    "body",
    [
        PRESS,
        f"\n    try: {PRESS}\n    except KeyboardInterrupt: raise SystemError('result')",  # as by Numba
        f"\n    try: {PRESS}\n    finally: {PRESS}",  # twice: cleaning up is not interrupted
    ],
)
def test_an_interrupt_is_raised_once(body, tmp_path):
    assert ended(CAUGHT.format(body=f"    {body}"), tmp_path) == (130, "", "")


def test_a_late_second_interrupt_ends_at_once(tmp_path):
    first = f"interrupts.IGNORED_SECONDS = 0.0\ntry: {PRESS}\nexcept KeyboardInterrupt: pass\n"
    late = f"{first}time.sleep(0.01)\n{PRESS}\nprint('on')"
    assert ended(late, tmp_path) == (130, "", "greylag: interrupted\n")


def test_an_interrupt_that_compiled_code_swallows_ends_the_work_after_the_item(tmp_path):
    """As by a callback of ctypes, whose exceptions are printed and dropped."""
    code = f"""
import ctypes
from greylag.base.runtime.parallel import parallel_map
callback = ctypes.CFUNCTYPE(None)(lambda: {PRESS})
def work(item):
    print(item)
    callback()
try:
    list(parallel_map(work, range(3), n_jobs=1, what="work"))
except KeyboardInterrupt:
    print("ended")
"""
    returned, out, _ = ended(code, tmp_path)
    assert (returned, out) == (0, "0\nended\n")


def test_ignored_interrupts_stay_ignored(tmp_path):
    """As under nohup."""
    code = f"signal.signal(signal.SIGINT, signal.SIG_IGN); interrupts.handle_interrupts(); {PRESS}"
    assert ended(code, tmp_path) == (0, "", "")
    assert not interrupts.is_interrupt(SystemError())
