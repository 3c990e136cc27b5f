"""The table of what to cite."""

import re
from pathlib import Path

import greylag
from greylag.base.core.citations import cite, references
from greylag.evaluation.scoring.measures import FAMILIES
from greylag.features.stage_registry import registered_stages


def test_each_entry_is_bibtex():
    lines = cite(" ".join(paper.names[0] for paper in references()))
    assert lines == [paper.bibtex for paper in references()]
    assert len(lines) == (Path(greylag.__file__).parent / "references.bib").read_text().count("@")
    keys = []
    for line in lines:
        kind, key, fields = re.fullmatch(r"@(article|book|inproceedings)\{(\w+), (.*)\}", line).groups()  # type: ignore[union-attr]
        keys.append(key)
        assert line.count("{") == line.count("}")
        required = {"article": "journal", "book": "publisher", "inproceedings": "booktitle"}[kind]
        assert re.findall(r"(\w+) = \{", fields) == ["author", "title", required, "year"]
        assert fields.endswith(f"year = {{{key[-4:]}}}")
    assert len(set(keys)) == len(keys)


def test_what_is_named_is_cited():
    def keys(text):
        return [line.split("{")[1].partition(",")[0] for line in cite(text)]

    assert keys("1 FI/term/LM\n2 SD/ordered/BM25-O-4, learned by GreedySelection") == [
        "robertson1994", "zhai2004", "metzler2005", "metzler2007",
    ]  # fmt: skip
    assert keys("alpha-nDCG@10, ERRoneous, my-mmr") == ["clarke2008"]
    assert keys("nothing") == []


def test_names_are_those_of_stages_and_measures():
    """A method that is renamed elsewhere is renamed here."""
    known = {name for paper in references() for name in paper.names}
    stages = set("mmr msd dpp xquad pm2 essential-pages svmdiv cssvm manifold".split())
    measures = set("nDCG ERR bpref infAP alpha-nDCG ERR-IA P-IA NRBP S-recall".split())
    assert stages <= known & registered_stages().keys()
    assert measures <= known & {family.name.split("@")[0] for family in FAMILIES}
