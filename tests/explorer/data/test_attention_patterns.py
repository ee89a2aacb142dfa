"""Pictures of kernels against what the kernels promise."""

import pytest
import torch

from headwise.attention.choices import BigBird, Full, Linear, Linformer, Longformer, Window
from headwise.errors import SettingsError
from headwise.explorer.data.attention_patterns import draw_example, show_pattern, shown_kinds

LENGTH = 29


@pytest.mark.parametrize("kind", sorted(shown_kinds()))
def test_rows_sum_to_one_and_repeat(kind: str) -> None:
    pattern = show_pattern(shown_kinds()[kind].example(), length=LENGTH)
    table = torch.tensor(pattern.weights)
    assert table.shape == (LENGTH, LENGTH)
    if kind != "linformer":  # mixtures of tokens may be negative
        assert table.sum(1).tolist() == pytest.approx([1.0] * LENGTH, abs=1e-4)
    assert pattern == show_pattern(shown_kinds()[kind].example(), length=LENGTH)
    assert pattern.as_dict()["share"] == pattern.num_pairs / LENGTH**2


def test_a_window_and_global_tokens() -> None:
    window = torch.tensor(show_pattern(Window(left=3, right=2), length=LENGTH).weights) > 0
    query, key = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)
    assert torch.equal(window, (key - query >= -3) & (key - query <= 2))
    longformer = (
        torch.tensor(
            show_pattern(Longformer(width=4, num_global=2, dilation=1), length=LENGTH).weights
        )
        > 0
    )
    assert torch.equal(longformer, ((key - query).abs() <= 2) | (key < 2) | (query < 2))


def test_ranks_are_what_the_formulas_allow() -> None:
    assert show_pattern(Linformer(rank=5, max_length=31), length=LENGTH).rank <= 5
    assert show_pattern(Linear(), length=LENGTH, head_dim=7).rank <= 7
    assert show_pattern(Full(), length=LENGTH).rank > 16


def test_the_future_is_hidden() -> None:
    for kind in ("full", "window", "linear", "performer", "reformer"):
        table = torch.tensor(
            show_pattern(shown_kinds()[kind].example(), length=LENGTH, is_causal=True).weights
        )
        assert bool((table.triu(1) == 0).all()), kind
    with pytest.raises(SettingsError, match="bigbird"):
        show_pattern(BigBird(), length=LENGTH, is_causal=True)


def test_near_tokens_of_the_example_are_alike() -> None:
    _, k = draw_example(101, 17)
    near = torch.nn.functional.cosine_similarity(k[0, 0, 1:], k[0, 0, :-1], dim=-1).mean()
    far = torch.nn.functional.cosine_similarity(k[0, 0, 50:], k[0, 0, :-50], dim=-1).mean()
    assert near > 0.7
    assert abs(far) < 0.4
