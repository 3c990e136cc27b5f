"""Files that a release needs: the page for programs, the workflow, the container."""

import re
import tomllib

import yaml

from tests.docs import ROOT, lay_out, run_page


def test_the_page_for_programs(tmp_path, monkeypatch):
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "AGENTS.md")
    assert {"model.json", "held-out.run", "best.run", "scores.json", "why.json"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_the_workflow_runs_the_checks_on_every_python_that_is_claimed():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    jobs = yaml.safe_load(workflow)["jobs"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == re.findall(r"Python :: (3\.\d+)", " ".join(classifiers))
    commands = [step["run"].split() for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {command for command, *_ in commands} == {".ci/run"}
    everything = re.search(r"^make \$\{\*:-(.*)\}$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)[1]
    assert sorted(target for _, *targets in commands for target in targets) == sorted(everything.split())
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_container_and_the_extras_have_the_same_versions():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pyserini, java = extras["pyserini"]
    assert f"'{pyserini}'" in (ROOT / "Dockerfile").read_text()
    assert java in extras["java"]


def test_links_of_pages_outside_the_documentation_lead_somewhere():
    for page in (*ROOT.glob("*.md"), ROOT / ".github" / "SECURITY.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), (page, target)
