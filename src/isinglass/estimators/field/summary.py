"""The summary of a fitted Markov random field, as a table to print."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, Self

from isinglass.errors import InputError, MissingDependencyError, UnknownNameError
from isinglass.graph.names import nearest

if TYPE_CHECKING:
    import pandas as pd


class Row(NamedTuple):
    """One line: a parameter or contrast, its estimate, standard error, z and two-sided p value."""

    name: str
    estimate: float
    error: float
    z: float
    p: float

    @classmethod
    def of(cls, name: str, estimate: float, error: float) -> Self:
        """Compute z and p.

        Examples
        --------
        >>> Row.of("x0=1", 1.96, 1.0).p.__round__(3)
        0.05
        """
        z = estimate / error if error > 0 else math.nan
        return cls(name, estimate, error, z, math.erfc(abs(z) / math.sqrt(2)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval (Wald's: the estimate, and normal quantiles times its error on either side).

        The contrast of two variables is a log-odds ratio, so `numpy.exp` of the ends is an interval of the odds ratio.

        Examples
        --------
        >>> low, high = Row.of("x0=1 x1=1", 1.0, 0.5).interval()
        >>> round(low, 2), round(high, 2)
        (0.02, 1.98)
        """
        if not 0 < level < 1:
            raise InputError("level", "a number between 0 and 1", f"{level}")
        half = NormalDist().inv_cdf((1 + level) / 2) * self.error
        return self.estimate - half, self.estimate + half


@dataclass(frozen=True)
class Summary:
    """How well a model fits, and its parameters; `print` shows it as a table.

    Attributes
    ----------
    samples, log_likelihood, deviance, pearson, aic, bic : float
    degrees_of_freedom, free_parameters : int
    kind : "fisher" or "sandwich"
        What the standard errors are of.
    rows : tuple of Row
        Name, estimate, standard error, z and p of each.
    """

    samples: float
    log_likelihood: float
    deviance: float
    pearson: float
    degrees_of_freedom: int
    free_parameters: int
    aic: float
    bic: float
    kind: str
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> Row:
        """Return the row of a name."""
        known = {row.name: row for row in self.rows}
        if name not in known:
            expected = f"the name of a row: {', '.join(map(repr, list(known)[:8]))}"
            raise UnknownNameError("name", expected, f"{name!r:.60}", nearest(str(name), known))
        return known[name]

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame, with their names as the index."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError('to_frame needs pandas: pip install "isinglass[pandas]"') from error
        return pd.DataFrame(list(self.rows), columns=list(Row._fields)).set_index("name")

    def _fit(self) -> str:
        """Say how well the model fits; G2 and X2 tell nothing where most cells of the table must be empty."""
        if self.degrees_of_freedom > self.samples:
            return f"no test of fit ({_short(self.degrees_of_freedom)} degrees of freedom, more than samples)"
        return (
            f"G2 {abs(round(self.deviance, 3)):.3f}, X2 {abs(round(self.pearson, 3)):.3f}, "
            f"{self.degrees_of_freedom} degrees of freedom"
        )

    def __str__(self) -> str:
        width = max([9, *(len(row.name) for row in self.rows)])
        lines = [
            f"{self.samples:g} samples, {self.free_parameters} free parameters, "
            f"log-likelihood {self.log_likelihood:.3f}",
            f"{self._fit()}, AIC {self.aic:.2f}, BIC {self.bic:.2f}",
            f"{'':{width}}  estimate  std. err.        z       p   ({self.kind})",
        ]
        for name, estimate, error, z, p in self.rows:
            shown = (
                f"{estimate:9.4f}  {error:9.4f}  {z:7.2f}  {p:6.4f}" if not math.isnan(estimate) else "not estimable"
            )
            lines.append(f"{name:{width}} {shown}")
        return "\n".join(lines)


def _short(number: int) -> str:
    """Write a number that may be larger than any float.

    Examples
    --------
    >>> _short(2**40), _short(2**2000)
    ('1.1e+12', 'about 10^602')
    """
    digits = len(str(number)) if number < 10**4000 else round(math.log10(number))
    return f"{number:.3g}" if digits < 300 else f"about 10^{digits - 1}"
