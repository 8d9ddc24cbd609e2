"""A headless browser for pages: what they look like, and what they do when they are used."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
HARNESS = """<!DOCTYPE html><body>{frames}<script>
const uses = [{uses}];
addEventListener("load", async () => {{
  const found = [];
  for (const [i, use] of uses.entries()) {{
    const frame = document.querySelectorAll("iframe")[i];
    try {{ found.push(await use(frame.contentWindow, frame.contentDocument)); }}
    catch (error) {{ found.push("failed: " + error); }}
  }}
  document.body.dataset.found = JSON.stringify(found);
}});
</script></body>"""
WIDTH = "return document.documentElement.scrollWidth;"


def visited(visits, folder):
    """Open pages side by side in one browser, use them, and return what each use returns.

    A visit is a page, a width in pixels, and JavaScript: the body of an async function of the page's `window` and
    `document`. The pages run as they are, with their own policy. The browser may not complain about anything.
    """
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no headless browser: apt-get install chromium")
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:800px" srcdoc="{escape(page)}"></iframe>'
        for page, width, _ in visits
    )
    uses = ",\n".join(f"async (window, document) => {{ {script} }}" for _, _, script in visits)
    path = folder / "harness.html"
    path.write_text(HARNESS.format(frames=frames, uses=uses))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900", "--hide-scrollbars"]
    command += [f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True, timeout=60
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return json.loads(unescape(re.search(r'data-found="([^"]*)"', done.stdout)[1]))
