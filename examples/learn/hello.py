"""
Hello: rain, a sprinkler and wet grass
======================================

A first model with names: three variables, their tables, what is believed before and
after something is seen, and how one cause explains another away.
"""

# %%
# **The model.** A model is a graph and a table for each of its factors. It rains in one
# night of five, and the sprinkler runs in two of five. Either of them makes the grass
# wet, nearly always. Circles are variables, squares are factors.
import isinglass as ig

graph = ig.FactorGraph(
    {"rain": ["no", "yes"], "sprinkler": ["off", "on"], "grass": ["dry", "wet"]},
    scopes=[("rain",), ("sprinkler",), ("rain", "sprinkler", "grass")],
)
model = ig.Potentials.from_values(
    graph,
    [
        [0.8, 0.2],  # rain: no, yes
        [0.6, 0.4],  # sprinkler: off, on
        [
            [[0.99, 0.01], [0.10, 0.90]],
            [[0.15, 0.85], [0.01, 0.99]],
        ],  # grass: dry, wet; by rain and sprinkler
    ],
)
model

# %%
# **Beliefs.** `ig.infer` computes the probability of each state of each variable. A
# graph as small as this is solved exactly, and the result says so.
before = ig.infer(model)
print(before.info)
before.to_frame()

# %%
# **Evidence.** The grass is wet. Did it rain? Each circle is filled by its belief; the
# thick ring is what was seen.
wet = ig.infer(model, evidence={"grass": "wet"})
print("P(rain)                =", before.variable("rain")[1].round(3))
print("P(rain | grass is wet) =", wet.variable("rain")[1].round(3))
ig.viz.draw(wet, title="the grass is wet")

# %%
# **Explaining away.** Now we also see that the sprinkler was on. It explains the wet
# grass, so that rain becomes less probable again. The two causes were independent;
# given wet grass they are negatively correlated.
both = ig.infer(model, evidence={"grass": "wet", "sprinkler": "on"})
print("P(rain | grass is wet, sprinkler on) =", both.variable("rain")[1].round(3))
for name, result in [("before", before), ("given wet grass", wet)]:
    correlation = result.correlation("rain", "sprinkler")
    print(f"correlation of rain and sprinkler, {name}: {correlation:.2f}")

# %%
# **Questions.** A result answers others, too: conditional tables, mutual information,
# the most probable assignment.
print(
    "P(grass | rain), rain in rows:\n",
    before.conditional("grass", given="rain").round(3),
)
print(
    "rain tells about the grass:",
    f"{before.mutual_information('rain', 'grass'):.3f} nats",
)
print(
    "most probable, given wet grass:",
    ig.map_assignment(model, evidence={"grass": "wet"}).labels,
)

# %%
# **Mistakes are named.**
try:
    ig.infer(model, evidence={"gras": "wet"})
except ig.InputError as error:
    print(error)
