"""Parts of pages: what they show, what they refuse, that they work in a browser, and which files they replace."""

import base64
import hashlib
import os
import re
import struct
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

import isinglass as ig
from browser import WIDTH, visited
from checks import refuses
from isinglass.pages import (
    MARK,
    Code,
    Picture,
    Pictures,
    Steps,
    Table,
    beliefs_as_pixels,
    html_page,
    label_colours,
    labels_as_pixels,
    page_of,
    png,
)

EVIL = "</title></script><script>alert('x')</script> & \"q\" 'r' <img src=x onerror=y>"


def decoded(image):
    """Read a PNG file of ours back."""
    width, height, _, kind = struct.unpack(">IIBB", image[16:26])
    start = image.index(b"IDAT")
    (length,) = struct.unpack(">I", image[start - 4 : start])
    data = np.frombuffer(zlib.decompress(image[start + 4 : start + 4 + length]), np.uint8)
    return data.reshape(height, -1)[:, 1:].reshape((height, width) if kind == 0 else (height, width, 3))


def test_pictures_and_text():
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(decoded(png(grey)), grey)
    colours = np.random.default_rng(0).integers(0, 256, (5, 2, 3)).astype(np.uint8)
    assert np.array_equal(decoded(png(colours)), colours)
    certain, equal, half = np.array([0.0, 1.0, 0.0]), np.full(3, 1 / 3), np.array([1 / 6, 4 / 6, 1 / 6])
    colours = beliefs_as_pixels(np.array([certain, equal, half]))
    np.testing.assert_allclose(colours[0], labels_as_pixels(np.array(1), 3))
    np.testing.assert_allclose(colours[1], 255.0)
    np.testing.assert_allclose(colours[2], (colours[0] + 255) / 2)
    assert "a &#55296; b é" in page_of("a \ud800 b é", [])


def test_strips_have_pictures_side_by_side():
    ramp = np.linspace(0, 1, 12).reshape(2, 2, 3)
    (strip,) = Pictures([("ramp", ramp)]).strips()
    assert strip.shape == (2, 3 + 1 + 3, 3)
    np.testing.assert_array_equal(strip[:, :3, 0], np.rint(255 * (1 - ramp[0])))
    np.testing.assert_array_equal(strip[:, 3], 255)
    (wide,) = Pictures([("beyond", 4 * ramp)]).strips()
    np.testing.assert_array_equal(wide, strip)
    (labels,) = Pictures([("labels", np.array([[[0, 1, -1]]]))], ["a", "b"]).strips()
    assert len({tuple(colour) for colour in labels[0].tolist()}) == 3
    assert "not observed" in Pictures([("x", np.array([[[0.0, np.nan]]]))]).html()
    assert "not observed" not in Pictures([("x", ramp)]).html()


@pytest.mark.parametrize("count", [2, 10, 11, 60])
def test_labels_differ_in_colour(count):
    assert len(set(label_colours(count))) == count


