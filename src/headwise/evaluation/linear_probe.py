"""Trains a linear probe: how well can a linear classifier tell classes apart by given vectors?

    minimise  Σ_i w_i · -log softmax(W x_i + b)_{y_i}  +  λ/2 |W|²
    w_i = 1 / (number of classes · size of the class), so that Σ w = 1

x_i is a vector and y_i its class. Every class has the same weight, whatever its size, and features
are standardised on the training data. The problem is convex: L-BFGS on all examples in double
precision finds its only minimum, the same on every run. If all vectors are equal, the probe
predicts the most frequent class.

    accuracy            share of all examples that are correct
    balanced accuracy   mean over classes of that share: 1/classes for a random guess

Papers: Alain & Bengio 2017; Hewitt & Liang 2019 (what a probe can show). Tested against: zero
gradient at the solution, Newton's method on two classes, equal vectors, separable classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

PENALTY = 0.01
_STEPS = 200


@dataclass(frozen=True)
class LinearProbe:
    """A linear classifier; `names` are the classes, the most frequent first."""

    names: tuple[str, ...]
    mean: Float[np.ndarray, " dim"]
    scale: Float[np.ndarray, " dim"]
    weight: Float[np.ndarray, "class dim"]
    bias: Float[np.ndarray, " class"]

    def predict(self, vectors: Float[np.ndarray, "example dim"]) -> list[str]:
        """The class of each vector; ties go to the more frequent class."""
        scores = ((vectors - self.mean) / self.scale) @ self.weight.T + self.bias
        # Equal but for rounding is equal.
        return [self.names[number] for number in np.round(scores, 9).argmax(1)]


@dataclass(frozen=True)
class ProbeScore:
    """How often the probe was correct."""

    accuracy: float
    balanced: float


def fit_probe(
    vectors: Float[np.ndarray, "example dim"], classes: Sequence[str], *, penalty: float = PENALTY
) -> LinearProbe:
    """The minimum of the objective above."""
    names, numbers = order_classes(classes)
    x = vectors.astype(np.float64)
    mean, scale = x.mean(0), x.std(0)
    scale[scale < 1e-9 * (1 + np.abs(mean))] = 1.0
    given = torch.from_numpy((x - mean) / scale)
    wanted = torch.from_numpy(numbers)
    shares = 1.0 / (len(names) * torch.bincount(wanted).double())[wanted]
    weight = torch.zeros(len(names), x.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(len(names), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS(
        [weight, bias],
        max_iter=_STEPS,
        tolerance_grad=1e-7,
        tolerance_change=1e-12,
        line_search_fn="strong_wolfe",
    )

    def measure() -> torch.Tensor:
        search.zero_grad()
        loss = _loss(given, wanted, shares, weight, bias) + penalty / 2 * weight.square().sum()
        loss.backward()
        return loss

    search.step(measure)
    return LinearProbe(names, mean, scale, weight.detach().numpy(), bias.detach().numpy())


def _loss(
    given: torch.Tensor,
    wanted: torch.Tensor,
    shares: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
) -> torch.Tensor:
    scores = (given @ weight.T + bias).log_softmax(1)
    return -(scores.gather(1, wanted[:, None])[:, 0] * shares).sum()


def order_classes(classes: Sequence[str]) -> tuple[tuple[str, ...], Int[np.ndarray, " example"]]:
    """Class names, the most frequent first, and the class number of each example."""
    counts = dict.fromkeys(sorted(set(classes)), 0)
    for name in classes:
        counts[name] += 1
    names = tuple(sorted(counts, key=lambda name: -counts[name]))
    numbers = {name: number for number, name in enumerate(names)}
    return names, np.array([numbers[name] for name in classes])


def score_classes(gold: Sequence[str], found: Sequence[str]) -> ProbeScore:
    """Both accuracies; classes are those of `gold`."""
    assert gold, "of no answers there is no share"
    right = np.array([one == other for one, other in zip(gold, found, strict=True)])
    of_class = np.array(gold)
    shares = [right[of_class == name].mean() for name in sorted(set(gold))]
    return ProbeScore(float(right.mean()), float(np.mean(shares)))
