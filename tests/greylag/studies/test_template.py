"""Files to start from, which come with greylag, against the settings of their studies."""

import re
from importlib.resources import files
from pathlib import Path

import yaml
from pydantic import BaseModel

from greylag.studies import load
from greylag.studies.config import Experiment, file_fields

TEMPLATES = Path(str(files("greylag.studies") / "templates"))


def test_the_template_of_the_main_study_shows_every_key_with_its_docstring_and_default(tmp_path):
    text = (TEMPLATES / "pipeline.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(re.sub(r"^(\s*)#(?=\w|  )", r"\1", text, flags=re.MULTILINE))
    shown = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    (_, short), (_, whole) = load(TEMPLATES / "pipeline.yaml"), load(tmp_path / "mine.yaml")
    forms = {
        "": type(short),
        **{name: type(part) for name, part in short if isinstance(part, BaseModel) and name != "model"},
    }
    comments = "".join(re.sub("^ *#? *(# )?", "", line) for line in text.splitlines()).replace(" ", "")
    for name, form in forms.items():
        fields = file_fields(form)
        assert (shown[name] if name else shown).keys() == fields.keys() - {"expected"}
        for key in fields.keys() - Experiment.model_fields.keys() | {"data"} & fields.keys():
            assert "".join((fields[key].description or "").replace("`", "").split()) in comments
    assert whole.model_dump() == short.model_dump()
    assert yaml.safe_load(text).keys() == {"name", "study", "collection", "topics", "qrels"}
