"""The factor graph format of libDAI (.fg, .fg.gz).

    file   = m block{m}
    block  = arity label{arity} card{arity} k (index value){k}

White space is free, ``#`` starts a comment. Labels number the variables, and all of 0 to n - 1 must occur. In
a table the first variable of the block runs fastest (Fortran order). Entries that are not listed are zero; no
entry may be listed twice. Values are not negative; a potential is the natural logarithm of its value.

A table may be short in the file and long in memory, so the entries of all tables together have a limit.
The format has no place for evidence, nor for a variable without a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isinglass.errors import InputError, require
from isinglass.io.files import PathLike, write_text_atomically
from isinglass.io.formats.names import with_names_of, write_names
from isinglass.io.formats.tables import (
    MAX_ARITY,
    MAX_CARD,
    Layout,
    factor_texts,
    from_values,
    repeated_slot,
    table_sizes,
)
from isinglass.io.formats.tokens import TokenReader
from isinglass.potentials import Potentials
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import instance, whole_number

_FREE_ENTRIES = 2**20
_ENTRIES_A_TOKEN = 64
_MOST_ONES = 2**24  # entries of tables that are written for variables without factors


class _Blocks(NamedTuple):
    """Where the parts of each block are: the first label, the number of entries and the first of them."""

    arity: IntArray
    labels: IntArray
    listed: IntArray
    entries: IntArray


def read_fg(path: PathLike, max_entries: int | None = None) -> Potentials:
    r"""Read a model in libDAI's factor graph format.

    Parameters
    ----------
    path : str or os.PathLike
        Plain or gzip.
    max_entries : int, optional
        The largest number of entries of all tables together, zeros included. By default 2**20, or 64 for each
        number in the file if that is more.

    Returns
    -------
    Potentials
        Factors keep the order of the file.

    Raises
    ------
    FileFormatError
        If the file does not follow the format; the message gives file, line, what was expected and what came.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.fg", "1\n\n2\n0 1\n2 2\n2\n0 1\n3 1\n")
    ...     read_fg(f"{folder}/a.fg").log_tables[0].tolist()
    [[0.0, -inf], [-inf, 0.0]]
    """
    reader = TokenReader.open(path)
    limit = max(_FREE_ENTRIES, _ENTRIES_A_TOKEN * reader.remaining)
    if max_entries is not None:
        limit = whole_number(max_entries, "max_entries")
    blocks = _take_blocks(reader)
    layout = _layout(reader, blocks)
    cards, slot_cards = _cards(reader, blocks, layout)
    sizes = _limited_sizes(reader, blocks, table_sizes(slot_cards, layout), limit)
    return with_names_of(from_values(cards, layout, _dense(reader, blocks, sizes), "F"), path)


def write_fg(potentials: Potentials, path: PathLike) -> None:
    r"""Write a model in libDAI's factor graph format.

    Values are written with all digits, so reading and writing a model does not change it. A variable without a factor
    gets a unary factor of ones, after the others, because the format lists variables only in factors. Names of
    variables and states are written to a JSON file in the same folder (model.fg.names.json).

    Parameters
    ----------
    potentials : Potentials
    path : str or os.PathLike
        A file whose name ends in .gz is compressed. An existing file is replaced atomically.

    Raises
    ------
    InputError
        If there is evidence, the potentials are complex, or a log-potential is out of the range of a double's
        logarithm.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> from isinglass.io.files import read_text
    >>> from tempfile import TemporaryDirectory
    >>> p = Potentials(FactorGraph([2, 2], [(0,)]), [[0.0, -np.inf]])
    >>> with TemporaryDirectory() as folder:
    ...     write_fg(p, f"{folder}/a.fg")
    ...     read_text(f"{folder}/a.fg")
    '2\n\n1\n0\n2\n1\n0 1.0\n\n1\n1\n2\n2\n0 1.0\n1 1.0\n'
    """
    instance(potentials, Potentials, "potentials")
    got = f"{len(potentials.evidence)} observed variables"
    require(not potentials.evidence, "potentials", "no evidence, which .fg cannot hold", got, "use without_evidence()")
    blocks = [*_block_texts(potentials), *_uniform_texts(potentials)]
    write_names(potentials, path)
    write_text_atomically(path, "\n".join([f"{len(blocks)}\n", *blocks]))


def _take_blocks(reader: TokenReader) -> _Blocks:
    """Find where everything is; only arities and numbers of entries are converted."""
    m = reader.count("the number of factors", 2)
    found: list[tuple[int, int, int, int]] = []
    for a in range(m):
        r = reader.integer(f"the number of variables of factor {a}", 0, MAX_ARITY)
        label = reader.skip(2 * r, f"{r} labels and {r} numbers of states of factor {a}")
        k = reader.integer(f"the number of entries listed for factor {a}", 0, MAX_CARD)
        found.append((r, label, k, reader.skip(2 * k, f"{k} entries of factor {a}")))
    reader.finish()
    return _Blocks(*np.array(found, np.int64).reshape(m, 4).T)


def _layout(reader: TokenReader, blocks: _Blocks) -> Layout:
    positions = ranges(blocks.labels, blocks.arity)
    labels = reader.integers_at(positions, lambda i: "the label of a variable", 0, MAX_CARD)
    layout = Layout.of(blocks.arity, labels)
    slot = repeated_slot(layout)
    if slot is not None:
        reader.fail("a label that the factor does not have yet", int(positions[slot]))
    distinct = np.unique(labels)
    gaps = np.flatnonzero(distinct != np.arange(len(distinct)))
    if len(gaps):
        where = int(positions[np.argmax(labels)])
        reader.fail(f"all the labels 0 to {distinct[-1]}", where, f"a gap at {gaps[0]}")
    return layout


def _cards(reader: TokenReader, blocks: _Blocks, layout: Layout) -> tuple[IntArray, IntArray]:
    """Return the cardinality of each variable, and of each slot."""
    positions = ranges(blocks.labels + blocks.arity, blocks.arity)
    slots = reader.integers_at(
        positions, lambda i: f"the number of states of variable {layout.variables[i]}", 1, MAX_CARD
    )
    _, first = np.unique(layout.variables, return_index=True)
    cards = slots[first]
    wrong = np.flatnonzero(cards[layout.variables] != slots)
    if len(wrong):
        variable = int(layout.variables[wrong[0]])
        reader.fail(f"{cards[variable]} states of variable {variable}, as before", int(positions[wrong[0]]))
    return cards, slots


def _limited_sizes(reader: TokenReader, blocks: _Blocks, sizes: FloatArray, limit: int) -> IntArray:
    with np.errstate(over="ignore"):
        over = np.flatnonzero(np.cumsum(sizes) > limit)
    if len(over):
        expected = f"tables of at most {limit} entries in all (max_entries)"
        reader.fail(expected, int(blocks.labels[over[0]]) - 1, f"more, with factor {over[0]}")
    return sizes.astype(np.int64)


def _dense(reader: TokenReader, blocks: _Blocks, sizes: IntArray) -> FloatArray:
    """Put the listed entries into full tables, one after the other."""
    factor = np.repeat(np.arange(len(sizes)), blocks.listed)
    positions = ranges(blocks.entries, 2 * blocks.listed).reshape(-1, 2)
    number = np.arange(len(factor)) - starts(blocks.listed)[factor]

    last = sizes[factor] - 1
    index = reader.integers_at(positions[:, 0], lambda i: f"an index into the table of factor {factor[i]}", 0, last)
    place = starts(sizes)[factor] + index
    order = np.argsort(place, kind="stable")
    again = order[1:][np.diff(place[order]) == 0]
    if len(again):
        i = int(again.min())
        reader.fail(f"an index that factor {factor[i]} does not list yet", int(positions[i, 0]))
    dense = np.zeros(int(sizes.sum()))
    dense[place] = reader.numbers_at(positions[:, 1], lambda i: f"factor {factor[i]}, entry {number[i]}", 0.0)
    return dense


def _block_texts(potentials: Potentials) -> list[str]:
    """Write each factor: its labels, its numbers of states, and the entries of its table."""
    tables = factor_texts(potentials, "F", lambda group, row: f"{_words(group.shape)}\n{_entries_text(row)}")
    scopes = potentials.graph.scopes
    return [f"{len(scope)}\n{_words(scope)}\n{table}" for scope, table in zip(scopes, tables, strict=True)]


def _words(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def _entries_text(row: list[float]) -> str:
    lines = [f"{i} {value!r}\n" for i, value in enumerate(row) if value]
    return f"{len(lines)}\n{''.join(lines)}"


def _uniform_texts(potentials: Potentials) -> list[str]:
    """Write a table of ones for each variable without a factor, which the format does not know otherwise."""
    graph = potentials.graph
    unused = np.setdiff1d(np.arange(graph.n_variables), graph.flat_scopes.variable)
    cards = graph.cards[unused].tolist()
    if sum(cards) > _MOST_ONES:
        expected = f"at most {_MOST_ONES} states of variables without factors, which .fg writes as tables"
        raise InputError("potentials", expected, f"{sum(cards)}", "write .uai")
    return [f"1\n{v}\n{k}\n{_entries_text([1.0] * k)}" for v, k in zip(unused.tolist(), cards, strict=True)]
