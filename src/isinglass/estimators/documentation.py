"""Documentation that estimators inherit: a parameter is described once, in the class that several share.

The docstring of a class describes its own parameters and attributes, in numpydoc's sections. Those that it inherits are
taken from the nearest base class that describes them, so that `help` and the reference show all of them.
"""

from __future__ import annotations

import inspect
import re


def inherit_docs(cls: type) -> None:
    r"""Complete the sections "Parameters", in the order of the signature, and "Attributes" of a class.

    Examples
    --------
    >>> class Base:
    ...     "Base.\n\nParameters\n----------\nl2, l1 : float\n    Penalties."
    >>> class Own(Base):
    ...     "Own."
    ...     def __init__(self, l1=0.0, l2=1.0): ...
    >>> inherit_docs(Own)
    >>> Own.__doc__
    'Own.\n\nParameters\n----------\nl2, l1 : float\n    Penalties.'
    """
    texts = [inspect.cleandoc(vars(base).get("__doc__") or "") for base in cls.__mro__[:-1]]
    sections = _sections(texts[0])
    parameters = _entries(texts, "Parameters")
    names = [name for name in inspect.signature(cls.__init__).parameters if name in parameters]  # type: ignore[misc]
    attributes = _entries(texts, "Attributes")
    found = {"Parameters": [parameters[name] for name in names], "Attributes": list(attributes.values())}
    lists = {title: "\n".join(dict.fromkeys(entries)) for title, entries in found.items() if entries}
    order = dict.fromkeys(["", "Parameters", "Attributes", *sections])
    merged = {title: lists.get(title, sections.get(title, "").strip()) for title in order}
    parts = [f"{title}\n{'-' * len(title)}\n{text}" if title else text for title, text in merged.items() if text]
    cls.__doc__ = "\n\n".join(parts)


def _sections(text: str) -> dict[str, str]:
    """Cut a docstring into its sections by their titles; what comes before them has the title ""."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return {"": parts[0].strip(), **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _entries(texts: list[str], title: str) -> dict[str, str]:
    """Return the entry of each name in a section of several docstrings, the first that has it."""
    found: dict[str, str] = {}
    for text in texts:
        for entry in re.split(r"\n(?=\S)", _sections(text).get(title, "").strip()):
            for name in entry.partition(":")[0].split("\n")[0].split(","):
                found.setdefault(name.strip(), entry)
    return {name: entry for name, entry in found.items() if name and not name.startswith("_")}
