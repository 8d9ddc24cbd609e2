"""
Fill in lost pixels: a Potts model
==================================

Two thirds of the pixels of a photograph in six colours are lost. Neighbours mostly have
the same colour: that is all the model knows, and enough to fill most of them in.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import distance_transform_edt
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

import isinglass as ig

# %%
# **Data.** A photograph of scikit-learn, smaller and in six colours. A pixel is seen
# with a probability of one third.
photo = load_sample_image("flower.jpg")[:420:6, 60:600:6] / 255
height, width = photo.shape[:2]
clusters = KMeans(6, n_init=1, random_state=0).fit(photo.reshape(-1, 3))
truth, colours = clusters.labels_.reshape(height, width), clusters.cluster_centers_
rng = np.random.default_rng(0)
seen = rng.random(truth.shape) < 1 / 3
print(f"{height} x {width} pixels, {np.mean(seen):.0%} seen")

# %%
# **The model.** A Potts model: a table for each pair of neighbours, with 1.2 nats for
# equal colours. Pixels that are seen are evidence; the others have no input at all.
graph = ig.grid_graph(height, width, 6)
tables = [np.zeros((height * width, 6)), 1.2 * np.eye(6)[None]]
places = np.flatnonzero(seen)
evidence = dict(zip(places.tolist(), truth.ravel()[places].tolist(), strict=True))
model = ig.Potentials.from_groups(graph, tables).with_evidence(evidence)

# %%
# **Three ways.** The colour of the nearest pixel that is seen; the most probable
# picture; the most probable colour of each pixel, by belief propagation, which also
# says how sure it is.
nearest = distance_transform_edt(~seen, return_distances=False, return_indices=True)
filled = {"nearest seen pixel": truth[tuple(nearest)]}
best = ig.map_assignment(model, "expansion")
filled["most probable picture"] = np.reshape(best.states, truth.shape)
r = ig.infer(model, "bp", damping=0.3, max_iter=100, tol=1e-3)
beliefs = np.array([r.variable(i) for i in range(height * width)])
filled["most probable colours"] = beliefs.argmax(axis=1).reshape(truth.shape)
for name, picture in filled.items():
    print(f"{name:22} {np.mean((picture != truth)[~seen]):.1%} of the lost are wrong")

# %%
# The most probable picture is no better than the nearest pixel: it prefers large areas
# with straight borders. Marginals decide each pixel by itself and are right more
# often. Look at the last picture: what is dark is uncertain, the borders of areas.
figure, axes = plt.subplots(2, 3, figsize=(9, 4.9), layout="constrained")
gaps = np.where(seen[..., None], colours[truth], 1.0)
shown = {"truth": colours[truth], "seen": gaps}
shown |= {name: colours[picture] for name, picture in filled.items()}
shown["largest marginal"] = beliefs.max(axis=1).reshape(truth.shape)
for ax, (name, picture) in zip(axes.flat, shown.items(), strict=True):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[], title=name)
