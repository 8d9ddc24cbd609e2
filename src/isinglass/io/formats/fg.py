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

from typing import NamedTuple

import numpy as np

from isinglass.io.files import PathLike
from isinglass.io.formats.tables import (
    ENTRIES_A_TOKEN,
    FREE_ENTRIES,
    MAX_ARITY,
    MAX_CARD,
    Layout,
    from_values,
    repeated_slot,
    table_sizes,
)
from isinglass.io.formats.tokens import TokenReader
from isinglass.potentials import Potentials
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import whole_number


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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     count = Path(folder, "a.fg").write_text("1\n\n2\n0 1\n2 2\n2\n0 1\n3 1\n")
    ...     read_fg(f"{folder}/a.fg").log_tables[0].tolist()
    [[0.0, -inf], [-inf, 0.0]]
    """
    reader = TokenReader.open(path)
    limit = max(FREE_ENTRIES, ENTRIES_A_TOKEN * reader.remaining)
    if max_entries is not None:
        limit = whole_number(max_entries, "max_entries")
    blocks = _take_blocks(reader)
    layout = _layout(reader, blocks)
    cards, slot_cards = _cards(reader, blocks, layout)
    sizes = _limited_sizes(reader, blocks, table_sizes(slot_cards, layout), limit)
    return from_values(cards, layout, _dense(reader, blocks, sizes), "F")


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