class Reader(HTMLParser):
    """Collect tags, attributes and text, and check that tags match."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in ("meta", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_page(tmp_path):
    pytest.importorskip("matplotlib")
    figures = [ig.viz.panel([np.eye(3)], ["truth"]) for _ in range(2)]
    table = Table(["method", "error", "n"], [["bp", 0.059912, 90], ["exact", None, np.int64(3)]], caption="Errors")
    pages = [
        page_of("Noisy digits", [("Results", ["One.\n\nTwo.", table]), ("Pictures", [figure])]) for figure in figures
    ]
    assert pages[0] == pages[1]
    reader = read(pages[0])
    assert (reader.tags.count("p"), reader.tags.count("h2")) == (2, 2)
    assert {"0.05991", "90", "-", "3", "Errors", "method"} <= set(reader.texts)
    (source,) = [value for tag, name, value in reader.attributes if (tag, name) == ("img", "src")]
    assert base64.b64decode(source.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    assert ("img", "alt", "truth") in reader.attributes


def test_page_needs_nothing_from_elsewhere():
    page = whole_page()
    without_data = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]*", "", page)
    assert not re.search(
        r"https?:|url\(|@import|<link|<iframe|<object|\bfetch\(|XMLHttp|innerHTML|eval\(", without_data
    )
    reader = read(page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [value for _, name, value in reader.attributes if name == "content" and "default-src" in str(value)]
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith(f"script-src 'sha256-{digest}'")  # no other script runs


def test_everything_is_escaped():
    rows = [(EVIL, np.zeros((1, 2, 2), int))]
    parts = [
        EVIL, Code(EVIL), Table([EVIL], [[EVIL], [np.str_(EVIL)]], EVIL), Pictures(rows, [EVIL, "b", "c"]),
        Picture(np.zeros((1, 1), np.uint8), EVIL), Steps(EVIL, [EVIL], [[EVIL, Table([EVIL], [[EVIL]])]]),
    ]  # fmt: skip
    reader = read(page_of(EVIL, [(EVIL, parts)], lead=EVIL, below=[EVIL]))
    assert (reader.tags.count("script"), reader.tags.count("img")) == (1, 2)
    assert {name for _, name, _ in reader.attributes} <= {
        "lang", "charset", "http-equiv", "content", "name", "alt", "src", "class", "style", "type", "scope", "min",
        "max", "value", "data-step",
    }  # fmt: skip
    assert "".join(reader.texts).count("alert('x')") == 19


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (["text"], r"sections\[0\]: expected a heading and a sequence of parts"),
        ([(1, [])], r"sections\[0\]"),
        ([("a", "text")], r"sections\[0\]\[1\]: expected a sequence of parts, got str; put a single part in a list"),
        ([("a", [3])], r"sections\[0\]\[1\]\[0\]: expected text, a Table, a figure or another part of a page, got int"),
        ([("a", [Table(["x"], [[1, 2]])])], r"sections\[0\]\[1\]\[0\]\.rows\[0\]: expected 1 values, got 2"),
        ([("a", [Pictures([])])], "rows: expected at least one row"),
        ([("a", [Pictures({"a": []})])], "rows: expected a sequence of names and arrays, got a mapping"),
        ([("a", ["b", Pictures([("row", np.zeros(3))])])], r"\[1\]\.rows\[0\]: expected real numbers"),
        ([("a", [Picture(np.eye(2))])], "pixels: expected bytes"),
        ([("a", [Steps("t", ["a"], [])])], "contents: expected one for each of 1 names"),
        ([("a", [Steps("t", ["a"], [[3]])])], r"\[0\]\.contents\[0\]\[0\]: expected text"),
    ],
)
def test_bad_pages(tmp_path, sections, message):
    refuses(message, html_page, "t", sections, tmp_path / "page.html")
    refuses("title", html_page, 3, [], tmp_path / "page.html")
    assert os.listdir(tmp_path) == []


def test_only_pages_of_ours_are_replaced(tmp_path):
    path = tmp_path / "index.html"
    html_page("one", [], path)
    html_page("two", [], path)
    assert "<title>two</title>" in path.read_text()
    assert os.listdir(tmp_path) == ["index.html"]
    for foreign in ("<!DOCTYPE html>\n<html></html>", " " * 500 + MARK):
        path.write_text(foreign)
        refuses(r"path: expected a place for a page, .* got another file, .*index\.html", html_page, "three", [], path)
        assert path.read_text() == foreign
    path.write_text("")
    html_page("four", [], path)
    assert MARK in path.read_text()


def whole_page():
    ramp = np.linspace(0, 1, 16).reshape(1, 4, 4)
    panels = [Pictures([("truth", ramp), ("bp", 1 - ramp)]), Pictures([("truth", ramp), ("bp", ramp)])]
    parts = [
        Table(["", ""], [["error", 0.0599], ["ended", "a text that is rather long, for such a table"]]),
        Steps("noise", ["10", "50"], [[panel] for panel in panels]),
        Pictures([("nine of them", np.repeat(ramp, 9, axis=0))]),
        Table([f"column {k}" for k in range(12)], [["wide", *range(11)]], "Numbers"),
        Table(["token"], [["averyverylongwordwithoutanyplacetobreakit" * 3]]),
        Picture(np.zeros((10, 1500), np.uint8), "a wide picture"),
        Code("isinglass " + "x" * 200),
    ]
    return page_of("A page with a rather long title", [("All of it", parts)], below=["made by a test"])


USE = """
    const slider = document.querySelector(".steps input"), steps = [...document.querySelectorAll("[data-step]")];
    const shown = () => steps.map((one) => one.checkVisibility());
    const found = [shown()];
    slider.value = 1;
    slider.dispatchEvent(new window.Event("input"));
    found.push(shown());
    return found;
"""


def test_a_page_is_used_in_a_browser(tmp_path):
    page = whole_page()
    found = visited([(page, 1100, USE), (page, 360, WIDTH), (page, 1100, WIDTH)], tmp_path)
    assert found == [[[True, False], [False, True]], 360, 1100]
