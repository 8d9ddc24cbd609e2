"""Isinglass: undirected graphical models, learned for the inference that will really be run.

Public names are loaded at first use (`__init__.pyi` lists them), so importing the package is fast and needs none of
the heavy dependencies.
"""

import lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name not in __all__:
        from isinglass.removed import refuse_removed

        refuse_removed(f"isinglass.{name}")
    return _load(name)
