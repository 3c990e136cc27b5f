"""Files to start from: for every study, checked against its settings."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from greylag.runtime.yaml_text import read_yaml
from greylag.studies.config import check_fields, file_fields, part_of
from greylag.studies.study import find_study, registered_studies
from greylag.studies.template import PLACEHOLDERS, description, template


def uncommented(text: str) -> str:
    """The file with its defaults, which start right after the hash."""
    return re.sub(r"^(\s*)#(?=\w|  )", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize("study", registered_studies())
def test_a_template_is_a_file_of_its_study(study: str, tmp_path: Path) -> None:
    form, path = find_study(study).settings, tmp_path / "mine.yaml"
    path.write_text(template(study, form))
    settings = check_fields(path, read_yaml(path), form)
    assert (settings.study, settings.name) == (study, f"my-{study.replace('_', '-')}")
    path.write_text(uncommented(path.read_text()))
    assert "\n#" not in re.sub(r"\n\s*# ", "", path.read_text())
    whole = check_fields(path, read_yaml(path), form)
    shown = read_yaml(path).keys()
    shared = file_fields(form.shared).keys() - {"collection", "topics", "qrels"} if form.shared else set()
    assert shown == (file_fields(form).keys() | shared) - {"expected"}
    for name, field in form.model_fields.items():
        if not field.is_required() and getattr(settings, name) is not None:
            assert getattr(whole, name) == getattr(settings, name)


def test_a_template_of_the_main_study() -> None:
    text = template("pipeline", find_study("pipeline").settings)
    assert yaml.safe_load(text) == {
        "name": "my-pipeline",
        "study": "pipeline",
        "collection": {"docs": "docs.jsonl"},
        "topics": PLACEHOLDERS["topics"],
        "qrels": PLACEHOLDERS["qrels"],
    }
    assert "#training:\n#  # The measure that is maximised" in text
    assert "#  objective: AP\n" in text
    assert max(map(len, text.splitlines())) <= 100


def parts(form: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield form
    for part in filter(None, map(part_of, file_fields(form).values())):
        yield from parts(part)


@pytest.mark.parametrize("study", registered_studies())
def test_every_field_is_described(study: str) -> None:
    for form in parts(find_study(study).settings):
        assert [name for name, field in file_fields(form).items() if not description(field)] == []
