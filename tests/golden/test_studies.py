"""Studies; and the hashes themselves."""

import json

import pytest

from tests.golden import HASHES, MADE_BY, WRITE, check, digest
from tests.processes import run_here

STUDIES = "two_moons.manifold", "demo.svmdiv", "synthetic.svmdiv"


@pytest.mark.long
@pytest.mark.parametrize("study", STUDIES)
def test_a_study_finishes_as_it_did(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = f"experiment {study} --out {study}"
    run_here(*command.split())
    check(f"{study}/finished.json", tmp_path / study / "finished.json", command)


def test_each_hash_is_of_a_file_that_a_test_writes():
    tested = {f"{study}/finished.json" for study in STUDIES} | MADE_BY.keys() - {"index"}
    kept = json.loads(HASHES.read_text())
    if WRITE:
        HASHES.write_text(json.dumps({name: kept[name] for name in sorted(kept.keys() & tested)}, indent=1) + "\n")
    else:
        assert kept.keys() == tested


def test_a_changed_digit_changes_a_hash(tmp_path):
    first, second = tmp_path / "first.run", tmp_path / "second.run"
    first.write_text("1 Q0 d1 1 0.123456789 t\n")
    second.write_text("1 Q0 d1 1 0.123456788 t\n")
    assert digest(first) != digest(second)
