"""Masks as values: tables written out by hand, and conjunctions."""

import torch

from headwise.attention.masks import (
    Causal,
    Explicit,
    causal,
    everything,
    explicit,
    padding,
    segments,
    window,
)
from headwise.randomness import torch_generator

CPU = torch.device("cpu")


def table(text: str) -> torch.Tensor:
    """'x' may look, '.' may not; one line a query."""
    return torch.tensor([[sign == "x" for sign in line] for line in text.split()])


def test_everything_needs_no_table() -> None:
    assert everything().dense(2, 3, CPU) is None


def test_causal() -> None:
    assert causal().dense(3, 3, CPU)[0, 0].equal(table("x.. xx. xxx"))
    assert causal(2).dense(3, 5, CPU)[0, 0].equal(table("xxx.. xxxx. xxxxx"))
    assert causal().dense(2, 5, CPU)[0, 0].equal(table("x.... xx..."))


def test_window() -> None:
    assert window(1, 1).dense(3, 5, CPU)[0, 0].equal(table("xx... xxx.. .xxx."))
    assert window(2, 0, offset=1).dense(3, 5, CPU)[0, 0].equal(table("xx... xxx.. .xxx."))


def test_padding() -> None:
    real = table("xx. xxx")
    dense = padding(real).dense(5, 3, CPU)
    assert dense.shape == (2, 1, 1, 3)
    assert dense[:, 0, 0].equal(real)


def test_segments_keep_sentences_apart_and_zero_is_filling() -> None:
    numbers = torch.tensor([[1, 1, 2, 0]])
    assert segments(numbers, numbers).dense(4, 4, CPU)[0, 0].equal(table("xx.. xx.. ..x. ...."))
    other = torch.tensor([[2, 1, 0]])
    assert segments(numbers, other).dense(4, 3, CPU)[0, 0].equal(table(".x. .x. x.. ..."))


def test_explicit_is_itself() -> None:
    allowed = table("x.x .x.")[None, None]
    assert explicit(allowed).dense(2, 3, CPU) is allowed


def test_a_conjunction_allows_what_all_parts_allow() -> None:
    numbers = torch.tensor([[1, 1, 2, 2]])
    joined = causal() & segments(numbers, numbers) & padding(table("xxx."))
    assert joined.dense(4, 4, CPU)[0, 0].equal(table("x... xx.. ..x. ..x."))
    assert len(joined.parts) == 3
    assert joined.parts[0] == Causal()
    assert (everything() & causal()).parts == causal().parts


def test_a_resolved_mask_is_one_table_unless_the_structure_is_worth_keeping() -> None:
    numbers = torch.tensor([[1, 1, 2]])
    joined = causal() & segments(numbers, numbers)
    resolved = joined.resolve(3, 3, CPU)
    assert isinstance(resolved.parts[0], Explicit)
    assert len(resolved.parts) == 1
    assert resolved.dense(3, 3, CPU).equal(joined.dense(3, 3, CPU))
    assert everything().resolve(3, 3, CPU).parts == ()
    assert causal().resolve(3, 3, CPU).parts == (Causal(),)


def test_single_pairs_are_those_of_the_table() -> None:
    numbers, other = (
        torch.tensor([[1, 1, 2, 0], [1, 2, 2, 2]]),
        torch.tensor([[2, 1, 0], [0, 2, 1]]),
    )
    generator = torch_generator("pairs")
    masks = [
        causal(1),
        window(1, 0, offset=1),
        padding(other > 0),
        segments(numbers, other),
        explicit(torch.rand(2, 1, 4, 3, generator=generator) < 0.5),
        explicit(torch.rand(1, 5, 1, 3, generator=generator) < 0.5),
    ]
    every = [
        torch.arange(n).view([-1 if i == axis else 1 for i in range(4)])
        for axis, n in enumerate((2, 5, 4, 3))
    ]
    for mask in (*masks, masks[0] & masks[3] & masks[4]):
        pairs = mask.at(*every)
        assert pairs is not None
        assert pairs.expand(2, 5, 4, 3).equal(mask.dense(4, 3, CPU).expand(2, 5, 4, 3))
    assert everything().at(*every) is None
