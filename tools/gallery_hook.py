"""Put the gallery into the documentation: a hook of MkDocs (see mkdocs.yml and docs/guides/example.md).

All scripts of docs/gallery are run, by a process for each processor. One that fails is a warning, so that
`mkdocs build --strict` fails, and its page shows the traceback. `mkdocs serve` runs again only what has changed. The
environment variable GALLERY names the scripts to run ("ising*"); of the others only the code is shown.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs takes it away again after this module was loaded

from mkdocs.structure.files import File, Files

from gallery.execution import Run, prepare_worker, run_script
from gallery.notebook import notebook_of
from gallery.pages import Group, index_of, page_of, read_groups, with_html
from gallery.script import Script, read_script

log = logging.getLogger("mkdocs.hooks.gallery")
FOLDER = "gallery"
_runs: dict[str, Run] = {}  # by the text of the script: what `mkdocs serve` need not run again
_html: dict[str, list[str]] = {}  # by the path of the page


def on_config(config: Any) -> Any:
    """Put the pages of all examples below the entry gallery/index.md of the navigation."""
    scripts, groups = _gallery(config)
    pages = [{group.title: [{scripts[n].title: f"{FOLDER}/{n}.md"} for n in group.examples]} for group in groups]
    if config.nav is not None:
        config.nav = _expanded(config.nav, [f"{FOLDER}/index.md", *pages])
    return config


def on_files(files: Files, config: Any) -> Files:
    """Run the scripts, and add their pages, pictures and notebooks."""
    scripts, groups = _gallery(config)
    runs = _run_all([s for s in scripts.values() if fnmatch(s.name, os.environ.get("GALLERY", "*"))])
    cards = {name: card for group in groups for name, card in group.examples.items()}
    pictured = {}
    for name, script in scripts.items():
        page = page_of(script, runs.get(name), cards[name])
        _html[f"{FOLDER}/{name}.md"] = page.html
        made: dict[str, str | bytes] = {f"{name}.md": page.markdown, f"{name}.ipynb": notebook_of(script), **page.files}
        pictured[name] = f"images/{name}-small.png" in made
        for path, content in made.items():
            files.append(File.generated(config, f"{FOLDER}/{path}", content=content))
    index = index_of(groups, scripts, pictured)
    files.append(File.generated(config, f"{FOLDER}/index.md", content=index))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Put outputs that are HTML into a rendered page."""
    return with_html(html, _html.get(page.file.src_uri, []))


def _gallery(config: Any) -> tuple[dict[str, Script], list[Group]]:
    folder = Path(config.docs_dir) / FOLDER
    scripts = {path.stem: read_script(path) for path in sorted(folder.glob("*.py"))}
    return scripts, read_groups(folder / "gallery.toml", list(scripts))


def _expanded(nav: Any, section: list[Any]) -> Any:
    """Return the navigation with the section in place of its first page, wherever that is."""
    if isinstance(nav, list):
        return [_expanded(entry, section) for entry in nav]
    if isinstance(nav, dict):
        return {title: section if entry == section[0] else _expanded(entry, section) for title, entry in nav.items()}
    return nav


def _run_all(scripts: list[Script]) -> dict[str, Run]:
    """Run the scripts that were not run yet; return the runs of all by name."""
    new = [script for script in scripts if script.source not in _runs]
    if new:
        for script, run in zip(new, _run_in_pool(new), strict=True):
            log.info(f"Gallery: {script.name} took {run.seconds:.1f} s of processor time")
            if run.failed:
                problem = next(out.content for shown in run.outputs for out in shown if out.kind == "error")
                log.warning(f"Gallery: {script.name}.py failed\n{problem}")
            _runs[script.source] = run
    return {script.name: _runs[script.source] for script in scripts}


def _run_in_pool(scripts: list[Script]) -> list[Run]:
    tools, before = str(Path(__file__).parent), list(sys.path)
    sys.path.insert(0, tools)  # new processes begin with the path of this one
    try:
        spawn = multiprocessing.get_context("spawn")
        workers = min(-(-len(scripts) // 4), os.cpu_count() or 1)  # each begins with seconds of imports
        with ProcessPoolExecutor(workers, spawn, initializer=prepare_worker) as pool:
            return list(pool.map(run_script, scripts))
    finally:
        sys.path[:] = before
