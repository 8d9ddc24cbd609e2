"""Panels of many examples, curves of convergence, and pages."""

import base64
import hashlib
import os
import re
from collections import namedtuple
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import InputError
from isinglass.viz import Table


def test_panel_of_examples():
    X, Y, _, _ = ig.datasets.noisy_digits(0.3, 1, 1)
    figure = ig.viz.panel(
        [Y[:3], X[:3, :, :, 1], np.full((3, 28, 28), 0.5)], ["truth", "input", "bp"], rows=["1", "2", "3"]
    )
    assert [ax.get_title() for ax in figure.axes] == ["truth", "input", "bp"] + [""] * 6
    assert [ax.get_ylabel() for ax in figure.axes] == ["1", "", "", "2", "", "", "3", "", ""]
    np.testing.assert_array_equal(figure.axes[4].get_images()[0].get_array(), X[1, :, :, 1])
    width, height = figure.get_size_inches()
    assert 0.5 < width / height < 2
    figure.savefig(os.devnull, format="png")


@pytest.mark.parametrize(
    ("images", "more", "message"),
    [
        (
            [np.zeros((2, 3, 3)), np.zeros((3, 3, 3))],
            {},
            r"images: expected as many pictures in every column, got \[2, 3\]",
        ),
        ([np.zeros((2, 3, 3))], {"rows": ["a"]}, "rows: expected one for each of 2 rows"),
        ([np.zeros((2, 3, 3))], {"titles": ["a", "b"]}, "titles: expected one for each of 1 columns"),
        ([np.zeros((0, 3, 3))], {}, "images"),
        ([np.zeros((2, 3, 3, 1))], {}, "images"),
    ],
)
def test_bad_panels(images, more, message):
    with pytest.raises(InputError, match=message):
        ig.viz.panel(images, **more)


@dataclass
class History:
    objective: list
    gradient_norm: list


Record = namedtuple("Record", "value gradient_norm")


@pytest.mark.long
@pytest.mark.parametrize(
    "history",
    [
        History([3.0, 2.0], [1.0, 0.1]),
        {"objective": [3.0, 2.0], "gradient_norm": (1.0, 0.1)},
        {"value": np.array([3.0, 2.0]), "gradient_norms": np.array([1.0, 0.1])},
        [Record(3.0, 1.0), Record(2.0, 0.1)],
        [{"objective": 3.0, "gradient_norm": 1.0}, {"objective": 2.0, "gradient_norm": 0.1}],
    ],
)
def test_histories_of_every_form(history):
    figure = ig.viz.convergence({"method": history}, title="a run")
    left, right = figure.axes
    np.testing.assert_array_equal(left.get_lines()[0].get_ydata(), [3, 2])
    np.testing.assert_array_equal(right.get_lines()[0].get_ydata(), [1, 0.1])
    assert (left.get_yscale(), right.get_yscale()) == ("log", "log")
    assert (left.get_xlabel(), left.get_ylabel(), right.get_ylabel()) == ("iteration", "objective", "gradient norm")
    assert figure.get_suptitle() == "a run"
    figure.savefig(os.devnull, format="png")


def test_several_methods_and_references():
    runs = {"a": [3.0, 2.0, 1.0], "b": [3.0, 0.5, np.inf]}
    figure = ig.viz.convergence(runs, reference="best")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [2.5, 1.5, 0.5])
    np.testing.assert_array_equal(
        axes.get_lines()[1].get_ydata(), [2.5, np.nan, np.nan]
    )  # the lowest is at minus infinity
    known = ig.viz.convergence(runs, reference=0.25).axes[0]
    assert known.get_ylabel() == "objective - 0.25"
    assert known.get_lines()[1].get_ydata()[1] == 0.25
    assert len({line.get_color() for line in axes.get_lines()}) == 2


@pytest.mark.long
@pytest.mark.parametrize("values", [[], [np.inf, np.nan], [1.0], [1.0, 1.0]])
@pytest.mark.parametrize("reference", [None, "best", 1.0])
def test_histories_with_little_in_them(values, reference):
    figure = ig.viz.convergence({"a": values}, reference=reference)
    figure.savefig(os.devnull, format="png")


def test_negative_objectives_are_on_a_linear_axis():
    figure = ig.viz.convergence({"a": [3.0, -2.0]})
    assert figure.axes[0].get_yscale() == "linear"
    np.testing.assert_array_equal(figure.axes[0].get_lines()[0].get_ydata(), [3, -2])
    assert ig.viz.convergence({"a": [3.0, 2.0]}, log=False).axes[0].get_yscale() == "linear"


