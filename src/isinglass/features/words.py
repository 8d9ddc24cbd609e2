"""What a word looks like: lower case, prefixes and suffixes, shape; each a column like those of a file.

The shape of a word has X for a capital, x for another letter, d for a digit and the other signs as they are; the short
shape has runs of the same once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from isinglass.errors import InputError, UnknownNameError
from isinglass.graph.names import nearest

LONGEST = 9  # affixes


def word_form(word: str, form: str) -> str:
    """Return what a word looks like.

    Parameters
    ----------
    word : str
    form : str
        "lower", "shape", "short-shape", "is-title", "is-upper", "is-digit", or "prefix3", "suffix2": an affix of so
        many letters, shorter where the word is.

    Examples
    --------
    >>> [word_form("McDonald-42", form) for form in ("lower", "shape", "short-shape", "prefix3", "suffix2", "is-title")]
    ['mcdonald-42', 'XxXxxxxx-dd', 'XxXx-d', 'McD', '42', '0']
    """
    if form in _PLAIN:
        return _PLAIN[form](word)
    kind, length = affix_of(form)
    return word[:length] if kind == "prefix" else word[-length:]


def affix_of(form: str) -> tuple[str, int]:
    """Return whether a form is a prefix or a suffix, and its length.

    Examples
    --------
    >>> affix_of("suffix3")
    ('suffix', 3)
    """
    found = re.fullmatch(rf"(prefix|suffix)([1-{LONGEST}])", form) if isinstance(form, str) else None
    if found is None:
        known = [*_PLAIN, "prefix3", "suffix3"]
        expected = f"one of {', '.join(map(repr, _PLAIN))}, or prefix1 to suffix{LONGEST}"
        raise UnknownNameError("form", expected, repr(form), nearest(str(form), known))
    return found[1], int(found[2])


def shape_of(word: str) -> str:
    """Return the shape of a word.

    Examples
    --------
    >>> shape_of("U.N.-42nd")
    'X.X.-ddxx'
    """
    return "".join("d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word)


def _short_shape(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", shape_of(word))


_PLAIN: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "shape": shape_of,
    "short-shape": _short_shape,
    "is-title": lambda word: str(int(word.istitle())),
    "is-upper": lambda word: str(int(word.isupper())),
    "is-digit": lambda word: str(int(word.isdigit())),
}


def with_forms(columns: Mapping[str, Sequence[str]], forms: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return columns with further ones: the forms of words, called "w.lower", "w.suffix3" and so on.

    Examples
    --------
    >>> with_forms({"w": ["The", "dog"]}, {"w": ["lower", "suffix2"]})
    {'w': ['The', 'dog'], 'w.lower': ['the', 'dog'], 'w.suffix2': ['he', 'og']}
    """
    found = {name: list(values) for name, values in columns.items()}
    for name, wanted in forms.items():
        if name not in columns:
            raise InputError("forms", f"names of columns ({', '.join(map(repr, columns))})", repr(name))
        for form in wanted:
            found[f"{name}.{form}"] = [word_form(word, form) for word in columns[name]]
    return found
