"""
A Bayesian network from a BIF file
==================================

The network "Asia" (Lauritzen and Spiegelhalter 1988) is written and read in the BIF
format and asked what a doctor would ask: how probable each disease is, which question
or examination would tell most, and what explains all that was seen.
"""

# %%
# **The file.** BIF is a text format that most programs for Bayesian networks read and
# write. The diseases are tuberculosis, lung cancer and bronchitis; an X-ray cannot tell
# the first two apart.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig

TEXT = """
network asia { }
variable asia { type discrete [ 2 ] { no, yes }; }
variable smoke { type discrete [ 2 ] { no, yes }; }
variable tub { type discrete [ 2 ] { no, yes }; }
variable lung { type discrete [ 2 ] { no, yes }; }
variable bronc { type discrete [ 2 ] { no, yes }; }
variable either { type discrete [ 2 ] { no, yes }; }
variable xray { type discrete [ 2 ] { no, yes }; }
variable dysp { type discrete [ 2 ] { no, yes }; }
probability ( asia ) { table 0.99, 0.01; }
probability ( smoke ) { table 0.5, 0.5; }
probability ( tub | asia ) { (no) 0.99, 0.01; (yes) 0.95, 0.05; }
probability ( lung | smoke ) { (no) 0.99, 0.01; (yes) 0.9, 0.1; }
probability ( bronc | smoke ) { (no) 0.7, 0.3; (yes) 0.4, 0.6; }
probability ( either | lung, tub ) {
  (no, no) 1, 0; (no, yes) 0, 1; (yes, no) 0, 1; (yes, yes) 0, 1; }
probability ( xray | either ) { (no) 0.95, 0.05; (yes) 0.02, 0.98; }
probability ( dysp | bronc, either ) {
  (no, no) 0.9, 0.1; (no, yes) 0.3, 0.7; (yes, no) 0.2, 0.8; (yes, yes) 0.1, 0.9; }
"""
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "asia.bif")
    path.write_text(TEXT)
    network = ig.read_bif(path)

network

# %%
# **Who coughs?** The network is like any other model: evidence goes by name. A patient
# is short of breath (``dysp``); then we learn that he smokes; then the X-ray shows a
# shadow; at last that he was in Asia.
diseases = ["tub", "lung", "bronc"]
story = {
    "nothing known": {},
    "short of breath": {"dysp": "yes"},
    "... a smoker": {"dysp": "yes", "smoke": "yes"},
    "... shadow in the X-ray": {"dysp": "yes", "smoke": "yes", "xray": "yes"},
    "... was in Asia": {"dysp": "yes", "smoke": "yes", "xray": "yes", "asia": "yes"},
}
beliefs = {name: ig.infer(network, evidence=seen) for name, seen in story.items()}
chances = np.array([[r.variable(d)[1] for d in diseases] for r in beliefs.values()])

figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
places = np.arange(len(story))[::-1]
for k, (disease, colour) in enumerate(
    zip(diseases, ["#e8820c", "#b2182b", "#1f5fa8"], strict=True)
):
    ax.barh(places + 0.25 - 0.25 * k, chances[:, k], 0.23, color=colour, label=disease)
    for place, chance in zip(places, chances[:, k], strict=True):
        ax.text(
            chance + 0.01,
            place + 0.25 - 0.25 * k,
            f"{chance:.2f}",
            va="center",
            fontsize=8,
        )
ax.set(yticks=places, yticklabels=list(story), xlim=(0, 1), xlabel="probability")
ax.legend(frameon=False, loc="lower right")

# %%
# **What to ask next?** For a patient who is short of breath, the question that tells
# most about lung cancer is the one with the greatest mutual information.
r = beliefs["short of breath"]
for about in ["lung", "bronc"]:
    worth = {
        ask: float(r.mutual_information(ask, about))
        for ask in ["asia", "smoke", "xray"]
    }
    print(
        f"about {about:5}:",
        ", ".join(f"{ask} {nats:.4f}" for ask, nats in worth.items()),
        "nats",
    )

# %%
# **The best explanation.** The most probable state of each variable by itself need not
# be the most probable assignment of all: ``map_assignment`` finds the latter, and
# ``n_best`` those that follow. Numbers are probabilities of all eight states; the names
# are those of the variables that are ``yes``.
seen = {"dysp": "yes", "xray": "yes"}
print(ig.map_assignment(network, evidence=seen).labels)
for found in ig.n_best(network, 3, evidence=seen):
    yes = [name for name, state in found.labels.items() if state == "yes"]
    print(f"{np.exp(found.score):.4f}", " ".join(yes))

# %%
# **What the graph says without numbers.** Smoking and tuberculosis are independent, but
# not once the X-ray is known: it is a common consequence. The moral graph is what
# inference works on.
print("smoke and tub independent:", ig.d_separated(network, "smoke", "tub"))
print(
    "... given the X-ray:      ", ig.d_separated(network, "smoke", "tub", given="xray")
)
ig.viz.draw(
    beliefs["... shadow in the X-ray"],
    title="smoker, short of breath, shadow in the X-ray",
)
