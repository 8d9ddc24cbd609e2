"""Where the errors of a fitted model come from: inference, decoding, optimisation, or the model itself.

Let e(c, D) be the share of wrong labels of estimator c on examples D, and c0 the given estimator. For each possible
cause a change is tried that would remove it. The effect of the change is how much the error drops:

    inference      e(c0, D) - e(c0 with exact inference, D)             the same parameters
    decoding       e(c1, D) - e(c1 with another decoder, D)             c1: c0 with exact inference
    optimisation   e(c0, B) - e(c0 trained further on A, B)             from its parameters, until convergence
    model          e(c trained on A, B) - e(c with m trained on A, B)   both from zero; m: a bias, products, ...

A and B are the two halves of D; each is used once for training and once for the error. If exact inference does not fit
in memory, converged belief propagation is used. Effects need not add up: two changes may correct the same labels. An
error that no change removes is noise, or has a cause that is not tested.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from isinglass import decoding
from isinglass.errors import InputError, IsinglassError, no_convergence_warnings
from isinglass.estimators.crf import CRF
from isinglass.estimators.sequence.base import SequenceEstimator, decoder_of
from isinglass.inference import BeliefPropagation, Exact
from isinglass.learning.training.checks import observed
from isinglass.typing import Array, FloatArray
from isinglass.validation import RandomState, generator, whole_number

MEMORY = "500MB"  # that the exact reference may take
STEPS = 200  # of further training, at least
Change = Callable[[Any], Any]


class Cause(NamedTuple):
    """A change, and its effect on the share of wrong labels.

    Attributes
    ----------
    cause : "inference", "decoding", "optimisation" or "model"
    change : str
        What to do.
    before, after : float
        The share of wrong labels without it and with it.
    stderr : float
        The standard error of their difference, over examples.
    """

    cause: str
    change: str
    before: float
    after: float
    stderr: float

    @property
    def effect(self) -> float:
        """How much the change lowers the share of wrong labels; negative if it raises it."""
        return self.before - self.after


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What `diagnose` found; ``print`` shows it.

    Attributes
    ----------
    error : float
        The share of wrong labels of the estimator as it is.
    causes : list of Cause
        All changes that were tried, sorted by their effects, the largest first.
    not_converged : list of int
        Examples whose inference did not converge.
    notes : list of str
        What could not be tried, and why.
    n_examples : int
    """

    error: float
    causes: list[Cause]
    not_converged: list[int]
    notes: list[str]
    n_examples: int

    @property
    def suggestions(self) -> list[Cause]:
        """The changes whose effect is at least twice its standard error."""
        return [c for c in self.causes if c.effect > 0 and c.effect >= 2 * c.stderr]

    def __str__(self) -> str:
        lines = [f"{self.error:.2%} of labels are wrong in {self.n_examples} examples", ""]
        lines.append(f"{'cause':13s} {'takes away':>10s} {'+-':>7s}  change")
        lines += [f"{c.cause:13s} {c.effect:10.2%} {c.stderr:7.2%}  {c.change}" for c in self.causes]
        lines += ["", *(f"suggestion: {c.change} ({c.before:.2%} -> {c.after:.2%})" for c in self.suggestions)]
        if not self.suggestions:
            lines.append("no change helps for sure: the rest is noise in the labels, or features that are not there")
        if self.not_converged:
            shown = ", ".join(map(str, self.not_converged[:20]))
            lines.append(f"inference did not converge for {len(self.not_converged)} examples: {shown}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        first = f", first {self.causes[0].cause} ({self.causes[0].effect:.2%})" if self.causes else ""
        return f"Diagnosis: {self.error:.2%} wrong{first}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def diagnose(
    estimator: CRF | SequenceEstimator, X: Any, Y: Any, *, examples: int = 100, random_state: RandomState = 0
) -> Diagnosis:
    """Find where the errors of a fitted conditional random field come from, and what helps.

    Parameters
    ----------
    estimator : GridCRF, GraphCRF, MultiLabelCRF or ChainCRF
        A fitted estimator; it is not changed.
    X, Y
        Labelled examples, preferably not those of training.
    examples : int
        The maximal number of examples; if there are more, a random subset is used.
    random_state : int or Generator

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((20, 4, 4)) < 0.3).astype(int)
    >>> X = Y[..., None] + 0.8 * rng.normal(size=(20, 4, 4, 1)) + 5.0
    >>> found = ig.diagnose(ig.GridCRF(bias=False).fit(X, Y), X, Y)
    >>> found.causes[0].cause  # a bias, or squares, which have one here
    'model'
    """
    if not isinstance(estimator, CRF | SequenceEstimator):
        raise InputError("estimator", "a fitted ChainCRF, GraphCRF, GridCRF or MultiLabelCRF", type(estimator).__name__)
    estimator._require_fitted()
    rng = generator(random_state)
    rows = _rows(X, Y, whole_number(examples, "examples", 2), rng)
    data = _Data(X, Y, rows, int(rng.integers(2**31)))
    base = _plain(estimator)
    causes: list[Cause] = []
    notes: list[str] = []
    with no_convergence_warnings():
        errors = data.errors(base, range(len(rows)))
        for measure in (_inference, _decoding, _optimisation, _model):
            try:
                causes += measure(base, data, errors)
            except (IsinglassError, MemoryError) as error:
                notes.append(f"{measure.__name__.strip('_')} was not tried: {error}")
        stuck = _not_converged(base, data)
    causes.sort(key=lambda c: -c.effect)
    return Diagnosis(_mean(errors), causes, [int(rows[i]) for i in stuck], notes, len(rows))


