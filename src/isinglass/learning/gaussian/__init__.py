"""Gaussian fields from samples: covariance selection, covariance graphs, directed graphs and time series."""

from isinglass.learning.gaussian.autoregression import ChainGraph, chain_graph, process
from isinglass.learning.gaussian.covariance_graph import covariance_graph
from isinglass.learning.gaussian.directed import Regressions, regressions
from isinglass.learning.gaussian.moments import Moments
from isinglass.learning.gaussian.selection import Fitted, closed_form, covariance_selection, graphical_lasso

__all__ = [
    "ChainGraph",
    "Fitted",
    "Moments",
    "Regressions",
    "chain_graph",
    "closed_form",
    "covariance_graph",
    "covariance_selection",
    "graphical_lasso",
    "process",
    "regressions",
]
