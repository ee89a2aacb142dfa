"""The fewest tokens, against the equation they solve."""

import numpy as np

from headwise.decoding.rules.needed_tokens import IMPOSSIBLE, count_needed
from headwise.decoding.rules.token_effects import TokenEffects
from headwise.randomness import numpy_generator


def test_needs_solve_their_equation():
    """need = 0 where the text may end, else 1 + the least need after a token: the smallest
    solution, found by repetition."""
    for number in range(40):
        chance = numpy_generator(f"needed tokens {number}")
        num_states, num_classes, num_required = (
            chance.integers(2, 30),
            chance.integers(1, 6),
            chance.integers(0, 5),
        )
        all_required = (1 << num_required) - 1
        moves = chance.integers(num_states + 1, size=(num_states + 1, num_classes))
        found = chance.integers(all_required + 1, size=moves.shape) * (
            chance.random(moves.shape) < 0.3
        )
        moves[-1], found[-1] = num_states, 0
        at_end = chance.integers(all_required + 1, size=num_states) * (
            chance.random(num_states) < 0.3
        )
        at_end[chance.random(num_states) < 0.2] = all_required + 1
        effects = TokenEffects(
            np.arange(num_classes), moves.astype(np.int16), found.astype(np.uint8)
        )
        expected = np.full((num_states + 1, all_required + 1), IMPOSSIBLE)
        while True:
            before = expected.copy()
            for state in range(num_states):
                for written in range(all_required + 1):
                    least = 1 + min(before[moves[state], found[state] | written])
                    may_end = (
                        at_end[state] <= all_required and at_end[state] | written == all_required
                    )
                    expected[state, written] = 0 if may_end else min(least, IMPOSSIBLE)
            if (expected == before).all():
                break
        assert (count_needed(at_end, effects, all_required) == expected).all()
