"""The wheel, built from the sdist, installed into an environment of its own and used away from the checkout."""

import re
import shutil
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

import greylag
from greylag.studies.config import shipped_files
from tests import processes

ROOT = Path(__file__).parents[1]
BUILT_FROM = "plugin configs qrels pyproject.toml README.md LICENSE".split()
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
SHIPPED = """
from greylag.studies.config import shipped_file, shipped_files
from greylag.studies.study import load
print(*shipped_files(), load(shipped_file("cacm-padded"))[1].path("../qrels/cacm-padded.txt").read_text(), sep="\\n")
"""


def run(*words, cwd):
    done = processes.run(words, cwd=cwd, env={"HOME": str(cwd)})
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


CLAIMED = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
PYTHONS = {
    number: path
    for number in CLAIMED
    for path in (
        *map(Path, filter(None, [shutil.which(f"python{number}")])),
        *sorted((Path.home() / ".pyenv" / "versions").glob(f"{number}.*/bin/python3")),
    )
}
"""An interpreter of each Python that is claimed and here."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    source, away = folder / "source", folder / "away"
    source.mkdir()
    away.mkdir()
    for part in map(ROOT.joinpath, BUILT_FROM):  # as building leaves files beside the sources
        if part.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(part, source / part.name, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(part, source)
    run(sys.executable, "-c", SDIST, folder, cwd=source)
    (sdist,) = folder.glob("greylag-*.tar.gz")
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist, cwd=away)
    (wheel,) = folder.glob("greylag-*.whl")
    return wheel


def installed(wheel, python, folder):
    """An environment that has the wheel, and this environment's packages without its .pth files and so the checkout."""
    own = folder / "venv"
    run(python, "-m", "venv", "--without-pip", own, cwd=folder)
    run(*PIP, "--python", own, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    (site,) = own.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return own


@pytest.mark.long
def test_the_installed_wheel(wheel, tmp_path):
    own, away = installed(wheel, sys.executable, tmp_path), tmp_path / "away"
    away.mkdir()
    command = own / "bin" / "greylag"
    assert run(command, "--version", cwd=away).split()[-1] == greylag.__version__
    names, _, qrels = run(own / "bin" / "python", "-c", SHIPPED, cwd=away).partition("\n1 0 ")
    assert names.split() == [*shipped_files()]
    assert f"1 0 {qrels}".strip() == (ROOT / "qrels" / "cacm-padded.txt").read_text().strip()
    (demo,) = own.glob("lib/python*/site-packages/greylag/demo")
    run(command, "index", demo / "docs.jsonl", "--out", "index", cwd=away)
    run(command, "rerank", "--index", "index", "--topics", demo / "topics.tsv", "--out", "best.run", cwd=away)
    assert "0.8958" in run(command, "evaluate", "--qrels", demo / "qrels.txt", "best.run", "-m", "AP", cwd=away)


@pytest.mark.long
@pytest.mark.parametrize("number", CLAIMED)
def test_the_wheel_on_every_python_that_is_here(wheel, tmp_path, number):
    """What is compiled of other packages is this Python's, so that elsewhere the command starts and nothing counts."""
    if number not in PYTHONS:
        pytest.skip(f"Python {number} is not here")
    own = installed(wheel, PYTHONS[number], tmp_path)
    run(own / "bin" / "python", "-W", "error", "-m", "compileall", "-q", *own.glob("lib/*/*/greylag*"), cwd=tmp_path)
    command = own / "bin" / "greylag"
    assert run(command, "--version", cwd=tmp_path).split()[-1] == greylag.__version__
    assert "experiment" in run(command, "--help", cwd=tmp_path)


def test_metadata_has_all_that_is_known_here():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"Typing :: Typed", "Intended Audience :: Science/Research"} <= {*project["classifiers"]}
    assert (ROOT / "plugin" / "greylag" / "py.typed").is_file()
    assert project["requires-python"] == f">={CLAIMED[0]}"
    installation = (ROOT / "plugin" / "docs" / "installation.md").read_text()
    assert f"Python {', '.join(CLAIMED[:-1])} and {CLAIMED[-1]}" in installation
