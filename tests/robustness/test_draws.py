"""Library calls that may draw have a seed; `index/vectors/test_latent.py` compares fresh processes.

Library calls that may draw, or depend on the order of hashes or on threads, and what fixes them:

- `eigsh` (ARPACK) in `index.vectors.latent`: a start vector and a generator; one thread of BLAS.
- `numpy.linalg.svd` in `index.vectors.latent`: one thread of BLAS.
- `numpy.random` in samples of documents and topics, folds, corrections for a choice, random orders, random starts,
  ensembles: `default_rng` with a seed, which `test_generators_are_seeded` holds.
- `scipy.stats.permutation_test` in `evaluation.significance`: `rng` of a seed.
- scikit-learn's splits and classifiers (`make_moons`, `ShuffleSplit`, `StratifiedKFold`, `LinearSVC`) in
  `greylag_papers`: `random_state`, which the same test holds. No k-means is in the package.
- LightGBM in `learning.lambdamart`: its tests train twice.
"""

import ast
from pathlib import Path

import greylag

PACKAGES = Path(greylag.__file__).parents[1]
SEEDED = {
    "default_rng": None, "eigsh": "rng", "svds": "rng", "eigs": "rng", "permutation_test": "rng",
    "make_moons": "random_state", "ShuffleSplit": "random_state", "StratifiedKFold": "random_state",
    "KFold": "random_state", "LinearSVC": "random_state", "KMeans": "random_state", "train_test_split": "random_state",
}  # fmt: skip


def test_generators_are_seeded():
    unseeded, found = [], set()
    for path in sorted(PACKAGES.glob("greylag*/**/*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if name not in SEEDED:
                continue
            found.add(name)
            keyword = SEEDED[name]
            is_seeded = call.args if keyword is None else keyword in {one.arg for one in call.keywords}
            if not is_seeded:
                unseeded.append(f"{path.relative_to(PACKAGES)}:{call.lineno} {name}")
    assert {"default_rng", "eigsh", "permutation_test"} <= found
    assert unseeded == []
