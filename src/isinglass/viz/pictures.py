"""Grey pictures and maps of labels side by side, and the marginals of a grid.

Figures are built without pyplot: there is no global state, no window, and any thread may draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, MissingDependencyError, require
from isinglass.inference import Result
from isinglass.pages import MISSING, beliefs_as_pixels, label_colours, labels_as_pixels
from isinglass.typing import Array
from isinglass.validation import array_of, whole_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@runtime_checkable
class Labeller(Protocol):
    """What `panel` needs of an estimator."""

    def predict(self, X: ArrayLike) -> ArrayLike:
        """Return labels in the shape of the images."""

    def predict_marginals(self, X: ArrayLike) -> ArrayLike:
        """Return beliefs, with the states as a last axis."""


_HEIGHT = 2.1  # inches of one picture
_SMALL = 1.0  # the same where there are several rows
_DPI = 150
_LEGEND = 20  # labels that a legend can show


def panel(
    images: Sequence[ArrayLike] | ArrayLike,
    titles: Sequence[str] | Labeller | None = None,
    labels: ArrayLike | None = None,
    *,
    rows: Sequence[str] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    states: int | None = None,
    most: int = 8,
    feature: int = -1,
) -> Figure:
    """Draw grey pictures or maps of labels side by side; of several examples, one below the other.

    ``panel(X, crf, Y)`` draws what a fitted estimator makes of images: input, truth, marginals and prediction. With two
    labels they are grey: the probability of label 1. With more each label has a colour, and marginals are drawn in the
    colour of the most probable label, the paler the less certain it is.

    Parameters
    ----------
    images : sequence of arrays (height, width), or of arrays (n, height, width)
        One for each column, such as truth, noisy input and the marginals of two methods. Stacks of n pictures make
        n rows. With an estimator: its X, (images, height, width, features). What is nan, or masked, is marked.
    titles : sequence of str, optional
        One for each column. Or a fitted estimator, such as `GridCRF`.
    labels : int array (images, height, width), optional
        With an estimator: the truth; -1, not observed, is marked.
    rows : sequence of str, optional
        One for each row.
    limits : (float, float)
        The values that are drawn white and black.
    states : int, optional
        The pictures are labels from 0 to this number, which each has a colour; below 0, not observed, is marked.
    most, feature : int
        With an estimator: how many images are drawn, and which of their features, from its least value to its largest.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDependencyError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import isinglass as ig
    >>> figure = panel([ig.datasets.glyph()], ["a fish"])
    >>> figure.axes[0].get_title()
    'a fish'
    >>> X, Y, _, _ = ig.datasets.noisy_digits(noise=0.3)
    >>> len(panel([Y[:9], X[:9, :, :, 1]], ["truth", "input"], rows=list("123456789")).axes)
    18
    >>> crf = ig.GridCRF(iterations=2).fit(X[:5], Y[:5])
    >>> [ax.get_title() for ax in panel(X[5:7], crf, Y[5:7]).axes[:4]]
    ['input', 'truth', 'marginals', 'prediction']
    """
    if isinstance(titles, Labeller):
        columns, names = _learned(images, titles, labels, whole_number(most, "most", 1), feature)
    elif labels is not None:
        raise InputError("labels", "None without an estimator", type(labels).__name__, "panel(X, crf, Y)")
    else:
        columns = _given(images, limits, states)  # type: ignore[arg-type]
        names = _labels(titles, len(columns), "titles", "columns")
    return _figure(columns, names, _labels(rows, len(columns[0].stack), "rows", "rows"))


@dataclass(frozen=True, eq=False)
class _Column:
    """Pictures (n, height, width) one below the other, grey; or labels or beliefs, with so many states."""

    stack: Array
    limits: tuple[float, float] = (0.0, 1.0)
    states: int | None = None

    @property
    def missing(self) -> bool:
        """Whether nothing is known of some pixels."""
        if self.states is None:
            return bool(np.isnan(self.stack).any())
        return self.stack.ndim == 3 and bool((self.stack < 0).any())

    def draw(self, ax: Axes, i: int, title: str) -> None:
        """Draw picture i."""
        picture = self.stack[i]
        if self.states is not None:
            pixels = beliefs_as_pixels(picture) if picture.ndim == 3 else labels_as_pixels(picture, self.states)
            picture = pixels / 255
        _draw(ax, picture, title, self.limits)


def _figure(columns: list[_Column], titles: list[str], sides: list[str]) -> Figure:
    """Draw columns of pictures, and the legend of labels if they have colours."""
    height = _HEIGHT if len(sides) == 1 else _SMALL
    widths = [height * max(c.stack.shape[2] / c.stack.shape[1], 0.5) for c in columns]
    states = max(c.states or 0 for c in columns)
    legend = {str(k): colour for k, colour in enumerate(label_colours(states))} if states <= _LEGEND else {}
    legend |= {"not observed": MISSING} if any(c.missing for c in columns) else {}
    below = 0.3 * bool(legend)
    figure = figure_of((sum(widths) + 0.15 * (len(widths) + 1), len(sides) * (height + 0.1) + 0.35 + below))
    axes = figure.subplots(len(sides), len(columns), squeeze=False, width_ratios=widths)
    for i, side in enumerate(sides):
        for j, column in enumerate(columns):
            column.draw(axes[i, j], i, titles[j] if i == 0 else "")
        axes[i, 0].set_ylabel(side, fontsize=9)
    if legend:
        from matplotlib.patches import Patch

        handles = [Patch(color=colour, label=name) for name, colour in legend.items()]
        most = max(1, int(figure.get_figwidth() / 0.55) - 2)
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(len(handles), most), fontsize=7, frameon=False
        )
    return figure


def _given(images: Sequence[ArrayLike], limits: tuple[float, float], states: int | None) -> list[_Column]:
    """Return the columns of given pictures, all with as many rows."""
    card = None if states is None else whole_number(states, "states", 1)
    stacks = [_stack(image, f"images[{i}]") for i, image in enumerate(images)]
    require(stacks, "images", "at least one picture", "none")
    counts = [len(stack) for stack in stacks]
    require(len(set(counts)) <= 1, "images", "as many pictures in every column", str(counts))
    return [_Column(stack if card is None else np.nan_to_num(stack, nan=-1.0), limits, card) for stack in stacks]


def _learned(X: Any, crf: Labeller, Y: Any, most: int, feature: int) -> tuple[list[_Column], list[str]]:
    """Return the columns of what an estimator makes of images, and their titles."""
    some = X[:most]
    given = _stack_of(some, "images")
    if given.ndim != 4 or not isinstance(feature, int) or not -given.shape[-1] <= feature < given.shape[-1]:
        got = f"shape {given.shape} and feature {feature!r}"
        raise InputError("images", "an array (images, height, width, features) with that feature", got)
    drawn = given[..., feature]
    beliefs = _stack_of(crf.predict_marginals(some), "marginals")
    card = beliefs.shape[-1]
    columns = {"input": _Column((drawn - drawn.min()) / (np.ptp(drawn) or 1.0))}
    if Y is not None:
        truth = _stack_of(Y[:most], "labels")
        if truth.shape != drawn.shape:
            raise InputError("labels", f"shape {drawn.shape}", f"shape {truth.shape}", "give a label to each pixel")
        columns["truth"] = _of_labels(truth, card)
    columns["marginals"] = _Column(beliefs[..., 1]) if card == 2 else _Column(beliefs, states=card)
    columns["prediction"] = _of_labels(_stack_of(crf.predict(some), "prediction"), card)
    return list(columns.values()), list(columns)


def _of_labels(labels: Array, states: int) -> _Column:
    """Return a column of labels: grey if there are two, in colours if there are more."""
    return _Column(np.where(labels < 0, np.nan, labels)) if states == 2 else _Column(labels, states=states)


def _stack_of(pictures: ArrayLike, argument: str) -> Array:
    """Return pictures of one size, which may be a list, as one array."""
    return array_of(pictures, argument, "images of one size", ragged="draw them one by one")


def marginals(result: Result, shape: Sequence[int], *, state: int = 1, title: str = "") -> Figure:
    """Draw the marginal probability of a state at every site of a grid, with a scale beside it.

    Parameters
    ----------
    result : Result
        Of a model whose variables are numbered row by row, such as one on `grid_graph`.
    shape : (int, int)
        Height and width of the grid.
    state : int
        Whose probability is drawn.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.datasets.denoising_model([[0, 1, 1], [0, 1, -1]])
    >>> len(marginals(ig.infer(p), (2, 3)).axes)  # the picture and the scale
    2
    """
    height, width = (whole_number(side, "shape", 1) for side in shape)
    n = len(result.variables)
    require(height * width == n, "shape", f"a height and a width with {n} sites", f"{height} x {width}")
    wanted = whole_number(state, "state")
    require(wanted < int(result.potentials.graph.cards.min()), "state", "a state that every variable has", str(wanted))
    picture = np.array([belief[wanted] for belief in result.variables]).real.reshape(height, width)
    figure = figure_of((1.6 * _HEIGHT * max(width / height, 0.5) + 1.0, 1.6 * _HEIGHT + 0.4))
    ax = figure.subplots()
    drawn = _draw(ax, picture, title or f"P(state {wanted})", (0.0, 1.0))
    figure.colorbar(drawn, ax=ax, shrink=0.9, pad=0.03, ticks=[0.0, 0.5, 1.0])
    return figure


def figure_of(size: tuple[float, float]) -> Figure:
    """Return an empty figure of a size in inches, which notebooks show; without Matplotlib, say how to get it."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        advice = "pictures need Matplotlib, which is not installed: pip install 'isinglass[viz]'"
        raise MissingDependencyError(advice) from error
    from isinglass.viz.figures import ShownFigure

    return ShownFigure(figsize=size, dpi=_DPI, layout="constrained")


def _stack(image: ArrayLike, argument: str) -> Array:
    array = (
        np.ma.filled(image.astype(np.float64), np.nan) if isinstance(image, np.ma.MaskedArray) else np.asarray(image)
    )
    if array.ndim not in (2, 3) or not array.size or array.dtype.kind not in "biuf":
        expected = "real numbers in an array (height, width) or (n, height, width)"
        raise InputError(argument, expected, f"{array.dtype} {array.shape}")
    return array.astype(np.float64).reshape(-1, *array.shape[-2:])


def _labels(texts: Sequence[str] | None, count: int, argument: str, what: str) -> list[str]:
    labels = [""] * count if texts is None else list(texts)
    require(len(labels) == count, argument, f"one for each of {count} {what}", f"{len(labels)}")
    return labels


def _draw(ax: Axes, picture: Array, title: str, limits: tuple[float, float]) -> Any:
    """Draw one picture without ticks, with a thin grey frame; large values are dark, as ink on paper."""
    from matplotlib import colormaps

    grey = colormaps["gray_r"].with_extremes(bad=MISSING)
    drawn = ax.imshow(picture, cmap=grey, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    ax.set_title(title, fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set(color="0.6", linewidth=0.6, visible=True)
    return drawn
