"""The probe: a minimum, Newton's method on two classes, vectors that say nothing, balanced accuracy
by hand.
"""

import numpy as np
import pytest

from headwise.evaluation.linear_probe import PENALTY, LinearProbe, fit_probe, score_classes


def _examples(num_classes: int) -> tuple[np.ndarray, list[str]]:
    generator = np.random.default_rng(7)
    classes = [str(number) for number in generator.integers(num_classes, size=97) for _ in [0]]
    classes[:29] = ["0"] * 29
    centres = generator.normal(size=(num_classes, 5))
    vectors = 3.0 + 2.0 * (centres[[int(one) for one in classes]] + generator.normal(size=(97, 5)))
    return vectors, classes


def _standardised(probe: LinearProbe, vectors: np.ndarray) -> np.ndarray:
    return (vectors - probe.mean) / probe.scale


@pytest.mark.parametrize("num_classes", [2, 3, 5])
def test_the_gradient_is_zero_at_the_answer(num_classes: int) -> None:
    vectors, classes = _examples(num_classes)
    probe = fit_probe(vectors, classes)
    x = _standardised(probe, vectors)
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(0), 1)
    scores = x @ probe.weight.T + probe.bias
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    wanted = np.array([[float(name == one) for name in probe.names] for one in classes])
    shares = np.array([1 / (num_classes * classes.count(one)) for one in classes])
    slope = shares[:, None] * (chances - wanted)
    np.testing.assert_allclose(slope.T @ x + PENALTY * probe.weight, 0, atol=1e-6)
    np.testing.assert_allclose(slope.sum(0), 0, atol=1e-6)


def test_two_classes_by_newtons_method() -> None:
    """Of two classes the rows of W are opposite; v = W₀ - W₁ minimises the logistic loss with λ/4
    |v|².
    """
    vectors, classes = _examples(2)
    probe = fit_probe(vectors, classes)
    x = np.c_[_standardised(probe, vectors), np.ones(len(classes))]
    sign = np.array([1.0 if one == probe.names[0] else -1.0 for one in classes])
    shares = np.array([1 / (2 * classes.count(one)) for one in classes])
    ridge = np.diag([PENALTY / 2] * 5 + [0.0])
    v = np.zeros(6)
    for _ in range(50):
        chance = 1 / (1 + np.exp(sign * (x @ v)))
        slope = -(x.T @ (shares * sign * chance)) + ridge @ v
        curve = (x * (shares * chance * (1 - chance))[:, None]).T @ x + ridge
        v -= np.linalg.solve(curve, slope)
    np.testing.assert_allclose(probe.weight[0] - probe.weight[1], v[:5], atol=1e-5)
    assert probe.bias[0] - probe.bias[1] == pytest.approx(v[5], abs=1e-5)


def test_equal_vectors_can_only_name_the_most_frequent_class() -> None:
    vectors = np.full((11, 3), 0.1, dtype=np.float32)
    classes = ["rare"] * 3 + ["usual"] * 8
    found = fit_probe(vectors, classes).predict(vectors)
    assert set(found) == {"usual"}
    score = score_classes(classes, found)
    assert score.balanced == 0.5
    assert score.accuracy == pytest.approx(8 / 11)


def test_what_a_line_divides_is_told_apart() -> None:
    vectors = np.array([[0.0, 5.0], [1.0, 4.0], [0.0, -5.0], [1.0, -4.0]])
    classes = ["up", "up", "down", "down"]
    assert fit_probe(vectors, classes).predict(vectors) == classes


def test_balanced_accuracy_by_hand() -> None:
    score = score_classes(["a", "a", "a", "b"], ["a", "a", "b", "b"])
    assert score.accuracy == 0.75
    assert score.balanced == pytest.approx((2 / 3 + 1) / 2)
