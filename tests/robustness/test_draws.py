"""Library calls that may draw, or depend on the order of hashes or on threads, have a seed or one thread of BLAS.

`index/vectors/test_latent.py` compares fresh processes, and tests of `learning.lambdamart` train twice.
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
