"""The wheel, built from the sdist, installed into an environment of its own and used away from the checkout."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import greylag
from greylag.experiments.config import shipped_files

ROOT = Path(__file__).parents[1]
BUILT_FROM = "plugin configs qrels pyproject.toml README.md LICENSE".split()
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
SHIPPED = """
from greylag.experiments.config import shipped_file, shipped_files
from greylag.experiments.study import load
print(*shipped_files(), load(shipped_file("cacm-padded"))[1].path("../qrels/cacm-padded.txt").read_text(), sep="\\n")
"""


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env={"HOME": str(cwd)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@pytest.mark.long
def test_the_installed_wheel(tmp_path: Path) -> None:
    source, away, own = tmp_path / "source", tmp_path / "away", tmp_path / "venv"
    source.mkdir()
    away.mkdir()
    for part in map(ROOT.joinpath, BUILT_FROM):  # as building leaves files beside the sources
        if part.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(part, source / part.name, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(part, source)
    run(sys.executable, "-c", SDIST, tmp_path, cwd=source)
    (sdist,) = tmp_path.glob("greylag-*.tar.gz")
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, sdist, cwd=away)
    run(sys.executable, "-m", "venv", "--without-pip", own, cwd=away)
    (wheel,) = tmp_path.glob("greylag-*.whl")
    run(*PIP, "--python", own, "install", "--no-deps", "--no-index", wheel, cwd=away)
    # Only the dependencies come from this environment: its own .pth files, and so the checkout, do not count there.
    (site,) = own.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    command = own / "bin" / "greylag"
    assert run(command, "--version", cwd=away).split()[-1] == greylag.__version__
    names, _, qrels = run(own / "bin" / "python", "-c", SHIPPED, cwd=away).partition("\n1 0 ")
    assert names.split() == [*shipped_files()]
    assert f"1 0 {qrels}".strip() == (ROOT / "qrels" / "cacm-padded.txt").read_text().strip()
    demo = site / "greylag" / "demo"
    run(command, "index", demo / "docs.jsonl", "--out", "index", cwd=away)
    run(command, "search", "--index", "index", "--topics", demo / "topics.tsv", "--out", "bm25.run", cwd=away)
    assert "0.8670" in run(command, "evaluate", "--qrels", demo / "qrels.txt", "bm25.run", "-m", "AP", cwd=away)
