"""``make screenshots``: the demonstration's picture, and what a browser makes of a report and of an explanation."""

import re
import subprocess
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from tests.browser.pages import chromium
from tests.docs import DEMO, DOCS

PICTURE = DOCS / "demo.svg"


def picture(report):
    """The first chart of a report, as an image of its own."""
    chart = re.search(r'<svg role="img" aria-label="([^"]*)"([^>]*>)(.*?</svg>)', report.read_text("utf-8"), re.DOTALL)
    assert chart
    return f'<svg role="img"{chart[2]}\n<title>{chart[1]}</title>{chart[3]}\n'


def main(folder):
    """Write the picture, and screenshots into `folder` if there is Chromium."""
    folder.mkdir(parents=True, exist_ok=True)
    greylag = [sys.executable, "-m", "greylag"]
    demo = folder / "demo"
    subprocess.run([*greylag, "experiment", "demo", "--out", str(demo)], check=True, stdout=subprocess.DEVNULL)
    PICTURE.write_text(picture(demo / "report.html"), encoding="utf-8")
    inputs = ["--index", str(demo / "index"), "--topics", str(DEMO / "topics.tsv"), "--run", str(demo / "bm25.run")]
    model = str(min((demo / "models").glob("*.json")))
    document = ["--qid", "3", "--docid", "demo-501", "--format", "html"]
    with open(folder / "explanation.html", "w", encoding="utf-8") as page:
        subprocess.run([*greylag, "explain", model, *inputs, *document], check=True, stdout=page)
    pages = {"report": demo / "report.html", "explanation": folder / "explanation.html"}
    with suppress(pytest.skip.Exception):  # without Chromium
        for (name, page), width in product(pages.items(), (390, 1280)):
            shot = folder / f"{name}-{width}.png"
            words = [f"--screenshot={shot}", f"--window-size={width},1600", "--hide-scrollbars"]
            chromium(folder, page.resolve().as_uri(), *words)
            print(shot)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
