"""
Belief propagation, step by step
================================

Messages travel through a small network, one step an iteration, and the beliefs follow
them. First on a tree, where the answer is exact, then on a loop, where it is not.
"""

# sphinx_gallery_thumbnail_number = 2
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig

# %%
# A rumour on a chain
# -------------------
#
# Five people stand in a line. Each of them believes or doubts a rumour, and tends to
# agree with the neighbours: equal opinions are three times as likely as different ones.
# Only Ann has heard something herself, 4 : 1 for the rumour.
people = ["Ann", "Bob", "Cleo", "Dan", "Eve"]
opinions = ["doubts", "believes"]
graph = ig.FactorGraph(
    dict.fromkeys(people, opinions),
    scopes=[("Ann",), *pairwise(people)],
)
agree = [[3.0, 1.0], [1.0, 3.0]]
p = ig.Potentials.from_values(graph, [[1.0, 4.0]] + 4 * [agree])
ig.viz.draw(p)

# %%
# Every factor sends a message to each of its variables: what it thinks of the states,
# given what came in from the other side. The belief of a variable is the product of its
# messages, normalised. With ``schedule="flooding"`` all messages are computed at once,
# from those of the iteration before. `ig.trace` keeps all of it.
#
# Move the slider, or press *play*. Arrows are messages, orange where they have changed
# in this iteration.
t = ig.trace(p, "bp", iterations=6, schedule="flooding")
t

# %%
# The news takes four iterations from Ann to Eve, and loses strength on the way. After
# that nothing changes any more.
fig, ax = plt.subplots(figsize=(6, 3.2))
for name in people:
    ax.plot(t.variable(name)[:, 1], "o-", label=name)
ax.set(xlabel="iteration", ylabel="belief in the rumour", ylim=(0.45, 0.9))
ax.legend(frameon=False, ncols=5, loc="upper center")

# %%
# A chain is a tree, so these are the exact marginals.
exact = ig.infer(p, "exact")
for name in people:
    last, right = t.variable(name)[-1, 1], exact.variable(name)[1]
    print(f"{name:5} step by step {last:.6f}   exact {right:.6f}")

# %%
# A loop
# ------
#
# Now Eve also talks to Ann. A message can go round the loop and come back as if it were
# new information. Belief propagation counts it again, and its beliefs become
# overconfident.
ring = ig.FactorGraph(
    dict.fromkeys(people, opinions),
    scopes=[("Ann",), *pairwise(people), ("Eve", "Ann")],
)
strong = [[6.0, 1.0], [1.0, 6.0]]
q = ig.Potentials.from_values(ring, [[1.0, 4.0]] + 5 * [strong])
loop = ig.trace(q, "bp", iterations=15, schedule="flooding")
loop

# %%
truth = ig.infer(q, "exact")
for name in people:
    last, right = loop.variable(name)[-1, 1], truth.variable(name)[1]
    print(f"{name:5} belief propagation {last:.3f}   exact {right:.3f}")
print(f"log Z: belief propagation {loop.log_z[-1]:.4f}, exact {truth.log_z:.4f}")

# %%
# It has converged: residuals fall by a constant factor an iteration. Convergence says
# nothing about the error.
fig, ax = plt.subplots(figsize=(6, 3))
ax.semilogy(np.arange(1, 16), loop.residuals, "o-", label="loop")
ax.semilogy(
    np.arange(1, 7),
    np.maximum(t.residuals, 1e-17),
    "s-",
    label="chain (0 after four iterations)",
)
ax.set(xlabel="iteration", ylabel="largest change of a message")
ax.legend(frameon=False)

# %%
# The numbers are there as tables, too: all beliefs, and all messages.
loop.messages_frame().query("iteration == 15 and state == 'believes'").round(4)
