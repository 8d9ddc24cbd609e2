"""Settings of Sphinx; the code beside them is in _ext/."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
os.environ.setdefault("MPLBACKEND", "Agg")

import gallery
import names
import numpydoc.xref
from sphinx.ext.autodoc._dynamic import _signatures

import isinglass

project = html_title = "Isinglass"
author = copyright = "The Isinglass developers"
version = release = isinglass.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_gallery.gen_gallery", "myst_parser"]
extensions += ["sphinx_design", "sphinx_copybutton", "sphinx_codeautolink"]
exclude_patterns = ["reference/examples", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = True
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
codeautolink_global_preface = "import isinglass as ig"
codeautolink_concat_default = True
suppress_warnings = ["codeautolink.match_block"]  # docstrings with flags of doctest, which pages leave out

# The reference: a page for each name.
autosummary_context = {"shown": names.MEMBERS}
autosummary_imported_members = True
autodoc_typehints = "none"  # docstrings have them
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
_signatures._CLASS_NEW_BLACKLIST |= {"isinglass.removed.RemovedOptions.__new__"}  # which passes all on to `__init__`
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = names.CLASSES
numpydoc_xref_ignore = "all"
numpydoc.xref.DEFAULT_LINKS.clear()  # they lead to the manuals of Python and NumPy

# Examples run when they have changed.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/{group}" for group in ("learn", "images", "sequences", "tables", "spins")],
    "filename_pattern": os.environ.get("EXAMPLES", "."),
    "image_scrapers": ("gallery.scraper",),
    "reset_modules": ("gallery.reset",),
    "ignore_repr_types": r"matplotlib|isinglass\.viz|'list'|'tuple'",  # what drawing returns
    "backreferences_dir": "reference/examples",
    "doc_module": ("isinglass",),
    "reference_url": {"isinglass": None},
    "remove_config_comments": True,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_sidebars = {"index": [], "tutorial": []}
html_theme_options = {
    "logo": dict.fromkeys(("image_light", "image_dark"), "_static/logo.svg") | {"text": html_title, "alt_text": "Home"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
    "search_as_you_type": True,
}


def setup(app):
    app.connect("builder-inited", gallery.draw_guides)
    app.connect("builder-inited", gallery.put_cards, priority=900)  # after the examples
    app.connect("source-read", gallery.downloads_on_top)
    app.connect("doctree-read", gallery.show_dark, priority=400)  # before pictures are collected
    app.connect("doctree-read", names.link_names)
    app.connect("autodoc-process-docstring", names.add_defaults, priority=400)  # before numpydoc
    app.connect("missing-reference", names.known_or_code)
    app.connect("build-finished", names.redirect)
