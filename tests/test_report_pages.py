"""Parts of pages: what they draw, what they refuse, and that they work in a browser."""

import re
import struct
import zlib
from html import unescape

import numpy as np
import pytest

from browser import WIDTH, visited
from isinglass.errors import InputError
from isinglass.pages import Bars, Code, Facts, Heat, Lines, Note, Pictures, Steps, Table, Tokens, page_of
from isinglass.pages.axes import Axis, tick_text
from isinglass.pages.png import png

EVIL = "</title></script><script>alert('x')</script> & \"q\" 'r' <img src=x onerror=y>"


def decoded(image):
    """Read a PNG file of ours back."""
    width, height, _, kind = struct.unpack(">IIBB", image[16:26])
    start = image.index(b"IDAT")
    (length,) = struct.unpack(">I", image[start - 4 : start])
    data = np.frombuffer(zlib.decompress(image[start + 4 : start + 4 + length]), np.uint8)
    return data.reshape(height, -1)[:, 1:].reshape((height, width) if kind == 0 else (height, width, 3))


def test_pictures_are_what_they_were():
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(decoded(png(grey)), grey)
    colours = np.random.default_rng(0).integers(0, 256, (5, 2, 3)).astype(np.uint8)
    assert np.array_equal(decoded(png(colours)), colours)


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [(0.0, 1.0, False), (-3.7, 8e5, False), (0.999, 1.001, False), (5.0, 5.0, False), (1e-12, 1e-12, True),
     (1e-30, 1e4, True), (0.2, 0.9, True), (5e-324, 1.0, True), (0.0, 0.0, False), (-1e-13, 2e-13, False)],
)  # fmt: skip
def test_axes_hold_their_values_and_few_ticks(low, high, log):
    axis = Axis.around([low, high, np.nan], 10.0, 110.0, log=log)
    assert all(10 - 1 <= axis.place(value) <= 110 for value in (low, high))
    ticks = axis.ticks()
    assert len(ticks) <= 13
    assert ticks == sorted(set(ticks))
    assert all(10 - 1e-6 <= axis.place(tick) <= 110 + 1e-6 for tick in ticks)
    texts = [tick_text(tick) for tick in ticks]
    assert [float(text) for text in texts] == pytest.approx(ticks)


def tips(page):
    return [unescape(tip) for tip in re.findall(r'data-tip="([^"]*)"', page)]


def test_lines_leave_out_what_cannot_be_drawn():
    lines = Lines({"a": ([1, 2, 3, 4], [1.0, np.nan, 0.0, 2.0]), "b": ([1], [np.inf])}, "n", log_y=True)
    page = lines.html()
    assert tips(page) == ["a\nn 1: 1", "a\nn 4: 2"]
    assert page.count("<path") == 2  # a gap between them
    assert "no values that can be drawn" in Lines({"a": ([], [])}).html()
    long = Lines({"a": (range(10_000), np.arange(10_000.0))}).html()
    assert 100 < long.count("<circle") <= 152
    assert "9999" in tips(long)[-1]
    with pytest.raises(InputError, match=r"curves\['a'\]: expected as many places as heights, got 2 and 1"):
        Lines({"a": ([1, 2], [1])}).html()


def test_bars_begin_at_zero_or_are_points():
    def places(page):
        boxes = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', page)
        return [(float(x), float(width)) for x, width in boxes]

    (x1, one), (x2, two), (x3, three) = places(Bars(["a", "b", "c"], [1.0, 2.0, -1.0]).html())
    assert x1 == x2
    assert (two, three) == (pytest.approx(2 * one, abs=0.2), pytest.approx(one, abs=0.2))
    assert x3 + three == pytest.approx(x1, abs=0.2)
    assert places(Bars(["a", "b"], [100.0, 101.0]).html()) == []
    assert len(places(Bars(["a", "b"], [100.0, 101.0], from_zero=True).html())) == 2
    page = Bars(["a", "b", "c", "d"], [None, np.nan, np.inf, 1.0], texts=["-", "-", "much", "1"]).html()
    assert len(places(page)) == 1
    assert tips(page) == ["a: -", "b: -", "c: much", "d: 1"]
    assert "<svg" in Bars([], []).html()
    with pytest.raises(InputError, match="values: expected one for each of 1 names, got 0"):
        Bars(["a"], []).html()


def test_heat_and_pictures_refuse_what_they_cannot_draw():
    with pytest.raises(InputError, match=r"values: expected an array \(1, 2\)"):
        Heat(np.zeros((2, 2)), ["a"], ["b", "c"]).html()
    with pytest.raises(InputError, match="panels: expected at least one"):
        Pictures({}).html()
    with pytest.raises(InputError, match=r"panels\['p'\]: expected real numbers"):
        Pictures({"p": [("row", np.zeros(3))]}).html()
    with pytest.raises(InputError, match=r"sections\[0\]\[1\]\[1\]\.values: expected an array"):
        page_of("t", [("h", ["text", Heat(np.zeros((2, 2)), ["a"], ["b"])])])


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Facts(3), "values: expected a mapping"),
        (Lines("t"), "curves: expected a mapping"),
        (Bars(["a"], ["x"]), "values: expected numbers, or None"),
        (Heat([[1, 2], [3]], ["a", "b"], ["c", "d"]), "values: expected an array of numbers"),
    ],
)
def test_figures_of_what_is_no_number_are_refused(part, words):
    with pytest.raises(InputError, match=words):
        part.html()


