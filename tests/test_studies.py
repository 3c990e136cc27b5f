"""The check of all studies, and the table of its last run."""

import pytest

from tests import studies
from tests.studies import check, code_digest, read_table, write_table


def test_the_table_is_of_the_files_and_nothing_differs():
    """A row's number of figures is its file's: a file that was changed afterwards is checked again."""
    rows, expected = read_table(), {path.name: figures for path, figures in studies.studies()}
    assert rows
    assert {name: row.figures for name, row in rows.items()} == {name: expected[name] for name in rows}
    assert {row.differing for row in rows.values()} <= {"0", "no data"}


def test_the_digest_is_of_code_that_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "ROOT", tmp_path)
    monkeypatch.setattr(studies, "CODE", ("package",))
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()

    def digest(text):
        module.write_text(text)
        return code_digest()

    first = digest('"""Words."""\n\ndef f(x):\n    """More."""\n    return x + 1  # one\n')
    assert digest("def f(x):\n    return (x+1)\n") == first
    assert digest("def f(x):\n    return x + 2\n") != first
    assert digest("def f(x):\n    return x + '1'\n") != first


@pytest.mark.long
def test_figures_that_differ_are_counted(tmp_path, monkeypatch):
    """A study as it is, with one figure changed, without a row, and without its data."""
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    monkeypatch.setattr(studies, "WORK", tmp_path)
    monkeypatch.setattr(studies, "TABLE", tmp_path / "table.md")
    source = (studies.ROOT / "configs" / "two_moons.manifold.yaml").read_text()
    head, _, expected = source.partition("expected:\n")
    lines = expected.splitlines(keepends=True)
    turned = lines[0].replace("0.", "9.", 1)
    texts = {
        "same": source,
        "one": f"{head}expected:\n{turned}{''.join(lines[1:])}",
        "less": f"{head}expected:\n{''.join(lines[1:])}",
    }
    rows = {}
    for name, text in texts.items():
        (path := tmp_path / f"{name}.yaml").write_text(text)
        rows[path.name] = check(path, 1, "digest")
    assert [row.differing for row in rows.values()] == ["0", "1", "1"]
    write_table(rows)
    assert read_table() == dict(sorted(rows.items()))
    absent = (studies.ROOT / "configs" / "cacm.yaml").read_text().replace("../../shared/data", "nowhere")
    (path := tmp_path / "absent.yaml").write_text(absent)
    assert check(path, 1, "digest").differing == "no data"
