"""The pages that are made from the code, and those on studies, compared with their sources."""

import importlib.util
import re
from importlib import import_module
from types import ModuleType

import pytest
import yaml
from pydantic import BaseModel

from greylag.cli import COMMANDS
from greylag.experiments.config import file_fields, part_of
from greylag.experiments.study import find_study, registered_studies
from tests.docs import DOCS, ROOT


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(hooks: ModuleType) -> dict[str, str]:
    made: dict[str, str] = hooks.pages()
    return made


def test_all_pages_are_in_the_navigation(pages: dict[str, str]) -> None:
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    navigation = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text())["nav"]
    assert set(re.findall(r"[\w./-]+\.md", str(navigation))) == written | pages.keys()
    assert not written & pages.keys()


def keys(form: type[BaseModel]) -> list[str]:
    fields = file_fields(form)
    parts = filter(None, map(part_of, fields.values()))
    return [*fields, *(key for part in parts for key in keys(part))]


@pytest.mark.parametrize("study", registered_studies())
def test_every_key_of_every_study_is_described(study: str, pages: dict[str, str]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| (.*) \|$", pages[f"reference/experiments/{study}.md"], re.MULTILINE)
    assert sorted(key for key, _, _ in rows) == sorted(keys(find_study(study).settings))
    assert [key for key, _, text in rows if not text] == []


def test_every_command_and_option_is_described(pages: dict[str, str]) -> None:
    page = pages["reference/commands.md"]
    assert re.findall(r"^## greylag (.*)$", page, re.MULTILINE) == list(COMMANDS)
    assert "| `--out-run` |  | Run to write: each topic ranked by the model of its fold. |" in page
    assert "| `--jobs` | `-1` | Number of threads;" in page
    assert [row for row in re.findall(r"^\| `.*$", page, re.MULTILINE) if row.endswith("|  |")] == []


def test_every_public_name_is_documented(hooks: ModuleType, pages: dict[str, str]) -> None:
    for package in hooks.PACKAGES:
        page = pages[f"reference/api/{package}.md"]
        for name, home in hooks.public_names(package).items():
            assert f"::: {home}.{name}\n" in page or f"[`{name}`][{home}.{name}]" in page
            assert hasattr(import_module(home), name)
    everywhere = "\n".join(pages.values())
    for path in re.findall(r"\]\[(greylag\.[\w.]+)\]", everywhere):
        assert everywhere.count(f"::: {path}\n") == 1, path


def test_all_experiment_files_are_listed() -> None:
    listed = set(re.findall(r"`([\w.-]+\.yaml)`", (ROOT / "configs" / "README.md").read_text()))
    assert listed == {path.name for path in (ROOT / "configs").glob("*.yaml")}
