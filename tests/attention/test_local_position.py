"""Luong's windows against loops over single pairs; places inside packed rows; what passes a
gradient."""

import math

import pytest
import torch
from torch import Tensor, nn

from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.local_position import MonotonicWindow, Places, PredictiveWindow, find_places
from headwise.attention.masks import Mask, padding, segments
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.scores.dot import scaled_dot_scores
from headwise.randomness import torch_generator

BATCH, HEADS, QUERIES, KEYS, DIM = 2, 3, 5, 7, 11


def draw(*shape: int, key: str = "q") -> Tensor:
    return torch.randn(shape, generator=torch_generator("local", key), dtype=torch.float64)


def predictive(half_width: int = 2, deviation: float | None = None) -> PredictiveWindow:
    window = PredictiveWindow(DIM, half_width=half_width, deviation=deviation).double()
    for parameter in window.parameters():
        nn.init.normal_(parameter, std=0.5, generator=torch_generator("window", parameter.shape[0]))
    return window


def test_places_restart_with_each_sentence() -> None:
    query, key = torch.tensor([[1, 1, 2, 2, 2, 0]]), torch.tensor([[1, 2, 2, 2, 2, 2, 3, 0]])
    places = find_places(segments(query, key), 6, 8, query.device)
    assert places.query.tolist() == [[0, 1, 0, 1, 2, 0]]
    assert places.key.tolist() == [[0, 0, 1, 2, 3, 4, 0, 0]]
    assert find_places(Mask(), 2, 3, query.device).key.tolist() == [[0, 1, 2]]


def test_local_m_looks_around_its_own_place_and_at_the_end_once_past_it() -> None:
    real = torch.tensor([[True] * 4 + [False] * 3])
    kernel = ScoredAttention(scaled_dot_scores, window=MonotonicWindow(1))
    weights = kernel.weights(draw(1, 1, 6, DIM), draw(1, 1, KEYS, DIM, key="k"), padding(real))
    seen = [[key for key in range(KEYS) if weights[0, 0, query, key] > 0] for query in range(6)]
    assert seen == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3], [2, 3], [2, 3]]
    assert weights.sum(-1).allclose(torch.ones(()).double())


def test_local_p_is_the_formula_and_is_not_renormalised() -> None:
    window, q, k = (
        predictive(),
        draw(BATCH, HEADS, QUERIES, DIM),
        draw(BATCH, HEADS, KEYS, DIM, key="k"),
    )
    lengths = (7, 5)
    real = torch.arange(KEYS) < torch.tensor(lengths)[:, None]
    weights = (
        ScoredAttention(scaled_dot_scores, window=window).weights(q, k, padding(real)).detach()
    )
    hidden, vote = window.place_hidden.detach(), window.place_vote[0].detach()
    for batch, length in enumerate(lengths):
        for head in range(HEADS):
            for query in range(QUERIES):
                x = q[batch, head, query]
                centre = length / (1 + math.exp(-float(vote @ (hidden @ x).tanh())))
                near = [key for key in range(length) if abs(key - centre) <= 2]
                soft = (
                    torch.stack([x @ k[batch, head, key] / math.sqrt(DIM) for key in near])
                    .softmax(0)
                    .tolist()
                )
                expected = [0.0] * KEYS
                for key, share in zip(near, soft, strict=True):
                    # Σ = D/2 = 1.
                    expected[key] = share * math.exp(-((key - centre) ** 2) / (2 * 1.0**2))
                torch.testing.assert_close(
                    weights[batch, head, query], torch.tensor(expected).double()
                )
    assert (weights.sum(-1) < 1).all()


def test_the_centre_learns() -> None:
    window = predictive()
    kernel = ScoredAttention(scaled_dot_scores, window=window)
    q, k, v = (draw(1, 2, 5, DIM, key=key) for key in "qkv")
    kernel(q, k, v, Mask()).square().sum().backward()
    assert all(
        parameter.grad is not None and parameter.grad.abs().max() > 0
        for parameter in window.parameters()
    )
    leaves = [x[:, :, :3].clone().requires_grad_() for x in (q, k, v)]
    assert torch.autograd.gradcheck(lambda *x: kernel(*x, Mask()), leaves)


@pytest.mark.parametrize(
    "window", [MonotonicWindow(100), predictive(100, 1e12)], ids=["local_m", "local_p"]
)
def test_a_window_that_holds_everything_is_attention_over_everything(
    window: MonotonicWindow | PredictiveWindow,
) -> None:
    q, k, v = (
        draw(BATCH, HEADS, QUERIES, DIM),
        *(draw(BATCH, HEADS, KEYS, DIM, key=key) for key in "kv"),
    )
    torch.testing.assert_close(
        ScoredAttention(scaled_dot_scores, window=window)(q, k, v, Mask()),
        FullAttention()(q, k, v, Mask()),
        rtol=1e-12,
        atol=1e-12,
    )


def test_hypotheses_of_a_step_all_stand_at_its_time() -> None:
    """Three queries of one step at time 4 are no queries 0, 1, 2."""
    layer = MultiHeadAttention(
        HEADS * DIM, HEADS, ScoredAttention(scaled_dot_scores, window=MonotonicWindow(1))
    ).double()
    x, memory = draw(1, 3, HEADS * DIM), draw(1, KEYS, HEADS * DIM, key="memory")
    kept = layer.keys_values(memory)
    weights = layer.weights_over(x, kept, Mask(), time=4)
    assert [weights[0, 0, 0, key].item() > 0 for key in range(KEYS)] == [
        key in (3, 4, 5) for key in range(KEYS)
    ]
    whole = layer(
        torch.cat([draw(1, 4, HEADS * DIM, key="before"), x[:, 1:2]], dim=1), memory, Mask()
    )
    torch.testing.assert_close(layer.attend(x, kept, Mask(), time=4)[:, 1], whole[:, 4])


def test_places_may_stand_for_all_rows() -> None:
    places = Places(torch.tensor([[6]]), torch.arange(KEYS)[None])
    allowed, factor = MonotonicWindow(0)(draw(BATCH, HEADS, 1, DIM), None, places)
    assert factor is None
    assert allowed.nonzero()[:, 3].unique().tolist() == [6]
