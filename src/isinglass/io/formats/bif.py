r"""The Bayesian interchange format (.bif, .bif.gz), version 0.15.

    file         = "network" name "{" ... "}"  (variable | probability)*
    variable     = "variable" name "{" "type" "discrete" "[" n "]" "{" state ("," state)* "}" ";"  property* "}"
    probability  = "probability" "(" name ["|" name ("," name)*] ")" "{" (table | default | row | property)* "}"
    table        = "table" number ("," number)* ";"            the variable's own states run slowest
    default      = "default" number ("," number)* ";"          for all states of the parents without a row
    row          = "(" state ("," state)* ")" number ("," number)* ";"

Comments are as in C. Commas and bars may be left out, as the format allows. In a table the last parent runs fastest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod
from typing import NoReturn

import numpy as np

from isinglass.errors import FileFormatError, InputError
from isinglass.graph.semantics.directed import find_cycle
from isinglass.io.bayesian import BayesianNetwork, check_table
from isinglass.io.files import PathLike, read_text, shown_path
from isinglass.io.formats.tables import ENTRIES_A_TOKEN, FREE_ENTRIES, MAX_ARITY
from isinglass.io.formats.tokens import NUMBER
from isinglass.typing import FloatArray

ROUNDING = 0.01  # files hold rounded numbers
_TOKEN = re.compile(r'"[^"\n]*"|[{}()\[\];]|[^\s{}()\[\];,|"]+')
_SKIPPED = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def read_bif(path: PathLike) -> BayesianNetwork:
    """Read a Bayesian network in the BIF format, as a factor graph.

    Parameters
    ----------
    path : str or os.PathLike
        Plain or gzip.

    Returns
    -------
    BayesianNetwork
        Potentials, with names; variables are numbered as in the file. Probabilities are kept as they are written:
        rows that are rounded give a log Z that is not quite zero.

    Raises
    ------
    FileFormatError
        If the file does not follow the format, has a cycle, or rows that do not sum to one within 0.01.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from isinglass.io.files import write_text_atomically
    >>> text = '''network weather { }
    ... variable rain { type discrete [ 2 ] { no, yes }; }
    ... variable wet { type discrete [ 2 ] { no, yes }; }
    ... probability ( rain ) { table 0.8, 0.2; }
    ... probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.25, 0.75; }'''
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.bif", text)
    ...     network = read_bif(f"{folder}/a.bif")
    >>> network.names, network.parents, network.states[0]
    (('rain', 'wet'), ((), (0,)), ('no', 'yes'))
    """
    return _Parser(read_text(path), shown_path(path)).network()


@dataclass
class _Table:
    """What a probability block says of one variable."""

    parents: list[str]
    line: int | None
    whole: list[float] | None = None
    default: list[float] | None = None
    rows: dict[tuple[str, ...], list[float]] = field(default_factory=dict)


class _Parser:
    """A parser by recursive descent; every failure names the line."""

    def __init__(self, text: str, file: str) -> None:
        blank = _SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        self.file = file
        self.tokens: list[tuple[str, int]] = []
        for number, line in enumerate(blank.split("\n"), start=1):
            self.tokens += [(token, number) for token in _TOKEN.findall(line)]
        self.at = 0
        self.states: dict[str, tuple[str, ...]] = {}
        self.tables: dict[str, _Table] = {}
        self.entries = 0  # of the tables that were made

    def network(self) -> BayesianNetwork:
        """Read the whole file."""
        self.expect("network")
        self.block()
        while self.at < len(self.tokens):
            word = self.take()
            if word == "variable":
                self.variable()
            elif word == "probability":
                self.probability()
            else:
                self.fail("'variable' or 'probability'", self.at - 1)
        return self.assembled()

    def variable(self) -> None:
        name = self.name("the name of a variable")
        if name in self.states:
            self.fail("a new variable", self.at - 1)
        self.expect("{")
        while (word := self.take()) != "}":
            if word == "type":
                self.states[name] = self.type_of(name)
            else:
                self.statement()
        if name not in self.states:
            self.fail(f"the type of {name!r:.60}", self.at - 1)

    def type_of(self, name: str) -> tuple[str, ...]:
        self.expect("discrete")
        self.expect("[")
        count = self.take()
        self.expect("]")
        self.expect("{")
        found = self.until("}")
        self.expect(";")
        if count.lstrip("0") != str(len(found)) or len(set(found)) != len(found) or not found:
            self.fail(f"{count:.40} different states of {name!r:.60}", self.at - 1, f"{len(set(found))}")
        return tuple(found)

    def probability(self) -> None:
        self.expect("(")
        line = self.line(self.at)
        names = self.until(")")
        for name in names:
            if name not in self.states:
                self.fail("a variable that is declared before", self.at - 1, repr(name))
        if not names or names[0] in self.tables or len(set(names)) != len(names):
            self.fail("one table for each variable", self.at - 1, " ".join(names))
        table = self.tables[names[0]] = _Table(names[1:], line)
        self.expect("{")
        while (word := self.take()) != "}":
            if word == "table":
                self.once(table.whole is not None or bool(table.rows), names[0])
                table.whole = self.numbers()
            elif word == "default":
                self.once(table.default is not None, names[0])
                table.default = self.numbers()
            elif word == "(":
                key = tuple(self.until(")"))
                self.once(key in table.rows or table.whole is not None, names[0])
                table.rows[key] = self.numbers()
            else:
                self.statement()

    def once(self, known: bool, name: str) -> None:
        """Refuse probabilities that the file has given before."""
        if known:
            self.fail(f"probabilities of {name!r:.60} that are given once", self.at - 1, "the same again")

    def assembled(self) -> BayesianNetwork:
        """Put the network together."""
        names = list(self.states)
        missing = [name for name in names if name not in self.tables]
        if missing:
            raise FileFormatError(self.file, None, f"probabilities of {missing[0]!r}", "none")
        number = {name: i for i, name in enumerate(names)}
        parents = tuple(tuple(number[p] for p in self.tables[name].parents) for name in names)
        if cycle := find_cycle(parents):
            got = "the cycle " + " -> ".join(names[i] for i in cycle)
            raise FileFormatError(self.file, None, "a network without directed cycles", got)
        return BayesianNetwork.of(names, list(self.states.values()), parents, [self.array(name) for name in names])

    def array(self, name: str) -> FloatArray:
        """Make the table of a variable."""
        table = self.tables[name]
        shape = tuple(len(self.states[other]) for other in (*table.parents, name))
        if len(shape) > MAX_ARITY:
            expected = f"at most {MAX_ARITY - 1} parents of {name!r:.60}"
            raise FileFormatError(self.file, table.line, expected, f"{len(table.parents)}")
        self.entries += prod(shape)
        if table.whole is None and self.entries > (limit := max(FREE_ENTRIES, ENTRIES_A_TOKEN * len(self.tokens))):
            got = f"more, with the table of {name!r:.60}"
            raise FileFormatError(self.file, table.line, f"tables of at most {limit} entries in all", got)
        if table.whole is not None:
            values = self.fitted(table.whole, prod(shape), name, table).reshape(shape[-1], *shape[:-1])
            values = np.moveaxis(values, 0, -1)
        else:
            fill = [np.nan] * shape[-1] if table.default is None else table.default
            values = np.tile(self.fitted(fill, shape[-1], name, table), (*shape[:-1], 1))
            for key, row in table.rows.items():
                values[self.place(key, name, table)] = self.fitted(row, shape[-1], name, table)
        if np.isnan(values).any():
            raise FileFormatError(
                self.file, table.line, f"a row for all states of the parents of {name!r:.60}", "fewer"
            )
        try:
            check_table(values, shape, f"the probabilities of {name!r:.60}", ROUNDING)
        except InputError as error:
            raise FileFormatError(self.file, table.line, error.expected, f"{error.got} for {name!r:.60}") from None
        return values

    def place(self, key: tuple[str, ...], name: str, table: _Table) -> tuple[int, ...]:
        """Return where a row belongs."""
        if len(key) != len(table.parents):
            expected = f"a state of each of the {len(table.parents)} parents of {name!r:.60}"
            raise FileFormatError(self.file, table.line, expected, f"({', '.join(key)})")
        for state, parent in zip(key, table.parents, strict=True):
            if state not in self.states[parent]:
                raise FileFormatError(self.file, table.line, f"a state of {parent!r}", repr(state))
        return tuple(self.states[p].index(s) for s, p in zip(key, table.parents, strict=True))

    def fitted(self, values: list[float], size: int, name: str, table: _Table) -> FloatArray:
        if len(values) != size:
            raise FileFormatError(self.file, table.line, f"{size} probabilities of {name!r:.60}", f"{len(values)}")
        return np.array(values)

    def numbers(self) -> list[float]:
        """Take numbers up to a semicolon."""
        found = self.until(";")
        if not all(map(NUMBER.fullmatch, found)):
            self.fail("numbers", self.at - 1, " ".join(found))
        return [float(token) for token in found]

    def until(self, end: str) -> list[str]:
        """Take names up to a mark."""
        found = []
        while (token := self.take()) != end:
            if token in "{}()[];":
                self.fail(repr(end), self.at - 1)
            found.append(token.strip('"'))
        return found

    def statement(self) -> None:
        """Step over a property, up to its semicolon."""
        while self.take() != ";":
            pass

    def block(self) -> None:
        """Step over the name and the braces of the network."""
        while self.take() != "{":
            pass
        while (token := self.take()) != "}":
            if token == "{":
                self.fail("'}'", self.at - 1)

    def name(self, what: str) -> str:
        token = self.take()
        if token in "{}()[];":
            self.fail(what, self.at - 1)
        return token.strip('"')

    def expect(self, token: str) -> None:
        if self.take() != token:
            self.fail(repr(token), self.at - 1)

    def take(self) -> str:
        if self.at >= len(self.tokens):
            self.fail("the rest of the network", self.at)
        self.at += 1
        return self.tokens[self.at - 1][0]

    def line(self, at: int) -> int | None:
        return self.tokens[min(at, len(self.tokens) - 1)][1] if self.tokens else None

    def fail(self, expected: str, at: int, got: str = "") -> NoReturn:
        end = at >= len(self.tokens)
        found = got or ("the end of the file" if end else ascii(self.tokens[at][0])[:40])
        raise FileFormatError(self.file, self.line(at), expected, found)
