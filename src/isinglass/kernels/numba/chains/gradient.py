"""Slopes of tokens back to weights: the transpose of `isinglass.kernels.numba.chains.attributes`.

    dL/dW_a(x)   =  sum_t X_ta dL/dscores_t(x)

Tokens come in pieces, whose slopes are in a cache, and X lies by pieces, in these by attributes: a run is the tokens
that an attribute has in a block, which is a piece or, of a long one, a part that fits in a cache. Single entries of
lists have a place in the slopes of a piece, and one in the lists.

Attributes are cut into parts. The sums of a part go over the tokens in order, so the bits do not depend on where
attributes are cut; different parts may be added to by different threads.

Traffic: T n K reads of 8 bytes, as for the scores, but from the slopes of one piece; a row of derivatives is read and
written once for each run.

`step` is 0 where all values are equal, and `values` holds just one. Of a piece, `at` is the row of its first token.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import ZEROS, add_eight, eight, put_eight
from isinglass.runtime.compilation.jit import compiled, inner, unrolled, unrolled_apart


@inner
def add_runs(first, last, at, runs, slopes, table):
    """Add, to rows of attributes, the slopes of their tokens in runs `first` to `last`."""
    columns, starts, tokens, values, step = runs
    for run in range(first, last):
        out, b = table[ix(columns[ix(run)])], 0
        begin, end = starts[ix(run)], starts[ix(run + 1)]
        while b + 24 <= table.shape[1]:
            one, two, three = eight(out, b), eight(out, b + 8), eight(out, b + 16)
            for p in range(begin, end):
                x, row = values[ix(p * step)], slopes[ix(at + tokens[ix(p)])]
                one = add_eight(one, x, eight(row, b))
                two = add_eight(two, x, eight(row, b + 8))
                three = add_eight(three, x, eight(row, b + 16))
            put_eight(out, b, one)
            put_eight(out, b + 8, two)
            put_eight(out, b + 16, three)
            b += 24
        while b < table.shape[1]:
            one = eight(out, b)
            for p in range(begin, end):
                one = add_eight(one, values[ix(p * step)], eight(slopes[ix(at + tokens[ix(p)])], b))
            put_eight(out, b, one)
            b += 8


@inner
def add_entries(first, last, at, entries, slopes, lists):
    """Add, to single entries of lists, their slopes; these are flat."""
    sources, targets, values, step = entries
    for p in range(first, last):
        lists[ix(targets[ix(p)])] += values[ix(p * step)] * slopes[ix(at + sources[ix(p)])]


@inner
def clear(cuts, part, rows):
    """Set a part of some rows to zero."""
    for r in range(cuts[ix(part)], cuts[ix(part + 1)]):
        for b in range(0, rows.shape[1], 8):
            put_eight(rows[ix(r)], b, ZEROS)


@unrolled_apart
def add_part(piece, part, at, layout, slopes, derivatives):
    """Add the slopes of a piece to a part of the derivatives, which the first piece sets to zero before.

    Parameters
    ----------
    layout : tuple
        The first block of each piece; of rows and of entries the cuts between parts, the bounds between parts in each
        block (blocks, parts + 1), and what lies there. Parts of rows come first, those of entries after them.
    slopes : array (rows, width), and the same flat
    derivatives : array of rows (rows, width), array of lists (entries,)
    """
    blocks, (row_cuts, row_bounds, runs), (cuts, bounds, entries) = layout
    (wide, flat), (table, lists) = slopes, derivatives
    own, parts = part, len(row_cuts) - 1
    if own < parts:
        if piece == 0:
            clear(row_cuts, own, table)
        for block in range(blocks[ix(piece)], blocks[ix(piece + 1)]):
            add_runs(row_bounds[ix(block), ix(own)], row_bounds[ix(block), ix(own + 1)], at, runs, wide, table)
        return
    own -= parts
    if piece == 0:
        for e in range(cuts[ix(own)], cuts[ix(own + 1)]):
            lists[ix(e)] = 0.0
    for block in range(blocks[ix(piece)], blocks[ix(piece + 1)]):
        add_entries(
            bounds[ix(block), ix(own)], bounds[ix(block), ix(own + 1)], at * wide.shape[1], entries, flat, lists
        )


@unrolled
def add_pieces(part, starts, layout, slopes, derivatives):
    """Write a part of the derivatives from the slopes of all tokens; `starts`: the first token of each piece."""
    for piece in range(len(starts) - 1):
        add_part(piece, part, starts[ix(piece)], layout, slopes, derivatives)


@compiled
def add_lists(part, starts, blocks, cuts, bounds, runs, first_entry, labels, slopes, lists):
    """Write a part of the lists that are not written out, from the slopes of all tokens; a list has `labels`."""
    columns, firsts, tokens, values, step = runs
    for e in range(first_entry[ix(cuts[ix(part)])], first_entry[ix(cuts[ix(part + 1)])]):
        lists[ix(e)] = 0.0
    for piece in range(len(starts) - 1):
        for block in range(blocks[ix(piece)], blocks[ix(piece + 1)]):
            for run in range(bounds[ix(block), ix(part)], bounds[ix(block), ix(part + 1)]):
                a = columns[ix(run)]
                for e in range(first_entry[ix(a)], first_entry[ix(a + 1)]):
                    x, total = ix(labels[ix(e)]), lists[ix(e)]
                    for p in range(firsts[ix(run)], firsts[ix(run + 1)]):
                        total += values[ix(p * step)] * slopes[ix(starts[ix(piece)] + tokens[ix(p)]), x]
                    lists[ix(e)] = total


@unrolled
def add_tokens(first, last, rich, poor, slopes, derivatives):
    """Add the slopes of tokens `first` to `last`, whose slopes begin with row 0, token by token.

    `rich`: starts, columns, values and step of attributes with rows; `poor`: starts, places, values, step and labels
    of the entries of lists.
    """
    (starts, columns, values, step), (firsts, places, numbers, stride, labels) = rich, poor
    table, lists = derivatives
    for t in range(first, last):
        row = slopes[ix(t - first)]
        for p in range(starts[ix(t)], starts[ix(t + 1)]):
            out = table[ix(columns[ix(p)])]
            for b in range(0, table.shape[1], 8):
                put_eight(out, b, add_eight(eight(out, b), values[ix(p * step)], eight(row, b)))
        for p in range(firsts[ix(t)], firsts[ix(t + 1)]):
            lists[ix(places[ix(p)])] += numbers[ix(p * stride)] * row[ix(labels[ix(p)])]
