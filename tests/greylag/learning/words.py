"""Random and real words with class labels, and the formula of information gain."""

import gzip
import json
import math

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer


def gain_by_formula(event, y):
    """The formula of the paper for one event, term by term."""
    gain = -sum(p * math.log(p) for p in (np.mean(y == c) for c in set(y.tolist())))
    for holds in (event, ~event):
        for c in set(y[holds].tolist()):
            p = np.mean(y[holds] == c)
            gain += np.mean(holds) * p * math.log(p)
    return gain


def random_words(seed, n_documents=40, n_words=12, n_classes=3):
    """Words of all document frequencies, including 0 and N, two of them equal; every class occurs."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_documents, n_words)) < np.linspace(0, 1, n_words)
    X[:, 2] = X[:, 5]
    y = rng.permutation(np.arange(n_documents) % n_classes)
    return X, y


def newsgroups(folder, every):
    """Words and labels of every n-th message, with n = `every`."""
    with gzip.open(folder / "newsgroups.jsonl.gz", "rt") as lines:
        messages = [json.loads(line) for i, line in enumerate(lines) if i % every == 0]
    counts = CountVectorizer(binary=True).fit_transform([message["text"] for message in messages])
    return counts, np.array([message["group"] for message in messages])


def words_of_equal_gain():
    """Twenty classes of fifty documents, and ten words whose counts are permutations of each other."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 51, 20)
    X = np.column_stack([np.concatenate([np.arange(50) < n for n in rng.permutation(counts)]) for _ in range(10)])
    return X, np.repeat(np.arange(20), 50)
