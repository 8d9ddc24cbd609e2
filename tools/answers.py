"""Stored answers of the whole library: ``python tools/answers.py check`` computes them again and compares.

A case is a key such as ``infer/bp(schedule=residual)/grid`` and a function that returns numbers, arrays or texts by
name. Where the function raises, the class of the error is the answer. To add a model, an algorithm or an option, add
one line to a table below and run ``write``. A stored key that is no longer computed is a failure, until ``write``.

    python tools/answers.py check [PREFIX ...]    compare; the exit code is 1 if a case failed
    python tools/answers.py write [PREFIX ...]    store the cases whose keys begin so that differ (default: of all)
    python tools/answers.py write --names         store nothing but the public names and the help of the commands
    python tools/answers.py shake [PREFIX ...]    compare, with tables and data that differ in their last bits

Numbers are in tests/answers.npz; names and help in tests/answers.json, as text, which git can merge. `shake` finds
answers that depend on rounding (ties, iterations that diverge): these do not belong here. ISINGLASS_THREADS=2 computes
everything with two threads.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import answer_cases as cases
import isinglass as ig
from isinglass.cli import main as cli

NUMBERS = Path(__file__).parent.parent / "tests" / "answers.npz"
TEXTS = NUMBERS.with_suffix(".json")
ALL = ("",)
Stored = dict[str, dict[str, Any]]

# The group is the part of a key before the first slash. Numbers agree if |a - b| <= tolerance * (1 + |a|).
TOLERANCES: dict[str, tuple[float, str]] = {
    "infer": (1e-10, "beliefs, log Z, iterations: deterministic"),
    "solvers": (1e-7, "100 times the tolerance of the slow solvers of the convex free energy"),
    "backward": (1e-10, "derivatives through the iterations: deterministic"),
    "perturbation": (1e-9, "linear response, at fixed points that have a tolerance of 1e-11"),
    "hessian": (1e-10, "complex steps"),
    "queries": (1e-10, "joint beliefs, entropies: deterministic"),
    "map": (1e-10, "states, score, bound: deterministic"),
    "sampled": (1.0, "distance from exact inference, in units of five stored standard errors"),
    "objective": (1e-10, "values and gradients at two points: deterministic"),
    "evaluations": (1e-9, "the first three points that L-BFGS tries"),
    "fit": (1e-9, "a few iterations, and predictions; each iteration multiplies rounding"),
    "converged": (1e-4, "100 times the tolerance of the optimizer"),
    "chance": (1.0, "distance of marginals from those of maximum likelihood, in units of .1"),
    "structure": (1e-8, "gains of features, each after a fit"),
    "decoding": (1e-10, "deterministic"),
    "metrics": (1e-10, "deterministic"),
    "models": (1e-10, "deterministic"),
    "features": (0.0, "texts"),
    "graph": (0.0, "texts and whole numbers"),
    "names": (0.0, "the public names of each package, sorted"),
    "help": (0.0, "the help of each command"),
}

# -------------------------------------------------------------------------------------------------- names, help
SUBPACKAGES = ("learning.optimizers", "learning.markov", "learning.markov.priors", "learning.structure")


def texts(prefixes: Sequence[str] = ALL) -> dict[str, list[str]]:
    """Return the public names of the library and of its subpackages, and the help of every command."""
    modules = [m for name in ig.__all__ if hasattr(m := getattr(ig, name), "__all__")]
    modules += [importlib.import_module(f"isinglass.{name}") for name in SUBPACKAGES]
    found = {f"names/{m.__name__}": sorted(m.__all__) for m in (ig, *modules)}
    parser = cli.build_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    with mock.patch.dict(os.environ, COLUMNS="100"):
        for name, command in [("isinglass", parser), *commands.items()]:
            found[f"help/{name}"] = command.format_help().splitlines()
    return {key: lines for key, lines in found.items() if key.startswith(tuple(prefixes))}


# ----------------------------------------------------------------------------------------------- files


def read() -> Stored:
    """Return the stored answers."""
    with np.load(NUMBERS) as file:
        index, numbers = json.loads(file["index"].tobytes()), file["numbers"]
    found: Stored = {}
    first = 0
    for key, answer in index.items():
        found[key] = {}
        for name, shape in answer.items():
            if not isinstance(shape, str):
                size = int(np.prod(shape))
                shape, first = numbers[first : first + size].reshape(shape), first + size
            found[key][name] = shape
    return found


def store(answers: Stored) -> None:
    """Write answers: all numbers in one array, and JSON that has their shapes, and texts."""
    answers = dict(sorted(answers.items()))
    index = {
        key: {name: v if isinstance(v, str) else np.shape(v) for name, v in answer.items()}
        for key, answer in answers.items()
    }
    numbers = cases.flat([v for answer in answers.values() for v in answer.values() if not isinstance(v, str)])
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(NUMBERS, index=text, numbers=numbers)


def store_texts(found: dict[str, list[str]]) -> None:
    """Write names and help, one in each line."""
    TEXTS.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


# ----------------------------------------------------------------------------------------------- the comparison
class Compared(NamedTuple):
    """A case: how far its answer is from the stored one, in units of its tolerance; seconds; what differs."""

    key: str
    apart: float
    seconds: float
    reason: str = ""


def computed(prefixes: Sequence[str]) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Yield keys that begin so, with their answers and the processor time that they took."""
    seen = set()
    for key, compute in chain(cases.inference_cases(), cases.learning_cases()):
        if key in seen:
            raise ValueError(f"two cases have the key {key!r}")
        seen.add(key)
        if key.startswith(tuple(prefixes)):
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = cases.caught(compute)
            answer = answer if isinstance(answer, dict) else {"answer": answer}
            yield key, answer, time.process_time() - began


