"""A reader of the words and numbers of a text file.

Tokens are separated by ASCII white space; ``#`` starts a comment that ends with its line. Outside comments
only printable ASCII may stand. Numbers are decimal literals, nothing else that Python would take:

    integer = [sign] digit+
    number  = [sign] (digit+ ["." digit*] | "." digit+) [("e" | "E") integer]

A count that the file states is checked against what is left of the file before anything is made of that size,
so memory is proportional to the file. Every failure is a FileFormatError of one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from isinglass.errors import FileFormatError
from isinglass.io.files import PathLike, read_text, shown_path
from isinglass.typing import FloatArray, IntArray

Naming = Callable[[int], str]
Bound = int | IntArray

_SHOWN = 40
_ALLOWED = bytes([*b"\t\n\v\f\r", *range(32, 127)])
_FORBIDDEN = re.compile(r"[^\t\n\v\f\r -~]")
_COMMENT = re.compile(r"#[^\n]*")
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,18})")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ZERO = re.compile(r"[+-]?[0.]+([eE].*)?")
_NUMBER_CHARACTERS = str.maketrans("", "", "0123456789+-.eE")


def shown(token: str) -> str:
    """Quote a token for a message, cut when it is long.

    Examples
    --------
    >>> shown("2.5"), shown("9" * 1000)
    ("'2.5'", "'9999999999999999999999999999999999'...")
    """
    text = ascii(token)
    return text if len(text) <= _SHOWN else f"{token[: _SHOWN - 6]!a}..."


class TokenReader:
    r"""The tokens of a text, taken from left to right.

    Parameters
    ----------
    text : str
    file : str
        The name that messages give.

    Examples
    --------
    >>> reader = TokenReader("MAP  # states\n3  0 1 x", "a.MAP")
    >>> reader.word("MAP", "MPE")
    'MAP'
    >>> reader.integers(reader.count("the number of variables"), lambda i: f"the state of variable {i}", 0, 9)
    Traceback (most recent call last):
    isinglass.errors.FileFormatError: a.MAP, line 2: expected the state of variable 2 (a whole number from 0
    to 9), got 'x'
    """

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.position = 0
        self._text = _COMMENT.sub("", text) if "#" in text else text
        self._check_characters()
        self._tokens = self._text.split()

    @classmethod
    def open(cls, path: PathLike) -> TokenReader:
        """Read the tokens of a file, plain or gzip."""
        return cls(read_text(path), shown_path(path))

    @property
    def remaining(self) -> int:
        """Number of tokens not yet taken."""
        return len(self._tokens) - self.position

    def fail(self, expected: str, position: int | None = None, got: str = "") -> NoReturn:
        """Raise a FileFormatError about the token at `position` (by default the next one)."""
        at = self.position if position is None else position
        found = shown(self._tokens[at]) if at < len(self._tokens) else "the end of the file"
        raise FileFormatError(self.file, self.line_of(at), expected, got or found)

    def line_of(self, position: int) -> int:
        """Return the line, from 1, of a token; past the last token, the last line that is not blank."""
        seen = 0
        for number, line in enumerate(self._text.split("\n"), start=1):
            seen += len(line.split())
            if seen > position:
                return number
        return self._text.rstrip().count("\n") + 1

    def word(self, *choices: str) -> str:
        """Take one of some words, in any mix of capitals; return it as it is listed."""
        token = self._tokens[self.position].upper() if self.remaining else ""
        if token not in choices:
            self.fail(" or ".join(choices))
        self.position += 1
        return token

    def integer(self, what: str, low: int, high: int) -> int:
        """Take a whole number from `low` to `high`."""
        value = self._integer_at(self.position, what, low, high)
        self.position += 1
        return value

    def count(self, what: str, each: int = 1) -> int:
        """Take the number of things that follow, when each of them needs at least `each` tokens."""
        high = max(self.remaining - 1, 0) // each
        return self.integer(f"{what}, which the rest of the file can hold", 0, high)

    def skip(self, n: int, what: str) -> int:
        """Step over `n` tokens, which must be there; return the position of the first."""
        if n > self.remaining:
            self.fail(what, len(self._tokens))
        self.position += n
        return self.position - n

    def groups(self, n: int, what: Naming, low: int, high: int) -> tuple[IntArray, IntArray]:
        """Step over `n` groups, each a length and as many tokens; return the lengths and first positions."""
        tokens, position = self._tokens, self.position
        known: dict[str, int] = {}
        lengths: list[int] = []
        for i in range(n):
            length = known.get(tokens[position]) if position < len(tokens) else None
            if length is None:
                length = self._integer_at(position, what(i), low, high)
                known[tokens[position]] = length
            lengths.append(length)
            position += 1 + length
        self.skip(position - self.position, f"as many tokens as {what(n - 1)} says")
        found = np.array(lengths, np.int64)
        return found, position - np.cumsum((found + 1)[::-1])[::-1] + 1

    def integers(self, n: int, what: Naming, low: int, high: int) -> IntArray:
        """Take `n` whole numbers; `what` names the i-th in a message."""
        if n > self.remaining:
            self.fail(what(self.remaining), len(self._tokens))
        start = self.skip(n, "")
        return self.integers_at(np.arange(start, start + n), what, low, high)

    def integers_at(self, positions: IntArray, what: Naming, low: Bound, high: Bound) -> IntArray:
        """Convert the tokens at some positions to whole numbers, with one bound for all or one for each."""
        tokens = self._tokens_at(positions)
        try:
            values = _fast_integers(tokens)
            bad = np.flatnonzero((values < low) | (values > high))
            suspects: Sequence[int] = bad[:1].tolist()
        except (ValueError, OverflowError):
            values, suspects = np.empty(len(tokens), np.int64), range(len(tokens))
        lows, highs = (np.broadcast_to(np.asarray(bound), len(tokens)) for bound in (low, high))
        for i in suspects:
            values[i] = self._integer_at(int(positions[i]), what(i), int(lows[i]), int(highs[i]))
        return values

    def numbers_at(self, positions: IntArray, what: Naming, low: float = -np.inf) -> FloatArray:
        """Convert the tokens at some positions to doubles of at least `low`."""
        tokens = self._tokens_at(positions)
        if "".join(tokens).translate(_NUMBER_CHARACTERS):
            self._fail_number(tokens, positions, what)
        try:
            values = np.fromiter(map(float, tokens), np.float64, len(tokens))
        except ValueError:
            self._fail_number(tokens, positions, what)
        self._check_range(values, tokens, positions, what)
        bad = np.flatnonzero(values < low)
        if len(bad):
            self.fail(f"{what(int(bad[0]))} (a number of at least {low:g})", int(positions[bad[0]]))
        return values

    def finish(self) -> None:
        """Check that nothing is left."""
        if self.remaining:
            self.fail("the end of the file")

    def _check_characters(self) -> None:
        if self._text.isascii() and not self._text.encode().translate(None, _ALLOWED):
            return
        match = _FORBIDDEN.search(self._text)
        if match is not None:
            line = self._text.count("\n", 0, match.start()) + 1
            raise FileFormatError(self.file, line, "plain ASCII text", f"the character {match[0]!a}")

    def _tokens_at(self, positions: IntArray) -> list[str]:
        tokens = self._tokens
        return [tokens[i] for i in positions.tolist()]

    def _integer_at(self, position: int, what: str, low: int, high: int) -> int:
        token = self._tokens[position] if position < len(self._tokens) else ""
        match = _INTEGER.fullmatch(token)
        value = low - 1 if match is None else int(match[1] + match[2])
        if not low <= value <= high:
            self.fail(f"{what} ({_range_text(low, high)})", position)
        return value

    def _fail_number(self, tokens: Sequence[str], positions: IntArray, what: Naming) -> NoReturn:
        i = next(i for i, token in enumerate(tokens) if NUMBER.fullmatch(token) is None)
        self.fail(f"{what(i)} (a decimal number)", int(positions[i]))

    def _check_range(self, values: FloatArray, tokens: Sequence[str], positions: IntArray, what: Naming) -> None:
        """Refuse literals that became infinite, or zero although they are not."""
        rounded = {
            token for token in {tokens[i] for i in np.flatnonzero(values == 0).tolist()} if not _ZERO.fullmatch(token)
        }
        if not rounded and np.isfinite(values).all():
            return
        i = next(i for i, token in enumerate(tokens) if token in rounded or not np.isfinite(values[i]))
        self.fail(f"{what(i)} (a number in the range of a double, 5e-324 to 1.8e308)", int(positions[i]))


def _fast_integers(tokens: Sequence[str]) -> IntArray:
    """Convert unsigned integers in bulk; ValueError or OverflowError when one is not."""
    if tokens and not "".join(tokens).isdigit():
        raise ValueError
    return np.fromiter(map(int, tokens), np.int64, len(tokens))


def _range_text(low: int, high: int) -> str:
    return f"a whole number from {low} to {high}" if high > low else str(low)
