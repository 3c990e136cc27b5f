from __future__ import annotations

from importlib.metadata import PackagePath
from pathlib import Path

import pytest

import greylag
from greylag.errors import ParameterError
from greylag.experiments import shipped

CONFIGS = Path(greylag.__file__).parents[2] / "configs"
DEMO = Path(greylag.__file__).parent / "demo" / "demo.yaml"


def test_the_files_of_a_checkout() -> None:
    files = [DEMO, *CONFIGS.glob("*.yaml")]
    assert list(shipped.shipped_files().values()) == sorted(files, key=lambda path: path.stem)
    assert shipped.shipped_file("cacm.mrf") == shipped.shipped_file("cacm.mrf.yaml") == CONFIGS / "cacm.mrf.yaml"


def test_an_unknown_name() -> None:
    with pytest.raises(ParameterError, match=r"'cacn.yaml' cannot be read: .* greylag; did you mean 'cacm'\?$"):
        shipped.shipped_file("cacn.yaml")
    with pytest.raises(ParameterError, match=r"'x' cannot be read: .* comes with greylag: ambient.cssvm, .*, cacm"):
        shipped.shipped_file("x")


def test_the_files_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the installer records them, relative to site-packages."""
    (tmp_path / "lib").mkdir()
    installed = tmp_path / "share" / "greylag" / "configs" / "mine.yaml"
    installed.parent.mkdir(parents=True)
    installed.write_text("name: mine\n")

    class Installed:
        files = [PackagePath("../share/greylag/configs/mine.yaml"), PackagePath("greylag/demo/demo.yaml")]  # noqa: RUF012

        def locate_file(self, path: str) -> Path:
            return tmp_path / "lib" / path

    for path in Installed.files:
        path.dist = Installed()
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "lib" / "greylag" / "experiments" / "shipped.py"))
    monkeypatch.setattr(shipped, "distribution", lambda name: Installed())
    demo = tmp_path / "lib" / "greylag" / "demo" / "demo.yaml"
    assert shipped.shipped_files() == {"demo": demo, "mine": installed}
