"""From parameters and features to log-potentials, and the transpose back.

Public names load when they are first used: who infers needs no model. `__init__.pyi` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
