"""Damage files of fitted estimators and checkpoints, and read them; run by `test_io_damage`, in a process of its own.

As a script, ``damage.py COUNT SEED [text]`` damages these files, or those of all text formats, and prints a JSON
object: how many files were refused, what else was raised, by how many bytes the peak of resident memory rose, and the
size of the largest whole file. Where the zip archive is made anew
its checksums fit, so that what is damaged reaches the readers behind it.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import resource
import struct
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import isinglass as ig
from isinglass.errors import FileFormatError
from isinglass.estimators import load
from isinglass.io import read_npz
from isinglass.learning.checkpoint import resume

Members = dict[str, bytes]
ODD = [None, True, -1, 0, 3, 10**6, 2**31, 2**63, 10**30, 0.5, 1e308, "", "x" * 10**4, "\ud800", "__class__", [], {}]
ODD += [{"array": ["a"] * 500, "dtype": "<U999999", "shape": [500]}, {"set": [[1]]}, [[[1]]], {"a": {}}, "os.system"]
DTYPES = ["'|O'", "'<U999999999'", "'<f2'", "'<M8[s]'", "'|V8'", "'<U0'", "('<f8', (9, 9))", "[('a', '<f8')]", "'<c16'"]
SHAPES = ["()", "(0,)", "(1,)", "(-1,)", "(400000000,)", "(10**9,)", "(0, 10000000000)", "(1000000000, 0)", "(True, 4)"]
NESTED = ("(" * 199 + ")" * 199, "[" * 9000, "-" * 9000 + "1", "{" * 90 + "}" * 90, "9" * 9000, "__import__('os')")


def whole(folder: Path) -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Yield whole files, each with what reads it."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 5, 6, 2)), rng.integers(0, 2, (4, 5, 6))
    words = [[[f"w={rng.integers(400)}", "bias"] for _ in range(9)] for _ in range(30)]
    labels = [[f"label {rng.integers(3)}" for _ in one] for one in words]
    states = rng.integers(0, 2, (40, 4))
    weights = {"class_weight": {0: 1.0, 1: 2.0}}
    checkpoint = str(folder / "run.npz")
    fitted = {
        "grid": ig.GridCRF(iterations=2, max_iter=2, checkpoint=checkpoint, **weights),
        "chain": ig.ChainCRF(max_iter=2),
        "mrf": ig.MRF(ig.chain_graph(4, 2), max_iter=2),
        "gaussian": ig.GaussianMRF(ig.chain_graph(4, 2)),
    }
    data = {"grid": (X, Y), "chain": (words, labels), "mrf": (states,), "gaussian": (rng.normal(size=(50, 4)),)}
    for name, estimator in fitted.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(*data[name])
        estimator.save(folder / name)
        yield folder / name, load
    yield folder / "run.npz", resume
    np.savez_compressed(folder / "packed", X=X, Y=Y, names=np.array(["a", "bc"]))
    yield folder / "packed.npz", lambda path: read_npz(path, limit=2**22)


def raw(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut the end off, swap bytes, overwrite a stretch, repeat one."""
    kind, found = rng.randrange(5), bytearray(data)
    i, j = sorted(rng.choices(range(len(found)), k=2))
    if kind == 0:
        for _ in range(rng.randrange(1, 5)):
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del found[i:]
    elif kind == 2:
        found[i], found[j] = found[j], found[i]
    elif kind == 3:
        found[i : i + 4] = rng.choice([b"\0", b"\xff", b"\x7f", b"P"]) * 4
    else:
        found[j:j] = found[i : min(j, i + 500)]
    return bytes(found)


