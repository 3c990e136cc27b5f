"""Indexes of the sample collection and of random texts, and topics of CACM."""

import html
import re

import pytest

from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex
from tests.greylag.index.lucene.samples import random_documents, write_json
from tests.greylag.index.samples import TEXTS, make_index


@pytest.fixture
def index(tmp_path):
    return make_index(tmp_path, TEXTS)


@pytest.fixture(scope="session")
def documents():
    return random_documents(seed=7, count=60)


@pytest.fixture(scope="session")
def small(documents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    build_index(write_json(folder / "docs.jsonl", documents), folder / "index")
    return LuceneIndex(folder / "index")


@pytest.fixture(scope="session")
def cacm_topics(data):
    """Topics as in Anserini's CacmTopicReader: all text after the number, unchanged."""
    text = (data("cacm") / "topics.cacm.txt").read_text()
    found = re.findall(r"<DOCNO>\s*(\d+)\s*</DOCNO>(.*?)</DOC>", text, re.DOTALL)
    return {qid: html.unescape(body).strip() for qid, body in found}
