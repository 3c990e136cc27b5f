"""A small collection of labelled texts, and random accuracies."""

import json

import numpy as np
import yaml

from greylag_papers.lee_lee_2004.accuracies import Accuracies

WEIGHTS = (0.0, 0.5, 1.0)
OPTIONS = {"sizes": [4, 9], "preselect": 20, "relevance_weights": [1.0, 0.0, 0.5], "splits": 3, "folds": 3}


def accuracies(seed=0, splits=4, sizes=(5, 10), learners=("one", "two")):
    """Accuracies in eighths, with many ties."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.integers(0, 9, shape) / 8

    shape = (splits, len(sizes), len(learners))
    by_weight = (splits, len(WEIGHTS), len(sizes), len(learners))
    return Accuracies(
        learners=learners,
        sizes=sizes,
        relevance_weights=WEIGHTS,
        all_words=draw(splits, len(learners)),
        svm=draw(splits),
        information_gain=draw(*shape),
        koller_sahami=draw(*shape),
        mmr=draw(*by_weight),
        validated=draw(*by_weight),
        test_ratio=0.25,
    )


def small_collection(folder, **options):
    """Write texts of three labels, and an experiment file; return the latter's path.

    Each text has words of its label, common words, and one word that no other text has.
    """
    rng = np.random.default_rng(5)
    words = np.array([f"{a}{b}" for a in "bdfgk" for b in ("an", "en", "in", "on", "un", "ay", "ey", "oy")])
    records = []
    for number in range(60):
        label = number % 3
        rates = np.where(np.arange(len(words)) % 3 == label, 0.5, 0.25)
        counts = rng.poisson(rates)
        text = " ".join([*np.repeat(words, counts), f"rare{chr(97 + number // 26)}{chr(97 + number % 26)}"])
        split = ("train", "train", "train", "test", "other")[number % 5]
        records.append({"id": number, "label": "xyz"[label], "text": text.capitalize(), "split": split})
    (folder / "docs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    content = {"name": "small", "study": "categorisation", "documents": {"path": "docs.jsonl"}, **OPTIONS, **options}
    (folder / "small.yaml").write_text(yaml.safe_dump(content))
    return folder / "small.yaml"
