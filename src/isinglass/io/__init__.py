"""Models in the formats of other programs, UAI, libDAI and BIF, and safe files of named arrays."""

from isinglass.io.arrays import ArrayFile, read_arrays, read_npz, write_arrays
from isinglass.io.bayesian import BayesianNetwork, from_bayesian_network
from isinglass.io.formats.bif import read_bif
from isinglass.io.formats.conll import read_conll, write_conll
from isinglass.io.formats.evidence import read_evidence, write_evidence
from isinglass.io.formats.fg import read_fg
from isinglass.io.formats.results import read_map, read_mar, read_pr
from isinglass.io.formats.uai import read_uai, write_uai
from isinglass.io.model import read_model, write_model
from isinglass.removed import missing_attribute

__all__ = [
    "ArrayFile",
    "BayesianNetwork",
    "from_bayesian_network",
    "read_arrays",
    "read_bif",
    "read_conll",
    "read_evidence",
    "read_fg",
    "read_map",
    "read_mar",
    "read_model",
    "read_npz",
    "read_pr",
    "read_uai",
    "write_arrays",
    "write_conll",
    "write_evidence",
    "write_model",
    "write_uai",
]

__getattr__ = missing_attribute(__name__)
