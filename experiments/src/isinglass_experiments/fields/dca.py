"""Direct coupling analysis: contacts of a protein family from its sequences (Ekeberg et al. 2013).

A Potts model of all pairs of sites is fitted by pseudolikelihood. The coupling of two sites is the Frobenius norm of
its table, centred, without gaps; the average product correction takes off what each site has with all others. Sequences
of more than 80 % identity share a weight of one. Beside it: mutual information with the same correction. A contact is a
pair nearer than 6 Angstrom, more than four sites apart in the sequence.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass import MRF, complete_graph
from isinglass.errors import no_convergence_warnings
from isinglass.learning.structure.chow_liu import mutual_information
from isinglass.learning.structure.learner import Observations
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass_experiments.common.experiment import DataExperiment, Plot, Progress, Report, register, tell
from isinglass_experiments.data import Alignment, load_alignment

STATES = 21
CONTACT = 6.0  # Angstrom
APART = 4  # sites in the sequence
PENALTY = 0.01  # times the effective number of sequences
PUBLISHED = 0.79  # mutual information with the correction, on the same pairs


@register
@dataclass(frozen=True)
class DirectCoupling(DataExperiment):
    """Contacts of PF00014.

    Parameters
    ----------
    quick : bool
        2,000 sequences, 15 iterations.
    data : str, optional
        The folder of the data; else the one that ISINGLASS_DATA names.
    n_jobs : int
        Not used.
    """

    name: ClassVar[str] = "dca"
    summary: ClassVar[str] = "contacts of a protein family by a Potts model (pseudolikelihood)"

    def run(self, progress: Progress | None = None) -> Report:
        """Fit the model and rank the pairs."""
        alignment = load_alignment(data_dir=self.data)
        X = alignment.sequences[:: 7 if self.quick else 1]
        tell(progress, "weights of sequences", 0.0)
        weights = sequence_weights(X)
        tell(progress, "pseudolikelihood", 0.1)
        began = time.perf_counter()
        couplings = potts_couplings(X, weights, 15 if self.quick else 50)
        seconds = time.perf_counter() - began
        information = mutual_information(Observations(X, weights, np.full(X.shape[1], STATES)))
        scores = {
            "pseudolikelihood, corrected": corrected(couplings),
            "pseudolikelihood": couplings,
            "mutual information, corrected": corrected(information),
            "mutual information": information,
        }
        return _report(alignment, scores, float(weights.sum()), seconds, len(X))


def sequence_weights(sequences: IntArray, identity: float = 0.8) -> FloatArray:
    """Return one over the number of sequences that are at least so alike, itself included.

    Examples
    --------
    >>> sequence_weights(np.array([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [7, 7, 7, 7, 7]])).tolist()
    [0.5, 0.5, 1.0]
    """
    n, sites = sequences.shape
    shown = np.zeros((n, sites * STATES), np.float32)
    shown[np.arange(n)[:, None], np.arange(sites) * STATES + sequences] = 1.0
    alike = np.zeros(n)
    for start in range(0, n, 500):
        alike[start : start + 500] = (shown[start : start + 500] @ shown.T >= identity * sites - 1e-3).sum(axis=1)
    return 1.0 / alike


def potts_couplings(sequences: IntArray, weights: FloatArray, max_iter: int) -> FloatArray:
    """Return the norms of all couplings, a symmetric matrix."""
    sites = sequences.shape[1]
    graph = complete_graph(sites, STATES)
    with no_convergence_warnings():
        mrf = MRF(graph, method="pseudo", l2=PENALTY * float(weights.sum()), max_iter=max_iter, tol=1e-3)
        mrf.fit(sequences, sample_weight=weights)
    tables = mrf.parameters_["edge"]
    for axis in (1, 2):
        tables = tables - tables.mean(axis=axis, keepdims=True)
    found = np.zeros((sites, sites))
    pairs = np.array(graph.scopes[sites:])
    found[pairs[:, 0], pairs[:, 1]] = np.sqrt((tables[:, 1:, 1:] ** 2).sum(axis=(1, 2)))  # without gaps
    return found + found.T


def corrected(scores: FloatArray) -> FloatArray:
    """Take off the product of the means of a pair's sites, over the mean of all (Dunn, Wahl and Gloor 2008).

    Examples
    --------
    >>> corrected(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [[-0.5, 0.5], [0.5, -0.5]]
    """
    means = scores.sum(axis=0)
    return np.asarray(scores - np.outer(means, means) / means.sum(), np.float64)


def precisions(scores: FloatArray, alignment: Alignment) -> FloatArray:
    """Return the share of contacts among the first 1, 2, ... pairs by their scores."""
    i, j = alignment.pairs.T
    far: Mask = j - i > APART
    order = np.argsort(-scores[i[far], j[far]], kind="stable")
    hits = alignment.distance[far][order] < CONTACT
    return np.asarray(np.cumsum(hits) / np.arange(1, len(hits) + 1), np.float64)


def _report(
    alignment: Alignment, scores: dict[str, FloatArray], effective: float, seconds: float, count: int
) -> Report:
    top = alignment.sequences.shape[1]
    found = {name: precisions(one, alignment) for name, one in scores.items()}
    base = float(found["mutual information"][-1])
    rows = [
        [name, f"{one[top // 2 - 1]:.3f}", f"{one[top - 1]:.3f}", f"{one[2 * top - 1]:.3f}"]
        for name, one in found.items()
    ]
    notes = [
        f"{count} sequences, effective number {effective:.0f}; pseudolikelihood in {seconds:.1f} s",
        f"share of contacts among all pairs: {base:.3f}; published for mutual information, corrected: {PUBLISHED}",
        f"pairs more than {APART} sites apart; a contact is nearer than {CONTACT:g} Angstrom",
    ]
    ranks = list(map(float, range(1, 3 * top + 1)))
    plots = {
        "dca": Plot("pairs", "share of contacts", {n: (ranks, one[: 3 * top].tolist()) for n, one in found.items()})
    }
    data = {"experiment": "dca", "precision": {n: float(one[top - 1]) for n, one in found.items()}, "base": base,
            "effective": effective, "seconds": seconds}  # fmt: skip
    columns = ["score", f"first {top // 2}", f"first {top}", f"first {2 * top}"]
    return Report("Contacts of PF00014", columns, rows, notes, data, {}, plots)
