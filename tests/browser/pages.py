"""What a headless browser makes of a page at a width: layout, errors on the console, and what axe finds."""

import html
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.processes import run

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr")
SECONDS = 240

_HARNESS = """\
<!DOCTYPE html><meta charset="utf-8"><title>running</title><pre id="found">{{}}</pre>
<iframe id="page" style="border: 0; height: 900px; width: {width}px" srcdoc="{page}"></iframe>
<script>
addEventListener("message", (event) => {{
  document.getElementById("found").textContent = event.data;
  document.title = "done";
}});
</script>
"""
_PROBE = """
<script>{axe}</script>
<script>
addEventListener("load", async () => {{
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const found = {{ width: innerWidth, needed: document.documentElement.scrollWidth, dark }};
  try {{
    found.asked = await (async () => {{ {question} }})();
    const checked = await axe.run(document, {{ resultTypes: ["violations"] }});
    found.violations = checked.violations.map((v) => `${{v.impact}} ${{v.id}}: ${{v.nodes[0].html.slice(0, 200)}}`);
  }} catch (error) {{ found.error = String(error); }}
  parent.postMessage(JSON.stringify(found), "*");
}});
</script>
"""


def chromium(folder, address, *flags):
    """What a browser with a profile in `folder` makes of an address; skips the test if there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None) or pytest.skip("no Chromium")
    return run([program, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", address], timeout=SECONDS, check=True)


def show(page, folder, width, *, dark=False, question="return null"):
    """Open a page in a frame of `width` pixels, run the JavaScript `question` in it, then axe."""
    spec, text = find_spec("axe_core_python") or pytest.skip("no axe-core-python"), page.read_text(encoding="utf-8")
    axe = (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    probed = text.replace("</body>", _PROBE.format(axe=axe, question=question) + "</body>")
    assert probed != text
    harness = folder / f"harness-{width}.html"
    harness.write_text(_HARNESS.format(width=width, page=html.escape(probed)), encoding="utf-8")
    flags = ["--blink-settings=preferredColorScheme=0"] * dark + ["--window-size=1600,1000"]
    flags += [f"--timeout={SECONDS * 1000}", "--virtual-time-budget=60000", "--dump-dom"]
    done = chromium(folder, harness.as_uri(), *flags)
    found = json.loads(html.unescape(done.stdout.partition('<pre id="found">')[2].partition("</pre>")[0]))
    assert found, "the page did not answer"
    assert "error" not in found, found["error"]
    return SimpleNamespace(**found, console=[line for line in done.stderr.splitlines() if "CONSOLE" in line])
