"""Every model is trained by threads, by other processes and on a cluster, with the same bytes."""

import joblib
import pytest

import greylag
from greylag import LuceneIndex, PositionalIndex, read_qrels, read_topics
from greylag.evaluation import read_subtopic_qrels
from greylag.recipes.spelling import MODEL_KINDS, parse_model
from tests.greylag.base.runtime.test_parallel import local
from tests.greylag.cli.conftest import made, made_by_greylag

__all__ = ["made", "made_by_greylag"]
FAST = {"mrf": "mrf(max_features=2)", "lambdamart": "lambdamart(trees=5)", "cssvm": "cssvm(M=2,epochs=3,k=3)"}


@pytest.fixture(scope="module")
def first(made):
    topics = dict(list(read_topics(made / "topics.tsv").items())[:8])
    return LuceneIndex(made / "index").bm25(k=30).run(topics)


@pytest.mark.long
@pytest.mark.parametrize("workers", ["loky", "dask"])
@pytest.mark.parametrize("name", MODEL_KINDS)
def test_models_do_not_depend_on_who_trains_them(name, workers, made, first, tmp_path):
    recipe = parse_model(FAST.get(name, name)).recipe
    index = PositionalIndex.from_lucene(made / "index")
    by_subtopic = read_subtopic_qrels(made / "qrels.subtopics.txt")
    qrels = by_subtopic if recipe.diversifies else read_qrels(made / "qrels.txt")
    files = []
    for where in ("threading", workers):
        with local(n_workers=2) if where == "dask" else joblib.parallel_config(where, n_jobs=2):
            greylag.train(first, qrels, index, recipe).model.save(tmp_path / where)
        files.append((tmp_path / where).read_bytes())
    assert files[0] == files[1]