class _Data:
    """Examples and how wrong an estimator is on some of them; `seed` is for decoders that sample."""

    def __init__(self, X: Any, Y: Any, rows: Array, seed: int) -> None:
        self.X, self.Y = [_chosen(part, rows) for part in (X, Y)]
        self.seed = seed
        self.halves = list(range(0, len(rows), 2)), list(range(1, len(rows), 2))

    def part(self, rows: Sequence[int]) -> tuple[Any, Any]:
        """Return some of the examples."""
        index = np.array(rows, np.int64)
        return _chosen(self.X, index), _chosen(self.Y, index)

    def errors(self, estimator: Any, rows: Sequence[int], change: Change | None = None) -> FloatArray:
        """Return (wrong, observed) labels of each example, an array (examples, 2)."""
        X, Y = self.part(rows)
        found = estimator.predict(X if change is None else change(X))
        pairs = [_wrong(y, p, estimator.ignore_label) for y, p in zip(Y, found, strict=True)]
        return np.array(pairs, np.float64).reshape(-1, 2)


def _rows(X: Any, Y: Any, most: int, rng: np.random.Generator) -> Array:
    count = X.shape[0] if hasattr(X, "shape") else len(X)
    if count != len(Y) or count < 2:
        raise InputError("Y", f"labels of {count} examples, at least two", f"{len(Y)}")
    return np.sort(rng.permutation(count)[:most])


def _chosen(part: Any, rows: Array) -> Any:
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    return part[rows] if hasattr(part, "shape") else [part[i] for i in rows.tolist()]


def _wrong(truth: Any, found: Any, ignore_label: Any) -> tuple[int, int]:
    """Count wrong and observed labels."""
    truth = observed(truth, "Y")
    pairs = zip(np.ravel(np.asarray(truth, object)), np.ravel(np.asarray(found, object)), strict=True)
    seen = [(y, z) for y, z in pairs if y is not None and y not in (-1, ignore_label) and y == y]
    return sum(y != z for y, z in seen), len(seen)


def _mean(errors: FloatArray) -> float:
    return float(errors[:, 0].sum() / max(errors[:, 1].sum(), 1.0))


def _cause(cause: str, change: str, before: FloatArray, after: FloatArray) -> Cause:
    """Compare the errors of two estimators on the same examples."""
    total = max(float(before[:, 1].sum()), 1.0)
    gain = before[:, 0] - after[:, 0]
    n = len(gain)
    spread = float(np.sqrt(n * gain.var(ddof=1))) if n > 1 else 0.0
    return Cause(cause, change, _mean(before), _mean(after), spread / total)


def _plain(estimator: Any) -> Any:
    """Return a copy without stages, callback and checkpoint, with all that was learned."""
    stage = estimator._stage() if hasattr(estimator, "_stage") else estimator
    found = copy.copy(stage)
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_") or name == "_labels"}
    vars(found).update(learned, callback=None, checkpoint=None, verbose=False)
    if hasattr(found, "stages"):
        found.stages = None
    return found


def _with(estimator: Any, **changed: Any) -> Any:
    found = copy.copy(estimator)
    vars(found).update(changed)
    return found


def _inference(base: Any, data: _Data, errors: FloatArray) -> Iterator[Cause]:
    """Predict with exact inference, or one that converges."""
    if isinstance(base, SequenceEstimator):
        return  # theirs is exact
    if base.own_parameters:
        raise InputError("own_parameters", "parameters that all iterations share", "separate ones")
    better, name = _reference(base, data)
    yield _cause("inference", name, errors, data.errors(better, range(len(errors))))


def _reference(base: Any, data: _Data) -> tuple[Any, str]:
    """Return the estimator with exact inference, or one that converges, and what it is called."""
    if isinstance(base, SequenceEstimator) or base.own_parameters:
        return base, ""
    p = base._joint(base._examples(data.X))[1]
    exact = Exact(memory_limit=MEMORY, restarts=0)  # no long search for an order: another reference will do
    fits = not exact.shortage(p)
    algorithm = exact if fits else BeliefPropagation(damping=0.3, tol=1e-6, max_iter=3000)
    name = "inference='exact'" if fits else "inference='bp' until it converges"
    return _with(base, inference=algorithm, iterations=None, iterations_=None, entropy=None), name


