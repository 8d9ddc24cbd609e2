"""Checks of labels and weights, and of what an estimator's arguments are called."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.learning.optimizers import Optimizer
from isinglass.losses import Loss
from isinglass.runtime.memory import available_memory, require_memory
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import array_of, bytes_text, items, real_numbers, to_integers

FILLED = "use .filled(-1): -1 is not observed"
NUMBERED = "number the labels from 0 on, e.g. with np.unique(Y, return_inverse=True)"
UNOBSERVED = "NaN is no label: put -1 where it is not observed, e.g. np.where(np.isnan(Y), -1, Y).astype(int)"
MOST = int(np.iinfo(np.int64).max)


@contextmanager
def renamed(old: str, new: str) -> Iterator[None]:
    """Give an argument the name that the caller knows it by, in errors that begin with another one.

    Examples
    --------
    >>> with renamed("examples", "X"):
    ...     raise InputError("examples[3]", "a tuple", "int")
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: X[3]: expected a tuple, got int
    """
    try:
        yield
    except InputError as error:
        if not error.argument.startswith(old):
            raise
        name = new + error.argument.removeprefix(old)
        raise InputError(name, error.expected, error.got, error.remedy) from None


def checked_labels(values: Any, shape: tuple[int, ...], argument: str) -> IntArray:
    """Check the integer labels of one example, -1 (or masked) where not observed, and return them flat."""
    expected, remedy = f"labels of shape {shape}", "give labels the shape of their example"
    array = array_of(observed(values, argument), argument, expected, FILLED, remedy)
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        holes = array.dtype.kind == "f" and bool(np.isnan(array).any())
        remedy = UNOBSERVED if holes else to_integers(array, NUMBERED)
        raise InputError(argument, "integer labels", f"dtype {array.dtype}" + ", with NaN" * holes, remedy)
    remedy = "give each variable of an example a label (-1: not observed)"
    require(array.shape == shape, argument, expected, f"shape {array.shape}", remedy)
    if array.dtype.kind == "u" and array.size and int(array.max()) > MOST:
        raise InputError(argument, f"labels from 0 to {MOST}", f"{array.max()}", NUMBERED)
    labels = array.astype(np.int64)
    if (labels < -1).any():
        raise InputError(argument, "labels from 0 on, and -1 for not observed", f"{labels.min()}", NUMBERED)
    return labels.ravel()


def listed_labels(
    values: Any, examples: Sequence[Any], shape: Callable[[Any, int], tuple[int, ...]], what: str, form: str
) -> IntArray:
    """Check the labels of a list of examples, an array of its shape for each, and return all of them flat."""
    found = items(values, "Y", f"a list of {form}, one for each {what}")
    got, remedy = f"{len(found)}", f"one array for each {what}"
    require(len(found) == len(examples), "Y", f"labels for each of {len(examples)} {what}s", got, remedy)
    pairs = enumerate(zip(examples, found, strict=True))
    return np.concatenate([checked_labels(y, shape(x, i), f"Y[{i}]") for i, (x, y) in pairs])


def observed(values: Any, argument: str) -> Any:
    """Return integers with -1 for those that are masked, where they come as a masked array; else what came.

    Examples
    --------
    >>> observed(np.ma.masked_equal([1, 255, 0], 255), "Y").tolist()
    [1, -1, 0]
    """
    if not isinstance(values, np.ma.MaskedArray) or values.dtype.kind not in "iub":
        return values
    if values.dtype.kind == "u" and values.count() and int(values.max()) > MOST:
        raise InputError(argument, f"numbers up to {MOST}", f"{values.max()}", NUMBERED)
    return np.ma.filled(values.astype(np.int64), -1)


def refuse_spins(labels: IntArray, argument: str = "Y") -> None:
    """Refuse labels {-1, +1}, in which -1 would be taken for "not observed"."""
    if len(labels) and set(np.unique(labels).tolist()) == {-1, 1}:
        remedy = f"use ({argument} + 1) // 2"
        raise InputError(argument, "labels 0, 1, ...; -1 means not observed", "labels -1 and 1 only", remedy)


def refuse_hidden(labels: IntArray, optimizer: Optimizer[Any]) -> None:
    """Refuse labels that were not observed, for an optimizer of convex functions: a loss is not convex with them."""
    if optimizer.convex and not optimizer.latent and (labels < 0).any():
        got, remedy = f"{int((labels < 0).sum())} that are not (-1)", "use 'cccp' with a hinge ('margin'), or 'lbfgs'"
        raise InputError("Y", f"labels that are all observed, for optimizer {optimizer.name!r}", got, remedy)


def require_terms(loss: Loss, labels: IntArray, scopes: Sequence[IntArray], stacklevel: int) -> None:
    """Refuse labels none of which a loss can use, as their neighbours were not observed; warn if half are left out."""
    if not scopes or (labels >= 0).all():
        return
    known = int((labels >= 0).sum())
    lost = known - int(loss.used(labels, scopes).sum())
    able = "ChainCRF" if loss.facts.given == "before" else "loss='ucl' or 'cl'"
    if lost == known:
        expected, got = f"observed neighbours of labels, for loss {loss.name!r}", f"none of {known} labels with such"
        raise InputError("Y", expected, got, f"use {able}")
    if 2 * lost >= known:
        text = f"loss {loss.name!r} leaves out {lost} of {known} labels, whose neighbours were not observed"
        warnings.warn(f"{text}; {able} uses all", UserWarning, stacklevel=stacklevel + 1)


@contextmanager
def validation_pair(given: Any) -> Iterator[tuple[Any, Any]]:
    """Check that validation data are a pair (X, Y); errors in the two name the part of `validation`."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        got = f"{len(given)} parts" if isinstance(given, tuple | list) else type(given).__name__
        raise InputError("validation", "a tuple (X, Y)", got, "or leave it out")
    with renamed("X", "validation[0]"), renamed("Y", "validation[1]"):
        yield given[0], given[1]


