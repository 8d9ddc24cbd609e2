"""Names of variables and of their states.

A name stands for the number of a variable, or of a state, wherever a graph with names is asked about one. In a batch
the same name may stand for one variable of each component; the pair (name, component) then says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from isinglass.errors import InputError, UnknownNameError
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import IntArray
from isinglass.validation import Evidence, evidence_dict, items, variables_of, whole_number

if TYPE_CHECKING:
    from isinglass.graph.factor_graph import FactorGraph

VariableLike = int | str | tuple[str, int]
"""The number of a variable, its name, or its name and component."""
StateLike = int | str
EvidenceLike = (
    Evidence
    | Mapping[int, StateLike]
    | Mapping[str, StateLike]
    | Mapping[tuple[str, int], StateLike]
    | Mapping[VariableLike, StateLike]
)
NamedCards = Mapping[str, int | Sequence[str]]

SHOWN = 4  # names that a repr lists


class Names:
    """The names of all variables of a graph, and of those states that have names.

    Parameters
    ----------
    variables : sequence of str
    states : sequence of (sequence of str, or None)
        None for a variable whose states are numbers.

    Attributes
    ----------
    variables : tuple of str
    states : tuple of (tuple of str, or None)

    Examples
    --------
    >>> names = Names(["rain", "wet"], [["no", "yes"], None])
    >>> names
    Names: rain (no, yes), wet
    >>> names.state_names(0, 2), names.state_names(1, 2)
    (('no', 'yes'), (0, 1))
    """

    def __init__(self, variables: Sequence[str], states: Sequence[Sequence[str] | None]) -> None:
        self.variables = tuple(variables)
        self.states = tuple(None if s is None else tuple(s) for s in states)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The variables of each name."""
        found: dict[str, list[int]] = {}
        for i, name in enumerate(self.variables):
            found.setdefault(name, []).append(i)
        return found

    def repeat(self, n: int) -> Names:
        """Return the names of `n` copies of a graph."""
        return Names(self.variables * n, self.states * n)

    def state_names(self, variable: int, card: int) -> tuple[StateLike, ...]:
        """Return the names of a variable's states; their numbers, if they have none."""
        known = self.states[variable]
        return tuple(range(card)) if known is None else known

    def state(self, variable: int, state: StateLike, argument: str) -> int:
        """Return the number of a state that is given by its name; a number is returned as it is."""
        if not isinstance(state, str):
            return state
        known = self.states[variable]
        if known is None:
            remedy = f"the states of {self.variables[variable]!r} have no names"
            raise UnknownNameError(argument, "the number of a state", repr(state), remedy)
        if state not in known:
            expected = f"a state of {self.variables[variable]!r}: {', '.join(map(repr, known[:12]))}"
            raise UnknownNameError(argument, expected, repr(state), nearest(state, known))
        return known.index(state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and (self.variables, self.states) == (other.variables, other.states)

    def __hash__(self) -> int:
        return hash((self.variables, self.states))

    def __repr__(self) -> str:
        pairs = zip(self.variables, self.states, strict=True)
        return "Names: " + ", ".join(name if s is None else f"{name} ({', '.join(s)})" for name, s in pairs)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a remedy: the known name that is most like a wrong one.

    Examples
    --------
    >>> nearest("rian", ["rain", "wet"])
    "did you mean 'rain'?"
    """
    near = get_close_matches(name, list(known), 1, 0.5)
    return f"did you mean {near[0]!r}?" if near else ""


def split_cards(cards: NamedCards) -> tuple[Names, list[int]]:
    """Check a mapping from names to numbers of states, or to their names; return the names and the numbers.

    Examples
    --------
    >>> split_cards({"rain": ["no", "yes"], "wet": 2})
    (Names: rain (no, yes), wet, [2, 2])
    """
    states: list[tuple[str, ...] | None] = []
    counts = []
    for name, given in cards.items():
        if not isinstance(name, str):
            raise InputError("cards", "names of variables, which are strings", repr(name), "or a list of numbers")
        argument = f"cards[{name!r}]"
        if isinstance(given, Sequence | np.ndarray):
            states.append(_state_names(given, argument))
            counts.append(len(states[-1] or ()))
        else:
            states.append(None)
            counts.append(whole_number(given, argument, 1, "or the names of its states in a list"))
    return Names([str(name) for name in cards], states), counts


def _state_names(given: Sequence[str], argument: str) -> tuple[str, ...]:
    expected = "the number of its states, or their names in a list"
    found = items(given, argument, expected)
    wrong = [s for s in found if not isinstance(s, str)]
    if wrong or not found:
        raise InputError(argument, expected, repr(wrong[0]) if wrong else "an empty list", "names are strings")
    if len(set(found)) < len(found):
        raise InputError(argument, "different names of states", f"{found!r:.60}")
    return tuple(map(str, found))


def names_for(given: NamedCards | Sequence[str], cards: IntArray) -> Names:
    """Check names for variables that have these cardinalities: a mapping as in `FactorGraph`, or names alone."""
    if isinstance(given, Mapping):
        names, counts = split_cards(given)
    else:
        listed = items(given, "names", "names of variables, or a mapping from them to the names of their states")
        names, counts = Names(_variable_names(listed), [None] * len(listed)), cards.tolist()
    if len(names.variables) != len(cards):
        raise InputError("names", f"one for each of {len(cards)} variables", f"{len(names.variables)}")
    for name, count, card in zip(names.variables, counts, cards.tolist(), strict=False):
        if count != card:
            raise InputError(f"names[{name!r}]", f"the {card} states of the variable", f"{count}")
    return names


def _variable_names(listed: Sequence[object]) -> list[str]:
    seen: set[str] = set()
    for name in listed:
        if not isinstance(name, str) or name in seen:
            raise InputError("names", "different strings", repr(name))
        seen.add(str(name))
    return [str(name) for name in listed]


def union_names(graphs: Sequence[FactorGraph]) -> Names | None:
    """Return the names of a disjoint union: none, unless all graphs have names."""
    known = [g.names for g in graphs]
    if not known or any(names is None for names in known):
        return None
    return Names(
        [name for names in known if names is not None for name in names.variables],
        [states for names in known if names is not None for states in names.states],
    )


def is_name(variable: object) -> bool:
    """Tell whether something is a name of a variable, or a name and a component."""
    if not isinstance(variable, tuple):
        return isinstance(variable, str)
    return len(variable) == 2 and isinstance(variable[0], str) and isinstance(variable[1], int | np.integer)


def variable_number(graph: FactorGraph, variable: VariableLike, argument: str) -> int:
    """Return the number of a variable that is given by number, name, or name and component.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> g = FactorGraph({"rain": 2, "wet": 2}, [("rain", "wet")])
    >>> variable_number(g, "wet", "i"), variable_number(g.repeat(2), ("wet", 1), "i")
    (1, 3)
    """
    if not isinstance(variable, str | tuple):
        found = whole_number(variable, argument)
        if found >= graph.n_variables:
            raise InputError(argument, f"a number below {graph.n_variables}, the number of variables", str(found))
        return found
    if not is_name(variable):
        raise InputError(argument, "a variable, or the pair of its name and component", repr(variable))
    name, component = (variable, None) if isinstance(variable, str) else variable
    if graph.names is None:
        remedy = "this graph has no names; with_names gives it some"
        raise UnknownNameError(argument, "the number of a variable", repr(variable), remedy)
    places = graph.names.places.get(name)
    if places is None:
        raise UnknownNameError(argument, "the name of a variable", repr(name), nearest(name, graph.names.places))
    if component is not None:
        places = [i for i in places if graph.variable_component[i] == component]
    if len(places) != 1:
        got = f"{variable!r}, which {len(places) or 'no'} variables have"
        remedy = f"({name!r}, component), with a component from 0 to {graph.n_components - 1}, names one"
        raise InputError(argument, "the name of one variable", got, remedy)
    return places[0]


def variable_numbers(graph: FactorGraph, variables: object, argument: str = "variables") -> IntArray:
    """Check a list of distinct variables, given by numbers or names."""
    if isinstance(variables, str):
        variables = [variables]
    if isinstance(variables, Sequence) and any(isinstance(v, str | tuple) for v in variables):
        variables = [variable_number(graph, v, argument) for v in variables]
    return variables_of(variables, graph.n_variables, argument)  # type: ignore[arg-type]


def scope_numbers(names: Names, scopes: Sequence[Sequence[VariableLike]]) -> list[list[int]]:
    """Replace the names in scopes by numbers."""
    found = []
    for scope in scopes:
        if isinstance(scope, str):
            raise InputError("scopes", "a sequence of tuples of variables", repr(scope), f"write ({scope!r},) for one")
        found.append([_scope_number(names, v) for v in scope] if isinstance(scope, Iterable) else scope)
    return found


def _scope_number(names: Names, variable: VariableLike) -> int:
    if not isinstance(variable, str):
        return variable  # type: ignore[return-value]  # a number, which is checked with the others
    if variable not in names.places:
        remedy = nearest(variable, names.places)
        raise UnknownNameError("scopes", "names of variables", repr(variable), remedy)
    return names.places[variable][0]


def evidence_numbers(graph: FactorGraph, evidence: EvidenceLike | None, argument: str = "evidence") -> dict[int, int]:
    """Check evidence, in which variables and states may be given by their names.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> evidence_numbers(FactorGraph({"rain": ["no", "yes"], "wet": 2}, []), {"wet": 0, "rain": "yes"})
    {0: 1, 1: 0}
    """
    if not isinstance(evidence, Mapping) or not _has_names(evidence):
        return evidence_dict(evidence, graph.cards, argument)  # type: ignore[arg-type]
    plain: dict[int, int] = {}
    for key, value in evidence.items():
        variable = variable_number(graph, key, argument)
        where = f"{argument}[{key!r}]"
        state = value if graph.names is None else graph.names.state(variable, value, where)
        number = whole_number(state, where)
        if number >= graph.cards[variable]:
            raise InputError(where, f"a state from 0 to {graph.cards[variable] - 1}", str(number))
        if plain.setdefault(variable, number) != number:
            raise InputError(where, "one state of a variable", "two", "give each variable once")
    return dict(sorted(plain.items()))


def _has_names(evidence: EvidenceLike) -> bool:
    kinds = {*map(type, evidence), *map(type, evidence.values())}
    return any(issubclass(kind, str | tuple) for kind in kinds)


def name_of(graph: FactorGraph, variable: int) -> str:
    """Return how messages call a variable: by its name, or its number."""
    return str(variable) if graph.names is None else repr(graph.names.variables[variable])


def labelled(graph: FactorGraph, states: Sequence[int] | IntArray) -> dict[str | tuple[str, int] | int, StateLike]:
    """Return an assignment by names: each variable with the name of its state, None where it is undecided (-1).

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> labelled(FactorGraph({"rain": ["no", "yes"], "wet": 2}, []), [1, 0])
    {'rain': 'yes', 'wet': 0}
    """
    numbers = np.asarray(states).tolist()
    if graph.names is None:
        return dict(enumerate(numbers))
    keys = variable_keys(graph)
    known = zip(keys, graph.names.states, numbers, strict=True)
    return {key: state if labels is None or state < 0 else labels[state] for key, labels, state in known}


def variable_keys(graph: FactorGraph) -> list[str | tuple[str, int] | int]:
    """Return what names each variable without doubt: its name, name and component, or number."""
    if graph.names is None:
        return list(range(graph.n_variables))
    if graph.n_components == 1 and len(graph.names.places) == graph.n_variables:
        return list(graph.names.variables)
    if graph.n_components == 1:
        return list(range(graph.n_variables))
    return list(zip(graph.names.variables, graph.variable_component.tolist(), strict=True))
