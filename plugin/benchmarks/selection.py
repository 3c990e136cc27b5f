"""Feature selection: MMR on text against the aim, information gain against scikit-learn, preselection against none."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import mutual_info_classif
from threadpoolctl import threadpool_limits

from benchmarks.harness import DATA, Row, once, seconds
from greylag.evaluation import read_qrels, read_topics
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.positional import PositionalIndex
from greylag.learning.data import useful_features
from greylag.learning.extraction import training_data
from greylag.learning.greedy import GreedySelection
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.preselect import MMRPreselection
from greylag.learning.selection import MMRFeatureSelection
from greylag_papers.labelled_text import Documents, read_labelled_texts

N_DOCUMENTS, N_WORDS = 4200, 40_000


def rows() -> Iterator[Row]:
    """All rows of feature selection."""
    yield from text_rows()
    yield from preselection_rows()


def text_rows() -> Iterator[Row]:
    """News messages, the first of them twice to make up the number; the most frequent words, split at white space."""
    path = DATA / "rec_newsgroups" / "newsgroups.jsonl.gz"
    messages = read_labelled_texts(path, Documents(path="", label="group"))
    again = np.arange(N_DOCUMENTS) % len(messages.texts)
    texts, y = [messages.texts[i] for i in again], np.array(messages.labels)[again]
    X = CountVectorizer(binary=True, max_features=N_WORDS, token_pattern=r"\S+").fit_transform(texts)
    selector = MMRFeatureSelection(200, relevance_weight=0.5, preselect=1000)
    with threadpool_limits(1):
        size = f"{X.shape[0]} documents of {X.shape[1]} words"
        yield Row(f"MMR: 200 of 1000 from {size}", seconds(lambda: selector.fit(X, y)), "s", "at most 1")
        some = X[:, np.random.default_rng(0).choice(N_WORDS, 1000, replace=False)]
        theirs = once(lambda: mutual_info_classif(some, y, discrete_features=True))
        ratio = theirs / seconds(lambda: MMRFeatureSelection(1, relevance_weight=1.0).fit(some, y))
        yield Row("information gain of 1000 words: mutual_info_classif's time / ours", ratio, "x")


def preselection_rows() -> Iterator[Row]:
    """Selecting five features on CACM, from the whole pool and from 16 features that preselection leaves."""
    with tempfile.TemporaryDirectory() as folder:
        build_index(DATA / "cacm" / "cacm.tar.gz", Path(folder, "cacm"))
        lucene = LuceneIndex(Path(folder, "cacm"))
        run = lucene.bm25().run(read_topics(DATA / "cacm" / "topics.cacm.txt"))
        extractor = FeatureExtractor(PositionalIndex.from_lucene(lucene), candidate_pool())
        data = training_data(run.rankings, read_qrels(DATA / "cacm" / "qrels.cacm.txt"), extractor)
    learner, preselection = GreedySelection(Objective("AP")), MMRPreselection(16)
    whole = seconds(lambda: learner.fit(useful_features(replace(data))[0]), 3)  # a copy has nothing cached
    narrowed = seconds(lambda: learner.fit(preselection.select(replace(data))), 3)
    yield Row("cacm: time of selection from the whole pool / after mmr(n_features=16)", whole / narrowed, "x")
