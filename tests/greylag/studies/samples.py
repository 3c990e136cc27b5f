"""A small study without an index, and short ways to run any study."""

import json
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated

import greylag
from greylag import ParameterError, Ranking, Run
from greylag.base.core.tables import Table
from greylag.evaluation import Section
from greylag.features.named_files import FEATURE_FILES
from greylag.studies import Experiment, InputFile, Outcome, Study, load
from greylag.studies.runner import run_study

DEMO = Path(greylag.__file__).parent / "demo"
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Settings(Experiment):
    """A file of numbers, and what is done with them."""

    numbers: InputFile
    factor: float = 1.0
    models: int = 1
    other: InputFile | None = None
    features: Annotated[str, FEATURE_FILES] | None = None
    fails: bool = False


@dataclass(frozen=True)
class Number:
    """A model that is a number."""

    value: float

    def save(self, path):
        path.write_text(json.dumps(self.value))


def read(settings, context):
    context.progress("opened")
    return [float(line) for line in settings.path(settings.numbers).read_text().split()]


def run(settings, numbers, context):
    with context.timed("adding"):
        total = settings.factor * sum(numbers)
    if settings.fails:
        raise ParameterError("the study fails")
    table = Table("Sums", ("system", "sum"), [("all", total)])
    return Outcome(
        scores={"all": {"sum": total}},
        results={"numbers": numbers},
        tables=[table, "A line.\n"],
        title="Sum of numbers",
        sections=[Section("Results", "Everything is added up.", [table])],
        runs={"sum": Run((Ranking("1", "query", ("a", "b"), [2.0, 1.0]),), "sum")},
        models={f"part/{number}": Number(total) for number in range(settings.models)},
        seconds=context.seconds,
        provenance={"fingerprint": "abc"},
    )


STUDY = Study(Settings, read, run)


def run_file(path, out, *, n_jobs=1):
    """Run the study of an experiment file."""
    return run_study(*load(path), out, n_jobs=n_jobs)


def results(out):
    """The content of ``results.json``."""
    return json.loads((out / "results.json").read_text())


class Page(HTMLParser):
    """An HTML page: texts by element, cells by row, attributes, and the elements that are still open at the end."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.texts = {}
        self.rows = []
        self.attributes = []
        self.cell = "td"
        self.feed(text)
        self.close()

    @property
    def text(self):
        return "".join(text for texts in self.texts.values() for text in texts)

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")
        if tag == "tr":
            self.rows.append([])
        elif tag == "td" or (tag == "th" and ("scope", "row") in attrs):
            self.rows[-1].append("")
            self.cell = tag

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data
            if [tag for tag in self.open if tag != "a"][-1] == self.cell and self.rows and self.rows[-1]:
                self.rows[-1][-1] += data
