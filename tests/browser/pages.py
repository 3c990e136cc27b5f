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


def browser():
    """The path of a browser; skips the test if there is none, or no axe."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium")
    return found


def axe():
    """The source of axe."""
    spec = find_spec("axe_core_python")
    if spec is None or spec.origin is None:
        pytest.skip("no axe-core-python")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def show(page, folder, width, *, dark=False, question="return null"):
    """Open a page in a frame of `width` pixels, run the JavaScript `question` in it, then axe."""
    program, text = browser(), page.read_text(encoding="utf-8")
    probed = text.replace("</body>", _PROBE.format(axe=axe(), question=question) + "</body>")
    assert probed != text
    harness = folder / f"harness-{width}.html"
    harness.write_text(_HARNESS.format(width=width, page=html.escape(probed)), encoding="utf-8")
    colours = ["--blink-settings=preferredColorScheme=0"] if dark else []
    command = [
        *(program, *FLAGS, *colours, f"--user-data-dir={folder / 'profile'}", "--window-size=1600,1000"),
        *(f"--timeout={SECONDS * 1000}", "--virtual-time-budget=60000", "--dump-dom", harness.as_uri()),
    ]
    done = run(command, timeout=SECONDS, check=True)
    start = done.stdout.index('<pre id="found">') + len('<pre id="found">')
    found = json.loads(html.unescape(done.stdout[start : done.stdout.index("</pre>", start)]))
    assert found, "the page did not answer"
    assert "error" not in found, found["error"]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return SimpleNamespace(**found, console=console)
