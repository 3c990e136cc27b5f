"""The tutorial of stages: its distribution is built, installed in a folder, and used on the command line."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from greylag.trec import read_run
from tests.docs import DOCS, lay_out, run_page
from tests.processes import python

MODULES = "my_stages", "my_diversifiers"


@pytest.mark.long
def test_a_distribution_with_stages(indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    shutil.copytree(indexed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    site = tmp_path / "site"
    # pip reads its options from these; isolation is "no" by a 0.
    for name, value in {"TARGET": site, "NO_DEPS": 1, "NO_BUILD_ISOLATION": 0, "NO_INDEX": 1}.items():
        monkeypatch.setenv(f"PIP_{name}", str(value))
    monkeypatch.setenv("PYTHONPATH", str(site))
    try:
        run_page(DOCS / "tutorials" / "stage.md", here=False)
    finally:
        for name in MODULES:
            sys.modules.pop(name, None)
    assert list(site.glob("my_stages-1.0.dist-info"))
    assert read_run("named.run").rankings == read_run("own.run").rankings != read_run("bm25.run").rankings

    def greylag(*words: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "greylag", "rerank", "--run", "bm25.run", "--out", "new.run", *words, cwd=site)

    for name in ("bm25.run", "index"):
        (site / name).symlink_to(tmp_path / name)
    refused = greylag("--index", "index", "--stage", "interpolated")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "give --topics: interpolated" in refused.stderr
    groups = [json.dumps({"id": d, "group": d[-1]}) for d in read_run("bm25.run").rankings[0].docids]
    (site / "groups.jsonl").write_text("\n".join(groups))
    grouped = greylag("--stage", "spread(groups=groups.jsonl,k=5)")
    assert grouped.returncode == 0, grouped.stderr
    assert read_run(site / "new.run").tag.endswith("-spread")
