"""The pages that are made from the code, and those on studies, compared with their sources."""

import os
import re
from importlib import import_module
from types import SimpleNamespace

import pytest
import typer
import yaml

from greylag.cli import COMMANDS, app
from greylag.studies.config import file_fields, part_of, shipped_files
from greylag.studies.study import find_study
from tests.docs import DOCS, ROOT, load


@pytest.fixture(scope="module")
def hooks():
    return load("hooks")


@pytest.fixture(scope="module")
def pages(hooks):
    return hooks.pages()


def test_all_pages_are_in_the_navigation_and_the_first_page_leads_to_those_of_the_repository(pages):
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    navigation = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text())["nav"]
    assert set(re.findall(r"[\w./-]+\.md", str(navigation))) == written | pages.keys()
    assert not written & pages.keys()
    assert written - {"index.md"} <= set(re.findall(r"\]\(([\w./-]+\.md)", (DOCS / "index.md").read_text()))


def test_lines_of_code_fit_a_laptop(pages):
    """Chromium has cut lines of 131; see tests/browser/test_site.py."""
    texts = {str(path.relative_to(DOCS)): path.read_text() for path in DOCS.rglob("*.md")} | pages
    blocks = [(name, block) for name, text in texts.items() for block in re.findall(r"^```.*?^```", text, re.M | re.S)]
    assert len(blocks) > 100
    assert [(name, line) for name, block in blocks for line in block.splitlines() if len(line) > 122] == []


def test_links_that_lead_out_of_the_documentation_are_text(hooks):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="how-to/compare.md"))
    inside, outside = "[a](explain.md#b), [c](../index.md)", "[d](../../greylag_papers/README.md#e)"
    shown = hooks.on_page_markdown(f"{inside}, {outside}.", page=page)
    assert shown == f"{inside}, d (`plugin/greylag_papers/README.md`)."


def _anchor(heading):
    """The anchor of a heading, on GitHub and on the site."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_links_lead_somewhere_in_the_repository():
    written = [*ROOT.glob("*.md"), *(ROOT / "plugin").rglob("*.md"), *(ROOT / "configs").glob("*.md")]
    dead = []
    for page in written:
        text = page.read_text(encoding="utf-8")
        for link, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
            target = (page.parent / link).resolve() if link else page
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if anchor and target.exists() else []
            if not target.exists() or (anchor and anchor not in map(_anchor, headings)):
                dead.append(f"{page.relative_to(ROOT)}: {link}#{anchor}")
    assert len(written) > 40
    assert dead == []


def keys(form):
    fields = file_fields(form)
    parts = dict.fromkeys(filter(None, map(part_of, fields.values())))
    return [*fields, *(key for part in parts for key in keys(part))]


def test_every_key_of_studies_for_ones_own_data_is_described(hooks, pages):
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| (.*) \|$", pages["reference/experiments.md"], re.MULTILINE)
    expected = [key for study in hooks.STUDIES for key in keys(find_study(study).settings)]
    assert sorted(key for key, _, _ in rows) == sorted(expected)
    assert [key for key, _, text in rows if not text] == []


def test_the_kept_page_of_commands_is_that_of_the_code(hooks):
    """`make names` writes it."""
    kept, page = DOCS / "reference" / "commands.md", hooks.commands_page()
    if os.environ.get("GREYLAG_GOLDEN") == "write":
        kept.write_text(page, encoding="utf-8")
    assert kept.read_text(encoding="utf-8") == page


def test_every_command_and_option_is_described(hooks):
    page = hooks.commands_page()
    assert re.findall(r"^## greylag (.*)$", page, re.MULTILINE) == list(COMMANDS)
    assert "| `--jobs` | `-1` | Number of threads;" in page
    assert [row for row in re.findall(r"^\| `.*$", page, re.MULTILINE) if row.endswith("|  |")] == []


def test_options_that_the_pages_name_exist():
    group = typer.main.get_command(app)
    commands = [group, *(group.get_command(None, name) for name in COMMANDS)]
    known = {
        option
        for command in commands
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    others = {"--help", "--no-deps", "--max-passage"}  # of every command, of pip, and of Pyserini
    others |= {"--port", "--nworkers", "--nthreads", "--array", "--cpus-per-task"}  # of Dask and SLURM
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page.read_text(encoding="utf-8"))) <= known | others, page


def test_every_public_name_is_documented(hooks, pages):
    groups = [f"greylag{package}" for packages in hooks.API.values() for package in packages]
    assert sorted(groups) == sorted(hooks.PACKAGES)
    for packages in hooks.API.values():
        page = pages[hooks.api_path(packages)]
        for name, home in [item for package in packages for item in hooks.public_names(f"greylag{package}").items()]:
            assert f"::: {home}.{name}\n" in page or f"[`{name}`][{home}.{name}]" in page
            assert hasattr(import_module(home), name)
    everywhere = "\n".join(pages.values())
    for path in re.findall(r"\]\[(greylag\.[\w.]+)\]", everywhere):
        assert everywhere.count(f"::: {path}\n") == 1, path


def test_all_experiment_files_are_listed():
    listed = set(re.findall(r"`([\w.-]+\.yaml)`", (ROOT / "configs" / "README.md").read_text()))
    assert listed == {path.name for path in shipped_files().values()} - {"demo.yaml"}
