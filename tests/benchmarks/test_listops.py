"""Values by an independent evaluator that reads the tokens; shape of the trees; the rules of Long
Range Arena."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.listops import (
    CLOSE,
    FIRST_DIGIT,
    FIRST_OPERATOR,
    MAX_DEPTH,
    OPERATORS,
    PAD,
    ListOps,
    generate,
)


@pytest.fixture(scope="module")
def sample() -> ListOps:
    return generate(307, seed=7, part="test")


def evaluate(tokens: list[int]) -> tuple[int, int]:
    """Value and depth, by a stack."""
    stack: list[list[int]] = [[]]
    operators: list[str] = []
    deepest = 1
    for token in tokens:
        if token >= FIRST_DIGIT:
            stack[-1].append(token - FIRST_DIGIT)
            deepest = max(deepest, len(stack))
        elif token >= FIRST_OPERATOR:
            operators.append(OPERATORS[token - FIRST_OPERATOR])
            stack.append([])
        else:
            assert token == CLOSE
            arguments = sorted(stack.pop())
            assert 2 <= len(arguments) <= 10
            half = len(arguments) // 2
            middle = (
                arguments[half]
                if len(arguments) % 2
                else (arguments[half - 1] + arguments[half]) / 2
            )
            results = {
                "MIN": arguments[0],
                "MAX": arguments[-1],
                "MED": int(middle),
                "SM": sum(arguments) % 10,
            }
            stack[-1].append(results[operators.pop()])
    assert len(stack) == 1
    assert len(stack[0]) == 1
    return stack[0][0], deepest


def test_values_are_those_of_another_evaluator(sample: ListOps) -> None:
    for number in range(len(sample)):
        value, depth = evaluate(sample.expression(number).tolist())
        assert value == sample.values[number]
        assert depth <= MAX_DEPTH


def test_a_hand_made_expression_is_read_as_meant() -> None:
    # [MAX 2 9 [MED 4 7 ] 0 ]: the median of 4 and 7 is 5.5, cut to 5.
    assert evaluate([3, 8, 15, 4, 10, 13, 1, 6, 1]) == (9, 3)
    assert evaluate([4, 10, 13, 1]) == (5, 2)


def test_lengths_and_differences(sample: ListOps) -> None:
    lengths = np.diff(sample.offsets)
    assert lengths.min() > 500
    assert lengths.max() < 2000
    assert len({sample.expression(number).tobytes() for number in range(len(sample))}) == len(
        sample
    )


def test_the_same_key_gives_the_same_expressions(sample: ListOps, tmp_path: Path) -> None:
    again = generate(11, seed=7, part="test")
    assert (again.tokens == sample.tokens[: len(again.tokens)]).all()
    other = generate(11, seed=7, part="train")
    assert again.expression(0).tolist() != other.expression(0).tolist()
    again.save(tmp_path / "listops.npz")
    loaded = ListOps.load(tmp_path / "listops.npz")
    assert (loaded.tokens == again.tokens).all()
    assert (loaded.values == again.values).all()
    rows = again.rows(np.array([3, 5]), 2003)
    assert rows.shape == (2, 2003)
    assert rows[0, -1] == PAD
    assert (rows[1, : len(again.expression(5))] == again.expression(5)).all()


def test_short_ones_are_as_a_recursive_generator_makes_them() -> None:
    """Mean length and share of each value among trees of 3 to 40 tokens, against the rules written
    as a recursion."""
    generator = np.random.default_rng(3)

    def grow(depth: int) -> list[int]:
        if depth == MAX_DEPTH or generator.random() > 0.25:
            return [FIRST_DIGIT + int(generator.integers(10))]
        inside = [token for _ in range(int(generator.integers(2, 11))) for token in grow(depth + 1)]
        return [FIRST_OPERATOR + int(generator.integers(4)), *inside, CLOSE]

    trees = [tree for tree in (grow(1) for _ in range(5000)) if 3 < len(tree) < 40]
    ours = generate(1500, seed=1, part="short", min_length=3, max_length=40)
    theirs = [len(tree) for tree in trees]
    assert np.diff(ours.offsets).mean() == pytest.approx(
        np.mean(theirs), abs=4 * np.std(theirs) / len(theirs) ** 0.5
    )
    shares = np.bincount([evaluate(tree)[0] for tree in trees], minlength=10) / len(trees)
    assert np.bincount(ours.values, minlength=10) / len(ours) == pytest.approx(shares, abs=0.06)
