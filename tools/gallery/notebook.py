"""A script as a Jupyter notebook, without outputs."""

from __future__ import annotations

import nbformat
from nbformat import v4

from gallery.script import Script


def notebook_of(script: Script) -> str:
    """Return the JSON text of the notebook."""
    cells = [v4.new_markdown_cell(f"# {script.title}\n\n{script.summary}")]
    for cell in script.cells:
        if cell.text:
            cells.append(v4.new_markdown_cell(cell.text))
        if cell.code:
            cells.append(v4.new_code_cell(cell.code))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same in each build
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    found = v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})
    nbformat.validate(found)
    return nbformat.writes(found)
