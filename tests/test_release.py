"""Files that a release needs: the page for programs, the workflow, the container."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from greylag.cli import COMMANDS
from tests.docs import ROOT, lay_out, run_page


def test_the_page_for_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "AGENTS.md")
    assert {"model.json", "held-out.run", "best.run", "scores.json", "why.json"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_the_workflow_runs_the_checks_on_every_python_that_is_claimed() -> None:
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"].values()
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    claimed = re.findall(r"Python :: (3\.\d+)", " ".join(classifiers))
    assert job["strategy"]["matrix"]["python"] == claimed
    assert job["steps"][-1] == {"run": ".ci/run", "env": {"PYTHON": "python${{ matrix.python }}"}}
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert re.search(r"^PYTHON \?= ", (ROOT / "Makefile").read_text(), re.MULTILINE)  # that of the environment
    assert "PYTHON=" not in (ROOT / ".ci" / "run").read_text()


def test_the_container_installs_the_checkout_and_runs_a_command() -> None:
    text = (ROOT / "Dockerfile").read_text()
    lines = text.replace("\\\n", " ").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if not line.startswith("#")]
    assert [name for name, _ in instructions] == ["FROM", "COPY", "RUN", "WORKDIR", "ENTRYPOINT"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pyserini, java = extras["pyserini"]
    assert f"--no-deps '{pyserini}'" in text
    assert java in extras["java"]
    assert instructions[-1][1] == '["greylag"]'
    (command,) = re.findall(r"greylag greylag (\w+)|-t greylag .* greylag (\w+) --", lines[0])
    assert set(command) & COMMANDS.keys()


def test_links_of_pages_outside_the_documentation_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), ROOT / ".github" / "SECURITY.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), (page, target)
