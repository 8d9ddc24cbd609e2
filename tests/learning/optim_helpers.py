"""Functions to minimise, each from x to (value, gradient)."""

import numpy as np

WHOLE = ["lbfgs", "owlqn", "steepest"]
BATCHED = ["sgd", "adagrad", "adam"]


def rosenbrock(x):
    a, b = x[:-1], x[1:]
    value = (100 * (b - a**2) ** 2 + (1 - a) ** 2).sum()
    gradient = np.zeros_like(x)
    gradient[:-1] = -400 * a * (b - a**2) - 2 * (1 - a)
    gradient[1:] += 200 * (b - a**2)
    return value, gradient


class Quadratic:
    """½ (x - centre)ᵀ A (x - centre), A with the given eigenvalues."""

    def __init__(self, eigenvalues, seed=0):
        rng = np.random.default_rng(seed)
        n = len(eigenvalues)
        basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
        self.matrix = basis * np.asarray(eigenvalues) @ basis.T
        self.centre = rng.normal(size=n)

    def __call__(self, x):
        gradient = self.matrix @ (x - self.centre)
        return float((x - self.centre) @ gradient) / 2, gradient


class Logistic:
    """Σ_i log(1 + exp(-y_i w·x_i)) + l2 ||w||²; a batch has its share of the penalty."""

    def __init__(self, n=60, features=8, l2=0.5, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, features)) * np.linspace(0.5, 2, features)
        self.y = np.where(self.X @ rng.normal(size=features) + rng.normal(size=n) > 0, 1.0, -1.0)
        self.l2, self.n = l2, n

    def on(self, indices, w):
        X, y = self.X[indices], self.y[indices]
        margins = y * (X @ w)
        share = self.l2 * len(y) / self.n
        slopes = -y * np.exp(-np.logaddexp(0, margins))
        return np.logaddexp(0, -margins).sum() + share * w @ w, X.T @ slopes + 2 * share * w

    def __call__(self, w):
        return self.on(np.arange(self.n), w)


def proximal_gradient(f, x, l1, step, iterations):
    """Iterative soft thresholding: the plainest method for f + Σ l1_i |x_i|."""
    for _ in range(iterations):
        moved = x - step * f(x)[1]
        x = np.sign(moved) * np.maximum(np.abs(moved) - step * l1, 0)
    return x


def same_bits(a, b):
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def same_states(a, b):
    """Whether two states agree in every bit of every field."""
    from isinglass.learning.optimizers.state import packed

    a, b = packed(a), packed(b)
    return list(a) == list(b) and all(a[k].dtype == b[k].dtype and same_bits(a[k], b[k]) for k in a)
