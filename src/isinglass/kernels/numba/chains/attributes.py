"""Sparse features times weights, and back: the two long loops of a chain model with binary attributes.

    scores_t(x)  =  sum_a X_ta W_a(x)              `sum_scores`: token by token
    dL/dW_a(x)   =  sum_t X_ta dL/dscores_t(x)     `add_rows`, `collect_...`: attribute by attribute

X is sparse, twice: by tokens for the first sum, by attributes for the second, so that each sum is written by one thread
and in one sequence, whatever the number of threads. An attribute that has a weight for most labels keeps a whole row of
them (rows); one with few has a list of labels and weights (entries). Rows are padded to LANES numbers, which
accumulate in registers; what an attribute costs is then one load and two operations for each lane.

The second sum goes by blocks of tokens, whose derivatives stay in the second cache: a run is the tokens that an
attribute has in a block.

Traffic, for T tokens with n attributes each and K labels: T n K reads of 8 bytes each way, from weights and from
derivatives, and as many multiplications and additions. 204,000 tokens, 10 attributes (8 of them with rows), 24 lanes:
0.32 GB each way, 3 ms at the 113 GB/s of the second cache, 15 ms at the 21 GB/s of memory. Measured: 16 ms for the
scores, whose rows of weights are in the second and third cache, and 10 ms back; 26 ms back without blocks.

`step` is 0 where all values are equal, and `values` holds just one.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import ZEROS, add_eight, eight, put_eight
from isinglass.runtime.jit import compiled, inner, unrolled

LANES = 8
"""Numbers that a row of labels is padded to a multiple of: those of `arithmetic.lanes`."""


@compiled
def split_kinds(starts, columns, values, step, row_of, first, second):
    """Cut a sparse matrix by tokens in two: the rows of attributes that have one, and the numbers of the others.

    `first` and `second` hold starts (tokens + 1,), and columns and values with room for all entries.
    """
    (starts1, columns1, values1), (starts2, columns2, values2) = first, second
    p1 = p2 = 0
    for t in range(len(starts) - 1):
        starts1[ix(t)], starts2[ix(t)] = p1, p2
        for p in range(starts[ix(t)], starts[ix(t + 1)]):
            a = columns[ix(p)]
            if row_of[ix(a)] > 0:
                columns1[ix(p1)] = row_of[ix(a)]
                if step:
                    values1[ix(p1)] = values[ix(p)]
                p1 += 1
            else:
                columns2[ix(p2)] = a
                if step:
                    values2[ix(p2)] = values[ix(p)]
                p2 += 1
    starts1[ix(len(starts) - 1)], starts2[ix(len(starts) - 1)] = p1, p2


@compiled
def carry(first, last, sources, values, targets, out):
    """Copy numbers `first` to `last` from their sources to their targets, between theta and rows."""
    for i in range(first, last):
        out[ix(targets[ix(i)])] = values[ix(sources[ix(i)])]


@inner
def sum_row(t, starts, columns, values, step, rows, r, out):
    """Write, to row r, the sum over the columns of place t of value times row, rows (columns, width)."""
    r, b = ix(r), 0
    while b + 24 <= out.shape[1]:
        one, two, three = ZEROS, ZEROS, ZEROS
        for p in range(starts[ix(t)], starts[ix(t + 1)]):
            x, row = values[ix(p * step)], rows[ix(columns[ix(p)])]
            one = add_eight(one, x, eight(row, b))
            two = add_eight(two, x, eight(row, b + 8))
            three = add_eight(three, x, eight(row, b + 16))
        put_eight(out[r], b, one)
        put_eight(out[r], b + 8, two)
        put_eight(out[r], b + 16, three)
        b += 24
    while b < out.shape[1]:
        one = ZEROS
        for p in range(starts[ix(t)], starts[ix(t + 1)]):
            one = add_eight(one, values[ix(p * step)], eight(rows[ix(columns[ix(p)])], b))
        put_eight(out[r], b, one)
        b += 8


@inner
def add_entries(t, starts, places, values, step, labels, weights, r, scores):
    """Add, to row r of scores, the weights of token t: those at `places`, for `labels`, one for each entry."""
    for p in range(starts[ix(t)], starts[ix(t + 1)]):
        scores[ix(r), ix(labels[ix(p)])] += values[ix(p * step)] * weights[ix(places[ix(p)])]


@inner
def add_lists(t, starts, columns, values, step, first, labels, weights, r, scores):
    """Add, to row r of scores, the weights of the attributes of token t that have lists; those of others are empty."""
    for p in range(starts[ix(t)], starts[ix(t + 1)]):
        a, x = columns[ix(p)], values[ix(p * step)]
        for e in range(first[ix(a)], first[ix(a + 1)]):
            scores[ix(r), ix(labels[ix(e)])] += x * weights[ix(e)]


@inner
def sum_attributes(t, rich, poor, r, scores):
    """Write the scores of token t to row r.

    `rich`: starts, columns, values, step and rows of attributes with rows; `poor`: starts, places, values, step, labels
    and weights of the entries of lists.
    """
    sum_row(t, rich[0], rich[1], rich[2], rich[3], rich[4], r, scores)
    add_entries(t, poor[0], poor[1], poor[2], poor[3], poor[4], poor[5], r, scores)


@unrolled
def sum_scores(first, last, starts, columns, values, step, row_of, rows, first_entry, labels, weights, scores):
    """Write the scores of tokens `first` to `last`, from all attributes as they are; row 0 is for those without one."""
    for t in range(first, last):
        r, b = ix(t - first), 0
        while b + 24 <= scores.shape[1]:
            one, two, three = ZEROS, ZEROS, ZEROS
            for p in range(starts[ix(t)], starts[ix(t + 1)]):
                x, row = values[ix(p * step)], rows[ix(row_of[ix(columns[ix(p)])])]
                one = add_eight(one, x, eight(row, b))
                two = add_eight(two, x, eight(row, b + 8))
                three = add_eight(three, x, eight(row, b + 16))
            put_eight(scores[r], b, one)
            put_eight(scores[r], b + 8, two)
            put_eight(scores[r], b + 16, three)
            b += 24
        while b < scores.shape[1]:
            one = ZEROS
            for p in range(starts[ix(t)], starts[ix(t + 1)]):
                one = add_eight(one, values[ix(p * step)], eight(rows[ix(row_of[ix(columns[ix(p)])])], b))
            put_eight(scores[r], b, one)
            b += 8
        add_lists(t, starts, columns, values, step, first_entry, labels, weights, t - first, scores)


@unrolled
def add_rows(first, last, attributes, starts, tokens, values, step, slopes, table):
    """Add, to rows of attributes, the slopes of their tokens; block i of tokens has the runs first[i] to last[i]."""
    for block in range(len(first)):
        for run in range(first[ix(block)], last[ix(block)]):
            out, b = table[ix(attributes[ix(run)])], 0
            while b + 24 <= table.shape[1]:
                one, two, three = eight(out, b), eight(out, b + 8), eight(out, b + 16)
                for p in range(starts[ix(run)], starts[ix(run + 1)]):
                    x, row = values[ix(p * step)], slopes[ix(tokens[ix(p)])]
                    one = add_eight(one, x, eight(row, b))
                    two = add_eight(two, x, eight(row, b + 8))
                    three = add_eight(three, x, eight(row, b + 16))
                put_eight(out, b, one)
                put_eight(out, b + 8, two)
                put_eight(out, b + 16, three)
                b += 24
            while b < table.shape[1]:
                one = eight(out, b)
                for p in range(starts[ix(run)], starts[ix(run + 1)]):
                    one = add_eight(one, values[ix(p * step)], eight(slopes[ix(tokens[ix(p)])], b))
                put_eight(out, b, one)
                b += 8


@compiled
def collect_lists(first, last, attributes, starts, tokens, values, step, first_entry, labels, slopes, lists):
    """Add, to the lists of attributes, the slopes of their tokens; blocks and runs as for `add_rows`."""
    for block in range(len(first)):
        for run in range(first[ix(block)], last[ix(block)]):
            a = attributes[ix(run)]
            for e in range(first_entry[ix(a)], first_entry[ix(a + 1)]):
                x, total = ix(labels[ix(e)]), lists[ix(e)]
                for p in range(starts[ix(run)], starts[ix(run + 1)]):
                    total += values[ix(p * step)] * slopes[ix(tokens[ix(p)]), x]
                lists[ix(e)] = total


@compiled
def collect_entries(sources, targets, values, step, slopes, first, lists):
    """Add slopes at `sources` to the entries of lists at `targets`, which are counted from `first`."""
    for p in range(len(sources)):
        lists[ix(targets[ix(p)] - first)] += values[ix(p * step)] * slopes[ix(sources[ix(p)])]
