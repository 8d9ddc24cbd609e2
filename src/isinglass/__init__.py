"""Isinglass: undirected graphical models, learned for the inference that will really be run.

Public names are loaded at first use (`__init__.pyi` lists them), so importing the package is fast and needs none of
the heavy dependencies.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