@pytest.mark.parametrize(
    ("histories", "more", "message"),
    [
        ({}, {}, "histories: expected a mapping"),
        ([1, 2], {}, "histories: expected a mapping"),
        ({"a": 3}, {}, r"histories\['a'\]: expected objectives"),
        ({"a": "text"}, {}, r"histories\['a'\]: expected a sequence of real numbers"),
        ({"a": [[1, 2]]}, {}, r"histories\['a'\]: expected a sequence of real numbers"),
        ({"a": [1.0]}, {"reference": "worst"}, "reference: expected a number, 'best' or None"),
        ({"a": [1.0]}, {"reference": np.nan}, "reference"),
    ],
)
def test_bad_histories(histories, more, message):
    with pytest.raises(InputError, match=message):
        ig.viz.convergence(histories, **more)


class Reader(HTMLParser):
    """Collect tags, attributes and text, and check that tags match."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def page(tmp_path, *arguments):
    ig.viz.html_page(*arguments, tmp_path / "page.html")
    assert os.listdir(tmp_path) == ["page.html"]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return text, reader


def test_page(tmp_path):
    figures = [ig.viz.panel([np.eye(3)], ["truth"]) for _ in range(2)]
    table = Table(["method", "error", "n"], [["bp", 0.059912, 90], ["exact", None, np.int64(3)]], caption="Errors")
    text, reader = page(tmp_path, "Noisy digits", [("Results", ["One.\n\nTwo.", table]), ("Pictures", figures[:1])])
    assert reader.tags.count("p") == 2
    assert reader.tags.count("h2") == 2
    assert {"0.05991", "90", "-", "3", "Errors", "method"} <= set(reader.texts)
    (source,) = [value for tag, name, value in reader.attributes if (tag, name) == ("img", "src")]
    assert base64.b64decode(source.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    assert ("img", "alt", "Pictures, truth") in reader.attributes
    again, _ = page(tmp_path, "Noisy digits", [("Results", ["One.\n\nTwo.", table]), ("Pictures", figures[1:])])
    assert again == text


def test_page_needs_nothing_from_elsewhere(tmp_path):
    text, reader = page(tmp_path, "t", [("h", [ig.viz.convergence({"a": [2.0, 1.0]})])])
    without_data = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]*", "", text)
    assert not re.search(
        r"https?:|url\(|@import|<link|<iframe|<object|\bfetch\(|XMLHttp|innerHTML|eval\(", without_data
    )
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(reader.tags)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [value for _, name, value in reader.attributes if name == "content" and "default-src" in str(value)]
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith(f"script-src 'sha256-{digest}'")  # no other script runs


def test_text_is_escaped(tmp_path):
    evil = "</title><script>alert('x')</script> & \"quotes\" <img src=x onerror=y>"
    figure = ig.viz.panel([np.eye(2)], ['a" onload="x'])
    text, reader = page(
        tmp_path, evil, [(evil, [evil, Table([evil], [[evil], [np.str_(evil)]], caption=evil), figure])]
    )
    assert reader.tags.count("script") == 1  # the page's own
    assert reader.tags.count("img") == 1
    assert {name for _, name, _ in reader.attributes} <= {
        "lang", "charset", "http-equiv", "content", "name", "alt", "src", "class", "type", "scope", "aria-label"
    }  # fmt: skip
    assert "".join(reader.texts).count("alert('x')") == 8  # title, head, heading, paragraph, caption, column, two cells
    assert "{" not in text.split("</style>")[1].split("<section>")[0]


def test_text_that_is_no_utf8(tmp_path):
    text, _ = page(tmp_path, "a \ud800 b é", [])
    assert "a &#55296; b é" in text


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (["text"], r"sections\[0\]: expected a heading and a sequence of parts"),
        ([(1, [])], r"sections\[0\]"),
        ([("a", "text")], r"sections\[0\]\[1\]: expected a sequence of parts, got str; put a single part in a list"),
        ([("a", [3])], r"sections\[0\]\[1\]\[0\]: expected text, a Table, a figure or another part of a page, got int"),
        ([("a", [Table(["x"], [[1, 2]])])], r"rows\[0\]: expected 1 values, got 2"),
    ],
)
def test_bad_pages(tmp_path, sections, message):
    with pytest.raises(InputError, match=message):
        ig.viz.html_page("t", sections, tmp_path / "page.html")
    with pytest.raises(InputError, match="title"):
        ig.viz.html_page(3, [], tmp_path / "page.html")
    assert os.listdir(tmp_path) == []