def directory(data: bytes, rng: random.Random) -> bytes:
    """Change what the archive says of itself: sizes, places, kinds, numbers of members."""
    found = bytearray(data)
    mark = rng.choice([b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04"])
    places = [i for i in range(len(found)) if found.startswith(mark, i)]
    i = rng.choice(places) + rng.randrange(4, {b"PK\x01\x02": 46, b"PK\x05\x06": 22, b"PK\x03\x04": 30}[mark])
    for place in (i, rng.choice(places) + 20 if mark == b"PK\x01\x02" else i):
        odd = rng.choice([0, 1, 8, len(data), 2**31 - 1, 2**32 - 1, rng.getrandbits(32)])
        found[place : place + 4] = struct.pack("<I", odd)
    return bytes(found)


def inside(data: bytes, rng: random.Random) -> bytes:
    """Change a member, in an archive whose checksums fit."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    kind = rng.randrange(6)
    if kind == 0:
        members[name] = raw(members[name], rng)
    elif kind == 1:
        members[name] = members[rng.choice(list(members))]
    elif kind == 2:
        del members[name]
    elif kind == 3:
        members[name] = hostile(members[name], rng)
    elif kind == 4:
        members[name] = other_values(members[name], rng)
    elif "header.npy" in members:
        members["header.npy"] = other_header(members["header.npy"], rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice([zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED])) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return file.getvalue()


def hostile(member: bytes, rng: random.Random) -> bytes:
    """Give an array another header."""
    parts = {"descr": rng.choice(["'<f8'", *DTYPES]), "fortran_order": "False", "shape": rng.choice(SHAPES)}
    if rng.random() < 0.3:
        parts[rng.choice(list(parts))] = rng.choice(NESTED)
    text = ("{" + ", ".join(f"'{key}': {value}" for key, value in parts.items()) + "}\n").encode()
    version = rng.choice([1, 2, 3, 9])
    length = struct.pack("<H" if version == 1 else "<I", rng.choice([len(text)] * 8 + [0, 65535]))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + member[-80:]


def other_values(member: bytes, rng: random.Random) -> bytes:
    """Keep dtype and number of axes of an array, or not, and change values and lengths."""
    array = np.load(io.BytesIO(member))
    kind = rng.randrange(4)
    if kind == 0 and array.size and array.dtype.kind in "iuf":
        array.flat[rng.randrange(array.size)] = rng.choice([0, 1, 100, 2**6 - 1])
    elif kind == 1 and array.dtype.kind in "if" and array.size:
        array.flat[rng.randrange(array.size)] = rng.choice([-1, 2**31 - 1, -(2**31)])
    elif kind == 2 and array.ndim:
        array = np.resize(array, (rng.choice([0, 1, len(array) + 1, 500]), *array.shape[1:]))
    else:
        array = array.astype(rng.choice(["f8", "i8", "f4", "c16", "b1"])) if array.dtype.kind != "U" else array[None]
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def other_header(member: bytes, rng: random.Random) -> bytes:
    """Change a value somewhere in the JSON, or its text."""
    text = np.load(io.BytesIO(member)).tobytes()
    if rng.random() < 0.2:
        text = rng.choice([b"[" * 20_000, raw(text, rng), b'{"a":' * 5000, b"1" * 5000])
    else:
        header = json.loads(text)
        place: Any = header
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.9:
                place = place[key]
                continue
            if rng.random() < 0.2:
                del place[key]
            else:
                place[key] = rng.choice(ODD)
            break
        text = json.dumps(header).encode()
    file = io.BytesIO()
    np.save(file, np.frombuffer(text, np.uint8))
    return file.getvalue()


def texts(folder: Path) -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Yield a whole file of each text format, with what reads it."""
    sys.path.append(str(Path(__file__).parents[1]))
    from test_io_fuzz import FORMATS

    for name, (read, data, _) in FORMATS.items():
        (folder / name).write_bytes(data)
        yield folder / name, read


def damaged_text(data: bytes, rng: random.Random) -> bytes:
    """Change words, numbers or bytes up to three times; compress some."""
    from test_io_fuzz import mutated

    for _ in range(rng.randrange(1, 4)):
        data = mutated(data, rng)
    return gzip.compress(data) if rng.random() < 0.1 else data


def main(count: int, seed: int, kind: str = "arrays") -> dict[str, Any]:
    rng = random.Random(seed)
    found: dict[str, Any] = {"read": 0, "refused": 0, "odd": 0, "other": {}, "size": 0}
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        written = (texts if kind == "text" else whole)(Path(name))
        files = [(path.read_bytes(), read) for path, read in written]
        ways = (damaged_text,) if kind == "text" else (raw, directory, inside, inside)
        path = Path(name, "damaged")
        for data, read in files:
            path.write_bytes(data)
            read(path)
            found["size"] = max(found["size"], len(data))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(count):
            data, read = files[i % len(files)]
            path.write_bytes(ways[i // len(files) % len(ways)](data, rng))
            try:
                read(path)
                found["read"] += 1
            except FileFormatError as error:
                found["refused" if str(error).isprintable() and len(str(error)) < 1000 else "odd"] += 1
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                found["other"][f"{i}: {error!r:.99} in {Path(where.filename).name}, line {where.lineno}"] = 1
        found["risen"] = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return found


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:3]), *sys.argv[3:]), indent=1))
