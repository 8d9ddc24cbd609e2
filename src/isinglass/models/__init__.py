"""From parameters and features to log-potentials, and the transpose back.

Public names load when they are first used: who infers needs no model. `__init__.pyi` lists them.
"""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name not in __all__:
        from isinglass.removed import refuse_removed

        refuse_removed(f"{__name__}.{name}")
    return _load(name)
