"""The study on the demonstration collection, small."""

import yaml

from tests.greylag.studies.samples import DEMO

SYSTEMS = [
    "first stage", "LM", "BM25", "SDM", "MRF-LM", "MRF-BM25", "RM3",
    "MRF-FS", "MRF-FS retrained", "MRF-FS inner CV", "MRF-FS expansion", "coordinate ascent",
]  # fmt: skip


def write_config(folder, **options):
    content = {
        "name": "small", "study": "mrf", "data": str(DEMO), "topics": "topics.tsv", "qrels": "qrels.txt",
        "collection": {"docs": "docs.jsonl", "type": "JsonCollection"}, "features": {"pool": "sd"},
        "grid": {"mu": [50, 500], "k1": [0.9, 1.6], "b": [0.4], "fb_docs": [5], "fb_terms": [10, 30]},
        "training": {"max_features": 6, "folds": 3, "restarts": 2, "seed": 1}, "measures": ["P@10"],
    }  # fmt: skip
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(content | options))
    return path
