"""A small version of the digits for a demonstration: four kinds of training, in less than a minute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from isinglass.datasets import noisy_digits
from isinglass.experiments.common.experiment import Progress, tell
from isinglass.experiments.common.methods import Training, error, ink, predict, start_of, train
from isinglass.experiments.common.selection import Selected, select
from isinglass.runtime.compilation.helper import helping, processors
from isinglass.runtime.compilation.progress import working
from isinglass.runtime.interrupts import ending_all
from isinglass.typing import Array
from isinglass.validation import whole_number

NOISE = 0.5
TEST_IMAGES = 5  # of each digit
THREADS = 2  # the images are few
GRID = (10.0, 0.1, 0.001)  # of l2: few, to be quick
NAMES = {
    "pixels": "independent pixels",
    "pseudo": "pseudolikelihood",
    "trw": "surrogate likelihood (trw)",
    "ucl-4": "ucl-4",
}


class DemoRow(NamedTuple):
    """A method, its share of wrong test pixels, the l2 that was chosen, and the seconds that all of that took."""

    method: str
    error: float
    l2: float | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """What a demonstration shows.

    Attributes
    ----------
    title, note : str
    rows : list of DemoRow
    columns : list of (title, array (9, height, width))
        Truth, input, and the marginals of each method, for one test image of each digit.
    """

    title: str
    note: str
    rows: list[DemoRow]
    columns: list[tuple[str, Array]] = field(repr=False)


@ending_all()
@working("demo")
@helping(f"{__name__}:compile_from_the_end")
def train_demo(images: int = 3, iterations: int = 20, progress: Progress | None = None) -> Demo:
    """Train four methods on few noisy digits, and test them on others.

    Parameters
    ----------
    images : int
        For training, of each digit from 1 to 9.
    iterations : int
        Of L-BFGS, at most.
    progress : callable, optional
        Told the method that was trained, and the fraction that is done.
    """
    count = whole_number(images, "images", 1)
    training = Training(max_iter=whole_number(iterations, "iterations", 1), tol=1e-4, most=40, grid=GRID)
    data, threads = noisy_digits(NOISE, count, TEST_IMAGES), min(THREADS, processors())
    columns: list[tuple[str, Array]] = [("truth", data.Y_test[:9]), ("input", data.X_test[:9, :, :, 1])]
    rows = [DemoRow("noisy input", float((data.X_test[..., 1] != data.Y_test).mean()), None, 0.0)]
    found: dict[str, Selected] = {}
    for i, name in enumerate(NAMES):  # what one starts from comes before it
        found[name] = select(name, data.X, data.Y, training, found.get(start_of(name) or ""), threads)
        result = predict(found[name].whole, data.X_test)
        rows.append(DemoRow(NAMES[name], error(result, data.Y_test), found[name].l2, found[name].seconds))
        columns.append((name, ink(result, data.Y_test)[:9]))
        tell(progress, f"trained {NAMES[name]}", (i + 1) / len(NAMES))
    title = f"Denoising binary digits, {NOISE:.0%} of whose pixels got a random value"
    note = (
        f"{len(data.Y)} training and {len(data.Y_test)} test images, at most {training.max_iter} iterations of "
        f"training; l2 is the one with the least error on a third of the training images after training on the others. "
        f"Few images and iterations, to be quick; 'isinglass reproduce digits' takes 90 of each and trains to the end"
    )
    return Demo(title, note, rows, columns)


def compile_from_the_end() -> None:
    """Compile what the methods need, the last one first; see `isinglass.runtime.compilation.helper`."""
    data = noisy_digits(NOISE, 1, 1)
    X, Y, training = data.X[:2], data.Y[:2], Training(max_iter=1)
    for name in reversed(NAMES):
        predict(train(name, X, Y, training), X)
