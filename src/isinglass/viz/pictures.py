"""Grey pictures side by side, and the marginals of a grid.

Figures are built without pyplot: there is no global state, no window, and any thread may draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isinglass.errors import InputError, MissingDependencyError
from isinglass.inference import Result
from isinglass.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 2.1  # inches of one picture
_DPI = 150


def panel(
    images: Sequence[ArrayLike],
    titles: Sequence[str] | None = None,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
) -> Figure:
    """Draw grey pictures in a row, all on the same scale.

    Parameters
    ----------
    images : sequence of arrays (height, width)
    titles : sequence of str, optional
        One for each picture.
    limits : (float, float)
        The values that are drawn white and black.

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
    """
    pictures = [_picture(image, f"images[{i}]") for i, image in enumerate(images)]
    names = [""] * len(pictures) if titles is None else list(titles)
    if not pictures:
        raise InputError("images", "at least one picture", "none")
    if len(names) != len(pictures):
        raise InputError("titles", f"one for each of {len(pictures)} pictures", f"{len(names)}")
    widths = [_HEIGHT * max(p.shape[1] / p.shape[0], 0.5) for p in pictures]
    figure = _figure((sum(widths) + 0.15 * (len(widths) + 1), _HEIGHT + 0.45))
    axes = figure.subplots(1, len(pictures), squeeze=False, width_ratios=widths)[0]
    for ax, picture, name in zip(axes, pictures, names, strict=True):
        _draw(ax, picture, name, limits)
    return figure


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
    if height * width != n:
        raise InputError("shape", f"a height and a width with {n} sites", f"{height} x {width}")
    wanted = whole_number(state, "state")
    if wanted >= int(result.potentials.graph.cards.min()):
        raise InputError("state", "a state that every variable has", str(wanted))
    picture = np.array([belief[wanted] for belief in result.variables]).real.reshape(height, width)
    figure = _figure((1.6 * _HEIGHT * max(width / height, 0.5) + 1.0, 1.6 * _HEIGHT + 0.4))
    ax = figure.subplots()
    drawn = _draw(ax, picture, title or f"P(state {wanted})", (0.0, 1.0))
    figure.colorbar(drawn, ax=ax, shrink=0.9, pad=0.03, ticks=[0.0, 0.5, 1.0])
    return figure


def _figure(size: tuple[float, float]) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        advice = "pictures need Matplotlib, which is not installed: pip install 'isinglass[viz]'"
        raise MissingDependencyError(advice) from error
    return Figure(figsize=size, dpi=_DPI, layout="constrained")


def _picture(image: ArrayLike, argument: str) -> NDArray[Any]:
    array = np.asarray(image)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "biuf":
        raise InputError(argument, "real numbers in an array (height, width)", f"{array.dtype} {array.shape}")
    return array.astype(np.float64)


def _draw(ax: Axes, picture: NDArray[Any], title: str, limits: tuple[float, float]) -> Any:
    """Draw one picture without ticks, with a thin grey frame; large values are dark, as ink on paper."""
    drawn = ax.imshow(picture, cmap="gray_r", vmin=limits[0], vmax=limits[1], interpolation="nearest")
    ax.set_title(title, fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set(color="0.6", linewidth=0.6)
    return drawn
