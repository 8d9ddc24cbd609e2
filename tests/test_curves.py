"""Panels of many examples, and curves of convergence."""

import os
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import isinglass as ig
from checks import refuses


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
    refuses(message, ig.viz.panel, images, **more)


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
    refuses(message, ig.viz.convergence, histories, **more)
