import subprocess
import sys

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from headwise.randomness import numpy_generator, seed_from, torch_generator

KEYS = st.lists(
    st.integers() | st.text(st.characters(exclude_characters="\x1f", exclude_categories=["Cs"])),
    max_size=4,
)


@given(KEYS, KEYS)
def test_the_same_key_gives_the_same_stream_and_another_key_another(
    left: list[int | str], right: list[int | str]
) -> None:
    assert (seed_from(*left) == seed_from(*right)) == (left == right)
    assert 0 <= seed_from(*left) < 2**63


def test_a_number_and_its_word_are_different_keys() -> None:
    assert seed_from(1, 23) != seed_from(12, 3) != seed_from("12", 3)


def test_the_stream_does_not_depend_on_the_process_or_on_global_seeds() -> None:
    code = (
        "from headwise.randomness import numpy_generator; print(numpy_generator(7, "
        "'order').integers(2**31, size=5).tolist())"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    torch.manual_seed(3)
    assert str(numpy_generator(7, "order").integers(2**31, size=5).tolist()) == elsewhere.strip()
    before = torch.get_rng_state()
    torch.rand(3, generator=torch_generator(7, "weights"))
    assert torch.equal(torch.get_rng_state(), before)


def test_streams_of_neighbouring_keys_are_unrelated() -> None:
    draws = np.array([numpy_generator(seed, "x").normal(size=2000) for seed in range(11)])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 0.12  # five standard errors of 2000 unrelated draws
    assert torch.equal(
        torch.rand(5, generator=torch_generator(1)), torch.rand(5, generator=torch_generator(1))
    )
