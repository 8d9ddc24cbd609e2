"""``isinglass demo``: take the noise off a small picture, exactly."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from isinglass.cli.options import add_command
from isinglass.cli.report import one_line, print_table

if TYPE_CHECKING:
    from isinglass.potentials import Potentials
    from isinglass.validation import IntArray

T = TypeVar("T")

_SUMMARY = "take the noise off a small picture with exact inference"
_TEXT = """Denoise a picture of 16 x 24 pixels, 30 % of which got a random value, with an Ising model and exact
inference. Prints the pixels that are wrong in the noisy input, in the most probable picture (MAP) and in the
picture of the most probable pixels (MPM), and draws panel.png: truth, noisy input, marginals, MAP, a sample."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "demo", run, _SUMMARY, _TEXT, "  isinglass demo\n  isinglass demo --out pictures")
    parser.add_argument(
        "--out", metavar="DIR", default="demo-output", help="folder for panel.png (default: demo-output)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Infer, print the table, draw the panel."""
    from isinglass.datasets import denoising_model, noisy_glyph

    os.makedirs(arguments.out, exist_ok=True)
    truth, observed = noisy_glyph(random_state=0)
    pictures = denoise(denoising_model(observed), truth, observed)
    path = os.path.join(arguments.out, "panel.png")
    _draw(pictures, path)
    print(f"wrote {one_line(path)}")
    return 0


def denoise(model: Potentials, truth: IntArray, observed: IntArray) -> dict[str, Any]:
    """Run the three inferences and print how well they do; return the pictures by their titles."""
    import numpy as np

    from isinglass.inference import infer, map_assignment, sample

    infer(model)  # compiles and orders, so that the seconds below are those of inference
    map_assignment(model)
    result, mar_seconds = _timed(lambda: infer(model))
    best, map_seconds = _timed(lambda: map_assignment(model).states.reshape(truth.shape))
    ones = np.array([belief[1] for belief in result.variables]).reshape(truth.shape)
    rows = [
        _row("noisy input", observed, truth, None),
        _row("MAP: most probable picture", best, truth, map_seconds),
        _row("MPM: most probable pixels", (ones > 0.5).astype(np.int64), truth, mar_seconds),
    ]
    title = f"Denoising a picture of {truth.shape[0]} x {truth.shape[1]} pixels with exact inference"
    caption = f"log Z = {result.log_z:.6f}"
    print_table(title, ["method", "wrong pixels", "pixel error", "seconds"], rows, caption=caption)
    draw = sample(model, 1, random_state=0)[0].reshape(truth.shape)
    return {"truth": truth, "noisy input": observed, "marginals": ones, "MAP": best, "a sample": draw}


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def _row(method: str, picture: IntArray, truth: IntArray, seconds: float | None) -> list[object]:
    wrong = int((picture != truth).sum())
    return [method, wrong, f"{wrong / truth.size:.1%}", "-" if seconds is None else f"{seconds:.3f}"]


def _draw(pictures: dict[str, Any], path: str) -> None:
    from isinglass.viz import panel

    panel(list(pictures.values()), list(pictures)).savefig(path)
