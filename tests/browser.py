"""A headless browser for pages: what a page looks like after its scripts ran."""

import re
import shutil
import subprocess

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH = "<script>document.body.dataset.wide = document.documentElement.scrollWidth</script>"


def opened(page, path, script="", width=900):
    """Open a page, run one more script, and return the document; no console message may be an error."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no headless browser: apt-get install chromium")
    path.write_text(page.replace("</body>", f"<script>{script}</script>{WIDTH}</body>"))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},800"]
    options = [f"--user-data-dir={path.parent / 'profile'}", "--enable-logging=stderr", "--dump-dom", path.as_uri()]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []
    return done.stdout


def width_of(document):
    """The width that the content of an opened page takes."""
    return int(re.search(r'data-wide="(\d+)"', document)[1])