def apart(old: Any, new: Any) -> float:
    """Return how far two values are apart; infinity where they are of another kind, shape or text."""
    if isinstance(old, str) or isinstance(new, str):
        return 0.0 if isinstance(old, str) and isinstance(new, str) and old == new else np.inf
    if isinstance(new, cases.Estimate):
        return new.apart / float(old) if new.apart else 0.0
    old, new = np.asarray(old, float), np.asarray(new, float)
    if old.shape != new.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        difference = np.abs(old - new) / (1 + np.abs(old))
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    return float(np.where(same, 0.0, np.nan_to_num(difference, nan=np.inf)).max(initial=0.0))


def compared(key: str, old: dict[str, Any] | None, new: dict[str, Any], seconds: float) -> Compared:
    """Compare an answer with the stored one."""
    if old is None:
        return Compared(key, np.inf, seconds, "is not stored")
    if set(old) != set(new):
        return Compared(key, np.inf, seconds, f"has {sorted(new)}, stored are {sorted(old)}")
    by_name = {name: apart(old[name], new[name]) for name in old}
    worst = max(by_name, key=by_name.__getitem__, default="")
    distance = by_name.get(worst, 0.0)
    if distance <= TOLERANCES[key.split("/")[0]][0]:
        return Compared(key, distance, seconds)
    shown = [f"{v!s:.30}" if isinstance(v, str) else f"shape {np.shape(v)}" for v in (old[worst], new[worst])]
    reason = f"{worst}: {distance:.1e}" if distance < np.inf else f"{worst}: {shown[0]} -> {shown[1]}"
    return Compared(key, distance, seconds, reason)


def check(prefixes: Sequence[str] = ALL) -> list[str]:
    """Compare all cases with the stored ones, print a row for each group, and return what failed."""
    stored = {key: answer for key, answer in read().items() if key.startswith(tuple(prefixes))}
    groups: dict[str, list[Compared]] = defaultdict(list)
    for key, new, seconds in computed(prefixes):
        groups[key.split("/")[0]].append(compared(key, stored.pop(key, None), new, seconds))
    for key in stored:
        groups[key.split("/")[0]].append(Compared(key, np.inf, 0.0, "is no longer computed"))
    old, new = json.loads(TEXTS.read_text(encoding="utf-8")), texts()
    for key in sorted(set(old) | set(new)):
        if key.startswith(tuple(prefixes)):
            lines = set(old.get(key, [])) ^ set(new.get(key, []))
            same = old.get(key) == new.get(key)
            reason = "" if same else f"differs in {len(lines)} lines: {sorted(lines)[:3]}; see write --names"
            groups[key.split("/")[0]].append(Compared(key, 0.0 if same else np.inf, 0.0, reason))
    failed = [f"{c.key}: {c.reason}" for row in groups.values() for c in row if c.reason]
    print(f"{'group':13s}{'cases':>7s}{'failed':>8s}{'largest difference':>20s}{'tolerance':>11s}{'seconds':>9s}")
    for group, row in groups.items():
        bad, most = sum(bool(c.reason) for c in row), max(c.apart for c in row)
        limit, seconds = TOLERANCES[group][0], sum(c.seconds for c in row)
        print(f"{group:13s}{len(row):7d}{bad:8d}{most:20.1e}{limit:11.0e}{seconds:9.1f}")
    for line in failed:
        print(f"  {line}")
    return failed


def write(prefixes: Sequence[str] = ALL) -> None:
    """Store the cases that differ from the stored ones; others keep their stored numbers."""
    before = read() if NUMBERS.exists() else {}
    after = {key: answer for key, answer in before.items() if not key.startswith(tuple(prefixes))}
    for key, new, seconds in computed(prefixes):
        kept = compared(key, before.get(key), new, seconds)
        after[key] = before[key] if not kept.reason else {name: value_of(v) for name, v in new.items()}
        if kept.reason and key in before:
            print(f"  {key}: {kept.reason}")
        for name, v in new.items():
            if isinstance(v, cases.Estimate) and v.apart > v.error:
                print(f"  {key}: {name} is {v.apart:.1e} from the truth, more than {v.error:.1e}")
    gone, added = set(before) - set(after), set(after) - set(before)
    store(after)
    print(f"{len(after)} cases, {len(added)} of them new; gone: {sorted(gone) or 'none'}")


def value_of(value: Any) -> Any:
    """Return what is stored of a value."""
    if isinstance(value, cases.Estimate):
        return value.error
    return value if isinstance(value, str) else np.asarray(value, float)


def main() -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("check", "write", "shake"))
    parser.add_argument("prefixes", nargs="*", default=ALL)
    parser.add_argument("--names", action="store_true", help="with write: public names and help alone")
    given = parser.parse_args()
    if given.command == "write":
        if not given.names:
            write(given.prefixes)
        store_texts(texts())
        return 0
    cases.SHAKE = 1e-15 if given.command == "shake" else 0.0
    began = time.process_time()
    failed = check(given.prefixes)
    print(f"{len(failed)} failed; {time.process_time() - began:.0f} s of processor time")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
