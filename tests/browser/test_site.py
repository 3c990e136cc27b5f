"""The site of the documentation: its search without a server, and pages at the widths of a phone and of a laptop."""

import html
import json
import re

import pytest

from tests.browser.pages import chromium
from tests.docs import DOCS
from tests.processes import python

_HARNESS = """\
<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre>
<iframe id="page" style="border: 0; width: {width}px"></iframe>
<script>
(async () => {{
  const frame = document.getElementById("page"), found = {{}};
  for (const name of {names}) {{
    await new Promise((done) => {{ frame.onload = done; frame.src = name; }});
    const page = frame.contentDocument;
    const all = (what) => [...page.querySelectorAll(`article ${{what}}`)];
    const cut = all("pre code").filter((code) => code.scrollWidth > code.clientWidth + 1);
    const keys = all("td:first-child code").filter((key) => key.getClientRects().length > 1);
    found[name] = {{ wide: page.documentElement.scrollWidth > frame.clientWidth,
      cut: cut.map((code) => code.textContent), broken: keys.map((key) => key.textContent) }};
  }}
  document.getElementById("found").textContent = JSON.stringify(found);
}})();
</script>
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="needs the documentation's requirements")
    folder = tmp_path_factory.mktemp("site")
    files = ["--config-file", str(DOCS.parent / "mkdocs.yml"), "--site-dir", str(folder)]
    python("-m", "mkdocs", "build", "--quiet", "--strict", *files, check=True)
    return folder


def dumped(address, folder, *flags):
    return chromium(folder, address, *flags, "--virtual-time-budget=120000", "--dump-dom").stdout


@pytest.mark.long
def test_the_search_works_from_files(site, tmp_path):
    page = dumped(f"{(site / 'how-to' / 'compare.html').as_uri()}?q=alpha-nDCG", tmp_path)
    assert re.search(r"\d+ matching documents", page)


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_and_code_is_not_cut(site, tmp_path, width):
    names = sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html")
    (site / "harness.html").write_text(_HARNESS.format(width=width, names=json.dumps(names)))
    flags = "--allow-file-access-from-files", "--window-size=1600,1000"
    page = dumped((site / "harness.html").as_uri(), tmp_path, *flags)
    (site / "harness.html").unlink()
    found = json.loads(html.unescape(page.partition('<pre id="found">')[2].partition("</pre>")[0]))
    assert found.keys() == {*names}
    for name, seen in found.items():
        assert not seen["wide"], name
        assert seen["broken"] == [], name
        assert width < 1000 or seen["cut"] == [], name  # on a phone, code scrolls