def test_everything_is_escaped():
    rows = [(EVIL, np.zeros((1, 2, 2), int))]
    parts = [
        EVIL, Note(EVIL), Code(EVIL), Facts({EVIL: EVIL}), Table([EVIL], [[EVIL]], EVIL),
        Bars([EVIL], [1.0], EVIL, [EVIL]),
        Lines({EVIL: ([0, 1], [0, 1]), "b": ([0], [1])}, EVIL, EVIL, EVIL, notes={EVIL: [EVIL, EVIL]}),
        Heat(np.ones((1, 1)), [EVIL], [EVIL], EVIL, EVIL, [[EVIL]]), Tokens([[(EVIL, EVIL, "x"), (EVIL, EVIL, None)]]),
        Pictures({EVIL: rows, "b": rows}, [EVIL, "b", "c"], EVIL, EVIL),
        Steps(EVIL, [EVIL], ["<p>safe</p>"]),
    ]  # fmt: skip
    page = page_of(EVIL, [(EVIL, parts)], lead=EVIL, below=[EVIL])
    assert page.count("<script>") == 1
    assert "<img src=x" not in page
    body = page.split("<body>")[1].split("<script>")[0]
    assert "onerror=y" in body
    assert not re.search(r"<[^>]*['\"][^>]*\son\w+=", re.sub(r'"[^"]*"', '""', body))  # no attribute was ended


def whole_page():
    ramp = np.linspace(0, 1, 16).reshape(1, 4, 4)
    parts = [
        Facts({"error": 0.0599, "ended": "a text that is rather long, for such a box"}),
        Lines({"one": ([1, 2, 3], [3.0, 2.0, 1.0]), "two": ([1, 2, 3], [3.0, 1.0, 0.5])}, "n", "loss", "Losses"),
        Bars(["a name that is far too long for its place", "b"], [1.0, 3.0], "Bars"),
        Heat(np.eye(12), [f"label {k}" for k in range(12)], range(12), "Confusion"),
        Pictures({"10": [("truth", ramp), ("bp", 1 - ramp)], "50": [("truth", ramp), ("bp", ramp)]}, slider="noise"),
        Table(["method", "error"], [["x", 0.10001], ["y", "-"], ["z", 9e-3], ["w", 0.10004]]),
        Table([f"column {k}" for k in range(12)], [["wide", *range(11)]]),
        Tokens([[("averyverylongwordwithoutanyplacetobreakit" * 3, "A", "B")]]),
        Code("isinglass " + "x" * 200),
    ]
    return page_of("A page with a rather long title", [("All of it", parts)], below=[Note("made by a test")])


USE = """
    const all = (query) => [...document.querySelectorAll(query)], found = {};
    const table = all("table")[0], head = table.querySelectorAll("button")[1];
    const order = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join("");
    found.orders = [order()];
    for (let k = 0; k < 3; k++) {
      head.click();
      found.orders.push(order(), head.parentElement.getAttribute("aria-sort"));
    }
    const slider = all(".steps input")[0];
    slider.value = 1;
    slider.dispatchEvent(new window.Event("input"));
    found.panels = all(".pictures").map((one) => one.checkVisibility());
    found.noise = all("output .now").map((one) => one.textContent);
    const chart = all("svg[data-near]")[0], box = chart.getBoundingClientRect(), tip = all(".tip")[0];
    const move = (target, x, y) => target.dispatchEvent(
      new window.PointerEvent("pointermove", { bubbles: true, clientX: x, clientY: y }));
    const point = all("svg[data-near] circle")[0].getBoundingClientRect();
    move(chart, point.x + 5, point.y + 5);
    found.tip = tip.textContent;
    all(".legend button")[1].click();
    move(chart, point.x + 5, point.y + 5);
    found.hidden = tip.textContent;
    const cell = all("svg.heat rect")[0];
    move(cell, 0, 0);
    found.cell = tip.textContent;
    move(document.body, 0, 0);
    found.none = tip.hidden;
    all(".strip button")[3].click();
    const dialog = document.querySelector("dialog"), picture = dialog.querySelector("img");
    found.zoomed = [dialog.open, picture.alt];
    const through = dialog.querySelector("input");
    through.value = 0;
    through.dispatchEvent(new window.Event("input"));
    found.zoomed.push(picture.alt);
    await picture.decode();
    const frame = picture.getBoundingClientRect();
    move(picture, frame.x + frame.width / 2 + 2, frame.y + frame.height / 2 + 2);
    found.value = dialog.querySelector(".value").textContent;
    dialog.close();
    const ground = () => window.getComputedStyle(document.body).backgroundColor;
    found.grounds = [ground()];
    all(".theme")[0].click();
    found.grounds.push(ground());
    return found;
"""


def test_a_page_is_used_in_a_browser(tmp_path):
    page = whole_page()
    found, *widths = visited([(page, 1100, USE), (page, 360, WIDTH), (page, 1100, WIDTH)], tmp_path)
    assert isinstance(found, dict), found
    assert widths == [360, 1100]
    assert found["orders"] == ["xyzw", "zxwy", "ascending", "wxzy", "descending", "xyzw", None]
    assert (found["panels"], found["noise"]) == ([False, True], ["50"])
    assert found["tip"] == "one\nn 1: 3\ntwo\nn 1: 3"
    assert found["hidden"] == "one\nn 1: 3"
    assert found["cell"] == "label 0 → 0\n1"
    assert found["none"] is True
    assert found["zoomed"] == [True, "50, bp, 1 of 1", "50, truth, 1 of 1"]
    assert found["value"] == "row 3, column 3: 0.667"
    assert len(set(found["grounds"])) == 2
