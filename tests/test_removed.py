"""What went says what to use instead, wherever its user meets it."""

import ast
import importlib
import pkgutil
import re
from functools import partial

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.cli.fit import checked_recipe
from isinglass.cli.main import main
from isinglass.errors import IsinglassError, RemovedError
from isinglass.registry import Registry
from isinglass.removed import REMOVED


@pytest.fixture(scope="module")
def package():
    """The registries and the classes of the package, by what messages call them."""
    registries, classes = {}, {}
    for module in pkgutil.walk_packages(ig.__path__, "isinglass."):
        if module.name != "isinglass.__main__":
            for thing in vars(importlib.import_module(module.name)).values():
                if isinstance(thing, Registry):
                    registries.setdefault(thing.what, []).append(thing)
                elif isinstance(thing, type):
                    classes[thing.__name__] = thing
    return registries, classes


@pytest.mark.parametrize("key", REMOVED)
def test_what_went_names_its_replacement(key, package, capsys):
    registries, classes = package
    advice = re.escape(REMOVED[key])
    if command := re.fullmatch(r"isinglass ([\w -]+)", key):
        assert main(command[1].split()) == 2
        assert REMOVED[key] in capsys.readouterr().err
    elif key.startswith("isinglass."):
        module, _, name = key.rpartition(".")
        refuses(advice, getattr, importlib.import_module(module), name, error=ig.errors.RemovedError)
    elif option := re.fullmatch(r"(\w+)\((\w+)=\)", key):
        cls = classes[option[1]]
        refuses(advice, cls, error=ig.errors.RemovedError, **{option[2]: 1})
    elif choice := re.fullmatch(r"(\w+) ('.*')", key):
        for registry in registries[choice[1]]:
            with pytest.raises(ig.errors.RemovedError, match=advice):
                registry[ast.literal_eval(choice[2])]
    else:
        assert key in OPTION_VALUES
        refuses(advice, OPTION_VALUES[key], error=ig.errors.RemovedError)


def test_names_that_went_are_missing_attributes():
    """Pickle asks every module for the name of a function."""
    assert not hasattr(ig, "RBM")
    assert getattr(ig, "RBM", 3) == 3
    assert isinstance(RemovedError("x"), IsinglassError)


ONE = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 1.0]])
OPTION_VALUES = {
    "l2='auto'": lambda: ig.ChainCRF(l2="auto").fit([np.eye(2)], [[0, 1]]),
    "schedule='random'": lambda: ig.infer(ONE, "bp", schedule="random"),
    "weights='optimised'": lambda: ig.infer(ONE, "trw", weights="optimised"),
    **{f"[{key}] in a recipe": partial(checked_recipe, {key: {}}) for key in ("columns", "forms", "windows")},
}
"""For each key such as ``l2='auto'`` a call that gives this value."""
