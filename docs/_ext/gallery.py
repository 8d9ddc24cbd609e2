"""Examples and pictures: each picture in a light and a dark version, and a card of one panel for each example."""

import colorsys
import contextlib
import pickle
import re
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from docutils import nodes
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

DOCS = Path(__file__).parent.parent
DPI = 160
NOTE = re.compile(r"\.\. only:: html\n\n    \.\. note::.*?full example code\.\n", re.DOTALL)
save_as_is = Figure.savefig


def reset(gallery_conf=None, name=None):
    """Before each example: the style, and no figures."""
    plt.close("all")
    mpl.rcdefaults()
    plt.style.use(Path(__file__).with_name("isinglass.mplstyle"))


def scraper(block, variables, gallery_conf, **_):
    """Save the open figures, and the figure that is the value of the last expression."""
    value, shown = variables["example_globals"].get("___"), []
    found = [plt.figure(number) for number in plt.get_fignums()]
    found += [value] if isinstance(value, Figure) and value not in found else []
    for figure in found:
        path = Path(next(variables["image_path_iterator"]))
        save(card_of(figure), path.with_name(f"{path.stem}-card.png"), 480 / 3.8, "standard")
        save(figure, path)
        alt = ", ".join(ax.get_title() for ax in figure.axes if ax.get_title()).replace("\n", " ") or path.stem[9:]
        place, width = path.relative_to(gallery_conf["src_dir"]).as_posix(), Image.open(path).width * 100 // DPI
        shown.append(f".. image:: /{place}\n   :alt: {alt}\n   :width: {width}px\n")
    plt.close("all")
    return "\n".join(shown)


def save(figure, path, dpi=DPI, bbox="tight", **_):
    """Write NAME.png and NAME-dark.png, with at most 256 colours, which makes files of a third of the size."""
    for file in (Path(path), Path(path).with_name(f"{Path(path).stem}-dark.png")):
        with mpl.rc_context({"savefig.bbox": bbox}):
            save_as_is(figure, file, dpi=dpi, transparent=True, metadata={"Software": None})
        picture = Image.open(file).convert("RGBA").quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        picture.save(file, optimize=True)
        invert_greys(figure)


def invert_greys(figure):
    """Make what is nearly grey light where it was dark, and the other way round; keep colours."""
    on_images = {text for ax in figure.axes if ax.images for text in ax.texts}
    for artist in {*figure.findobj()} - on_images:
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            with contextlib.suppress(TypeError, ValueError, AttributeError):  # no colour: "auto", or none to be set
                getattr(artist, f"set_{name}")(inverted(getattr(artist, f"get_{name}")()))
        for effect in artist.get_path_effects() or []:
            if "foreground" in getattr(effect, "_gc", {}):
                effect._gc["foreground"] = inverted(effect._gc["foreground"])
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):  # labels of ticks are made when drawn
        axis.set_tick_params(which="both", colors=inverted(mpl.rcParams["xtick.color"]))


def inverted(colour):
    """Return a colour, or an array of them, with greys inverted: black becomes .93, white .08."""
    if isinstance(colour, np.ndarray) and colour.ndim == 2:
        return np.array([inverted(row) for row in colour]) if len(colour) else colour
    red, green, blue, alpha = mpl.colors.to_rgba(colour)
    if max(red, green, blue) - min(red, green, blue) > 0.15 or alpha == 0:
        return red, green, blue, alpha
    hue, light, vivid = colorsys.rgb_to_hls(red, green, blue)
    return (*colorsys.hls_to_rgb(hue, 0.93 - 0.85 * light, vivid), alpha)


def card_of(figure):
    """Return a copy of the figure that shows one panel, the largest, at the size of a card."""
    card = pickle.loads(pickle.dumps(figure))
    panel = max(card.axes, key=lambda ax: round(ax.bbox.width * ax.bbox.height, -3))
    for artist in {*card.axes, *card.legends, *card.texts, panel.get_legend()} - {panel, None}:
        artist.remove()
    for place in ("left", "center", "right"):
        panel.set_title("", loc=place)
    panel.set_subplotspec(card.add_gridspec(1, 1)[0])
    card.set_layout_engine("constrained", rect=(0.02, 0.02, 0.96, 0.96))
    card.set_size_inches(3.8, 2.66)
    return card


def put_cards(app):
    """Show the card of the first figure, or of the one that `sphinx_gallery_thumbnail_number` names."""
    for script in DOCS.glob("../examples/*/*.py"):
        number = re.search(r"thumbnail_number = (\d+)", script.read_text()) or (0, 1)
        images = DOCS / "gallery" / script.parent.name / "images"
        for card in images.glob(f"sphx_glr_{script.stem}_{int(number[1]):03}-card*.png"):
            thumb = re.sub("_...-card", "_thumb", card.name)
            (images / "thumb" / thumb).write_bytes(card.read_bytes())


def downloads_on_top(app, docname, source):
    """Link the script and the notebook under the title of an example, not at its end; its code has links already."""
    text, mark, _ = source[0].partition(".. _sphx_glr_download_")
    if mark and docname.startswith("gallery/"):
        name = docname.rpartition("/")[2]
        links = f":download:`Script <{name}.py>` · :download:`Notebook <{name}.ipynb>`"
        text = re.sub(r"\n=+\n", rf"\g<0>\n{links}\n\n.. autolink-skip:: file\n", NOTE.sub("", text), count=1)
        source[0] = f":html_theme.sidebar_secondary.remove:\n{text}"


def draw_guides(app):
    """Run the code of guides that save the pictures they show; not again where page and pictures are as they were."""
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        wanted = [DOCS / name for name in re.findall(r"!\[.*\]\(([\w-]+\.png)\)", text)]
        if all(one.exists() and one.stat().st_mtime > page.stat().st_mtime for one in wanted):
            continue
        reset()
        Figure.savefig = lambda figure, name, **_: save(figure, DOCS / name)
        code = "".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            exec(compile(code, page.name, "exec"), {"print": lambda *_: None})
        Figure.savefig = save_as_is


def show_dark(app, document):
    """Put the dark version of a picture beside the light one; style sheets show one of them."""
    for image in list(document.findall(nodes.image)):
        light = Path(app.env.relfn2path(image["uri"])[1])
        if light.name.endswith("_thumb.png"):
            image["alt"] = light.stem[9:-6].replace("_", " ")
        if light.with_name(f"{light.stem}-dark.png").exists():
            dark = image.deepcopy()
            dark["uri"] = f"{image['uri'].removesuffix('.png')}-dark.png"
            image["classes"].append("only-light")
            dark["classes"].append("only-dark")
            image.parent.insert(image.parent.index(image) + 1, dark)