def example_weights(given: Any, n_examples: int) -> FloatArray:
    """Check one weight for each example."""
    expected, remedy = f"one number for each of {n_examples} examples", "weights of single labels: class_weight"
    weights = real_numbers(given, "sample_weight", expected, remedy)
    require(weights.shape == (n_examples,), "sample_weight", expected, f"shape {weights.shape}", remedy)
    if not np.isfinite(weights).all() or (weights < 0).any():
        bad = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise InputError("sample_weight", "finite numbers that are not negative", f"{bad}", "leave out such examples")
    return weights


def positive_weights(given: Any, n_examples: int) -> FloatArray:
    """Check one weight for each example, of which at least one is above zero."""
    weights = example_weights(given, n_examples)
    require(weights.any(), "sample_weight", "at least one weight above zero", "none")
    return weights


def class_weights(given: Any, labels: IntArray, n_states: int) -> FloatArray:
    """Return a weight for each label: given ones, or "balanced" as scikit-learn counts it.

    Examples
    --------
    >>> class_weights("balanced", np.array([0, 0, 0, 1, -1]), 2).round(4).tolist()
    [0.6667, 2.0]
    >>> class_weights({1: 3}, np.array([0, 1]), 3).tolist()
    [1.0, 3.0, 1.0]
    """
    expected = f"'balanced', a dict, or one number for each of {n_states} labels"
    if isinstance(given, str):
        require(given == "balanced", "class_weight", expected, repr(given), "did you mean 'balanced'?")
        counts = np.bincount(labels[labels >= 0], minlength=n_states)
        return np.asarray(counts.sum() / (n_states * np.maximum(counts, 1)))
    if isinstance(given, dict):
        unknown = [key for key in given if key not in range(n_states)]
        if unknown:
            raise InputError("class_weight", f"labels from 0 to {n_states - 1} as keys", repr(unknown[0]), "drop it")
        given = [given.get(k, 1.0) for k in range(n_states)]
    weights = real_numbers(given, "class_weight", expected, "give numbers")
    require(weights.shape == (n_states,), "class_weight", expected, f"shape {weights.shape}", "or give n_states")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("class_weight", "finite numbers that are not negative", f"{weights.tolist()!r:.60}", "clip it")
    return weights


def variable_weights(
    labels: IntArray, sizes: IntArray, sample: FloatArray | None, classes: FloatArray | None
) -> FloatArray | None:
    """Return a weight for each variable, by its example (of some sizes) and its label; None where all are one."""
    if sample is None and classes is None:
        return None
    weights = np.ones(len(labels)) if sample is None else np.repeat(sample, sizes)
    return weights if classes is None else weights * classes[np.maximum(labels, 0)]


def share_right(predicted: Array, labels: IntArray, sizes: IntArray, sample_weight: Any, remedy: str) -> float:
    """Return the share of observed labels (-1: not observed) that were predicted, by the weights of examples."""
    seen = (labels != -1).astype(np.float64)
    if sample_weight is not None:
        seen *= np.repeat(example_weights(sample_weight, len(sizes)), sizes)
    require(seen.sum() != 0, "Y", "at least one observed label", "none", remedy)
    return float(((predicted == labels) * seen).sum() / seen.sum())


def require_room(n_states: int, size: int, beliefs: int, optimizer: Optimizer[Any]) -> None:
    """Refuse, before any work, labels so large or so many that training would not fit in memory.

    Parameters
    ----------
    n_states : int
    size : int
        The number of parameters; an optimizer holds several vectors of them.
    beliefs : int
        Entries of the beliefs of one example.
    optimizer : Optimizer
    """
    steps = min(getattr(optimizer, "memory", 0), getattr(optimizer, "max_iter", 0))
    needed = 8.0 * ((4 + 2 * steps) * size + beliefs)
    what = f"tables of {n_states} x {n_states} labels need {bytes_text(needed)} in training"
    require_memory(needed, available_memory(), what, "have fewer labels")
