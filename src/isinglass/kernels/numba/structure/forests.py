"""Forests with disjoint sets, which are trees of parents: the loops of `graph.forests.{disjoint_sets,induced}`."""

from __future__ import annotations

from isinglass.runtime.compilation.jit import compiled, inner


@inner
def root_of(parent, i):
    """Return the root of a member's tree; paths become shorter on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def take_acyclic(first, variables, order, parent, taken):
    """Take scopes in an order, each if its variables lie in different trees so far."""
    for f in order:
        cyclic = False
        for slot in range(first[f], first[f + 1]):
            root = root_of(parent, variables[slot])
            for other in range(first[f], slot):
                cyclic |= root_of(parent, variables[other]) == root
        if not cyclic:
            taken[f] = True
            for slot in range(first[f] + 1, first[f + 1]):
                parent[root_of(parent, variables[slot])] = root_of(parent, variables[first[f]])


@inner
def may_join(v, near, factor, inside, count, parent, mark):
    """Tell whether a variable closes no cycle: every factor has at most one member, and all are of different trees."""
    for e in range(near.first[v], near.first[v + 1]):
        if count[factor[e]] > 1:
            return False
        if count[factor[e]] == 1:
            for r in range(near.rest[e], near.rest[e + 1]):
                if inside[near.variable[r]]:
                    root = root_of(parent, near.variable[r])
                    if mark[root] == v:
                        return False
                    mark[root] = v
    return True


@compiled
def choose_forest(order, near, factor, inside, count, parent, mark):
    """Add the variables in sequence, each unless it closes a cycle; `count` has the members of each factor."""
    for k in range(len(order)):
        v = order[k]
        if may_join(v, near, factor, inside, count, parent, mark):
            for e in range(near.first[v], near.first[v + 1]):
                for r in range(near.rest[e], near.rest[e + 1]):
                    if inside[near.variable[r]]:
                        parent[root_of(parent, near.variable[r])] = v
                count[factor[e]] += 1
            inside[v] = True


@compiled
def order_forest(order, near, factor, inside, count, seen, stack, members, above):
    """List the members of a forest, each after its parent, and the place of that (-1: a root); return how many."""
    taken = 0
    for k in range(len(order)):
        if not inside[order[k]] or seen[order[k]]:
            continue
        seen[order[k]] = True
        stack[0], above[order[k]] = order[k], -1
        height = 1
        while height:
            height -= 1
            v = stack[height]
            members[taken] = v
            for e in range(near.first[v], near.first[v + 1]):
                if count[factor[e]] == 2:
                    for r in range(near.rest[e], near.rest[e + 1]):
                        w = near.variable[r]
                        if inside[w] and not seen[w]:
                            seen[w], above[w] = True, v
                            stack[height] = w
                            height += 1
            taken += 1
    return taken
