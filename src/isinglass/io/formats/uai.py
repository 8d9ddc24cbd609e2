"""The UAI model format (.uai, .uai.gz).

    file   = ("MARKOV" | "BAYES") n card{n} m scope{m} table{m} [evidence]
    scope  = arity variable{arity}          variables are numbered from 0; arity 0 is a constant
    table  = size value{size}               size is the product of the scope's cards

Words may be in any mix of capitals, white space is free, ``#`` starts a comment. In a table the last variable
of the scope runs fastest (C order). Values are not negative; a potential is the natural logarithm of its
value, -inf for zero. The tables of a BAYES file are factors like any others; it is not checked that they are
normalised. Evidence after the last table follows the grammar of .evid files.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from isinglass.io.files import PathLike, checked_path, write_text_atomically
from isinglass.io.formats.evidence import EvidenceSource, observe, take_evidence, write_evidence
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
from isinglass.validation import instance


def read_uai(path: PathLike, evidence: EvidenceSource = None) -> Potentials:
    """Read a model in the UAI format, MARKOV or BAYES.

    Parameters
    ----------
    path : str or os.PathLike
        Plain or gzip.
    evidence : mapping of int to int, or path of a .evid file, optional
        Observed variables; they are added to those that the model file itself observes.

    Returns
    -------
    Potentials
        With the evidence. Factors keep the order of the file.

    Raises
    ------
    FileFormatError
        If a file does not follow its format; the message gives file, line, what was expected and what came.
    InputError
        If `evidence` does not fit the model or contradicts the evidence in the file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.uai", "MARKOV 2  2 2  1  2 0 1  4  1 0 0 1")
    ...     p = read_uai(f"{folder}/a.uai", {1: 0})
    >>> p.graph, p.log_tables[0].tolist(), dict(p.evidence)
    (FactorGraph: 2 variables (2 states), 1 factor (arity 2), forest, [[0.0, -inf], [-inf, 0.0]], {1: 0})
    """
    reader = TokenReader.open(path)
    reader.word("MARKOV", "BAYES")
    n = reader.count("the number of variables")
    cards = reader.integers(n, lambda i: f"the number of states of variable {i}", 1, MAX_CARD)
    layout = _take_scopes(reader, n)
    values = _take_tables(reader, cards, layout)
    found = take_evidence(reader, cards, "the end of the file or ")
    return observe(from_values(cards, layout, values, "C").with_evidence(found), evidence)


def write_uai(potentials: Potentials, path: PathLike) -> None:
    """Write a model in the UAI format, as MARKOV.

    Values are written with all digits, so reading and writing a model does not change it. Evidence is written to a
    second file, named `path` + ".evid" without .gz (model.uai.gz, model.uai.evid). The format has no place for names of
    variables and states.

    Parameters
    ----------
    potentials : Potentials
    path : str or os.PathLike
        A file whose name ends in .gz is compressed. An existing file is replaced atomically.

    Raises
    ------
    InputError
        If the potentials are complex, or a log-potential is out of the range of a double's logarithm.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> from isinglass.io.files import read_text
    >>> from tempfile import TemporaryDirectory
    >>> p = Potentials(FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [0.5, 1.0]])], {0: 1})
    >>> with TemporaryDirectory() as folder:
    ...     write_uai(p, f"{folder}/a.uai")
    ...     print(read_text(f"{folder}/a.uai"), read_text(f"{folder}/a.uai.evid"))
    MARKOV
    2
    2 2
    1
    2 0 1
    <BLANKLINE>
    4
    1.0 2.0 0.5 1.0
     1 0 1
    """
    instance(potentials, Potentials, "potentials")
    name = checked_path(path)
    text = _model_text(potentials)
    if potentials.evidence:
        write_evidence(potentials.evidence, name.removesuffix(".gz") + ".evid")
    write_text_atomically(name, text)


def _take_scopes(reader: TokenReader, n: int) -> Layout:
    """Take the scopes; check that no variable stands twice in one."""
    m = reader.count("the number of factors", 3)
    arity, first = reader.groups(m, lambda a: f"the number of variables of factor {a}", 0, min(n, MAX_ARITY))
    positions = ranges(first, arity)
    owner = starts(arity)

    def factor(i: int) -> str:
        return f"factor {np.searchsorted(owner, i, side='right') - 1}"

    variables = reader.integers_at(positions, lambda i: f"a variable of {factor(i)}", 0, n - 1)
    layout = Layout.of(arity, variables)
    slot = repeated_slot(layout)
    if slot is not None:
        reader.fail(f"a variable that {factor(slot)} does not have yet", int(positions[slot]))
    return layout


def _take_tables(reader: TokenReader, cards: IntArray, layout: Layout) -> FloatArray:
    """Check the stated sizes, then convert all values at once."""
    sizes = table_sizes(cards[layout.variables], layout)
    needed = float(np.sum(sizes + 1))
    if needed > reader.remaining:
        _fail_short(reader, sizes)
    lengths = sizes.astype(np.int64)
    begin = reader.skip(int(needed), "") + starts(lengths + 1)[:-1]
    reader.integers_at(begin, _size_name, lengths, lengths)
    owner = starts(lengths)

    def what(i: int) -> str:
        a = int(np.searchsorted(owner, i, side="right")) - 1
        return f"factor {a}, entry {i - owner[a]}"

    return reader.numbers_at(ranges(begin + 1, lengths), what, 0.0)


def _fail_short(reader: TokenReader, sizes: FloatArray) -> None:
    """Say which table states another size, or is cut off by the end of the file."""
    for a, size in enumerate(sizes.tolist()):
        if size > MAX_CARD:
            got = f"factor {a} with {size:.3g} entries"
            reader.fail("scopes whose tables fit into the rest of the file", got=got)
        reader.integer(_size_name(a), int(size), int(size))
        if size > reader.remaining:
            reader.fail(f"factor {a}, entry {reader.remaining}", reader.position + reader.remaining)
        reader.skip(int(size), "")


def _size_name(factor: int) -> str:
    return f"the number of entries of factor {factor}"


def _model_text(potentials: Potentials) -> str:
    graph = potentials.graph
    flat = graph.flat_scopes
    variables = list(map(str, flat.variable.tolist()))
    scopes = [" ".join([str(e - s), *variables[s:e]]) for s, e in pairwise(flat.first_slot.tolist())]
    head = ["MARKOV", str(graph.n_variables), " ".join(map(str, graph.cards.tolist())), str(graph.n_factors)]
    tables = factor_texts(potentials, lambda row: f"\n{len(row)}\n{' '.join(map(repr, row))}")
    return "\n".join([*head, *scopes, *tables, ""])
