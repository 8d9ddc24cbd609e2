"""Small pictures as PNG files (ISO/IEC 15948), without any other package."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from isinglass.typing import Array

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(pixels: Array) -> bytes:
    r"""Return bytes 0-255, an array (height, width) of greys or (height, width, 3) of colours, as a PNG file.

    Examples
    --------
    >>> png(np.zeros((2, 3), np.uint8))[:4]
    b'\x89PNG'
    """
    height, width = pixels.shape[:2]
    kind = 0 if pixels.ndim == 2 else 2  # grey or colours
    rows = np.ascontiguousarray(pixels, np.uint8).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # each begins with "no filter"
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def data_uri(image: bytes) -> str:
    """Return a PNG file as the address of a picture inside a page."""
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