def _decoding(base: Any, data: _Data, errors: FloatArray) -> Iterator[Cause]:
    """Predict with the other decoders; with exact inference, so that a decoder with one of its own is not preferred."""
    better, every = _reference(base, data)[0], range(len(errors))
    before = data.errors(better, every)
    large = isinstance(better, CRF) and not isinstance(better.inference, Exact)
    for name, decoder in _other_decoders(base, large, data.seed):
        try:
            found = data.errors(_with(better, decoder=decoder), every)
        except (IsinglassError, MemoryError):
            continue
        yield _cause("decoding", f"decoder={name}", before, found)


def _other_decoders(base: Any, large: bool, seed: int) -> Iterator[tuple[str, decoding.Decoder]]:
    """Yield names and decoders of states; for graphs too large for exact inference those that do without it."""
    now = decoder_of(base) if isinstance(base, SequenceEstimator) else base._decoder().name
    for name, kind in decoding.DECODERS.items():
        if name == now or kind.facts.output != "states":
            continue
        if not large or kind.facts.uses != "potentials":
            yield repr(name), _seeded(kind, seed)
        elif name == "map":
            sequential = decoding.MAP("trws")
            yield repr(sequential), sequential


def _seeded(kind: type[decoding.Decoder], seed: int) -> decoding.Decoder:
    """Return a decoder; one that samples always draws the same, so that a diagnosis can be repeated."""
    options: dict[str, Any] = {"random_state": seed} if hasattr(kind, "random_state") else {}
    return kind(**options)


def _optimisation(base: Any, data: _Data, errors: FloatArray) -> Iterator[Cause]:
    """Train on from the parameters, on one half, and look at the other."""
    if not hasattr(base, "warm_start"):
        return
    after = np.zeros_like(errors)
    for learn, look in (data.halves, data.halves[::-1]):
        X, Y = data.part(learn)
        further = _with(base, warm_start=True, **_thorough(base))
        after[look] = data.errors(further.fit(X, Y), look)
    yield _cause("optimisation", f"more training: max_iter={_thorough(base)['max_iter']}", errors, after)


def _thorough(base: Any) -> dict[str, Any]:
    return {"max_iter": max(STEPS, 5 * base.max_iter), "tol": min(base.tol, 1e-3), "optimizer": "auto"}


def _model(base: Any, data: _Data, errors: FloatArray) -> Iterator[Cause]:
    """Train models with more parameters from zero, on one half, and look at the other."""
    fresh = _with(base, warm_start=False, **_thorough(base)) if hasattr(base, "warm_start") else _with(base)
    before = _crossed(fresh, data, None)
    for name, options, change in _larger(base, data):
        yield _cause("model", name, before, _crossed(_with(fresh, **options), data, change))


def _crossed(estimator: Any, data: _Data, change: Change | None) -> FloatArray:
    found = np.zeros((len(data.halves[0]) + len(data.halves[1]), 2))
    for learn, look in (data.halves, data.halves[::-1]):
        X, Y = data.part(learn)
        fitted = _with(estimator).fit(X if change is None else change(X), Y)
        found[look] = data.errors(fitted, look, change)
    return found


def _larger(base: Any, data: _Data) -> Iterator[tuple[str, dict[str, Any], Change | None]]:
    """Yield models with more parameters: what to change, parameters of the estimator, and a change of the features."""
    for option, value in (("bias", True), ("boundary", True), ("edge_bias", True), ("edges", "directions")):
        if hasattr(base, option) and getattr(base, option) != value and _applies(option, data):
            yield f"{option}={value!r}", {option: value}, None
    if hasattr(base, "state_features") and base.state_features == "seen":
        yield "state_features='all'", {"state_features": "all"}, None
    change = _products(data.X)
    if change is not None:
        yield "squares and products of the features", {}, change


def _applies(option: str, data: _Data) -> bool:
    """Tell whether an option means something for the data: a constant of edges needs features of edges."""
    return option != "edge_bias" or (isinstance(data.X, list) and len(data.X[0]) == 3)


def _products(X: Any) -> Change | None:
    """Return a function that appends squares and products of features to dense ones; None for others."""
    if isinstance(X, np.ndarray) and X.ndim >= 2:
        return _with_products
    first = X[0] if isinstance(X, list) else None
    if isinstance(first, np.ndarray) and first.ndim >= 2:
        return lambda given: [_with_products(part) for part in given]
    if isinstance(first, tuple) and isinstance(first[0], np.ndarray):
        return lambda given: [(_with_products(part[0]), *part[1:]) for part in given]
    return None


def _with_products(features: Array) -> Array:
    i, j = np.triu_indices(min(features.shape[-1], 12))
    return np.concatenate([features, features[..., i] * features[..., j]], axis=-1)


def _not_converged(base: Any, data: _Data) -> list[int]:
    """Return the examples whose inference did not converge."""
    if isinstance(base, SequenceEstimator):
        return []
    parts = (data.part([i])[0] for i in range(len(data.Y)))
    return [i for i, X in enumerate(parts) if not base.infer(X).info.converged]
