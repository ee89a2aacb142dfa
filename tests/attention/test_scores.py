"""Scores against their formulas, pair by pair; finite differences; what must be equal to what;
limits."""

import math

import pytest
import torch
from torch import Tensor, nn

from headwise.attention.choices import Full
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.masks import Mask
from headwise.attention.score_choices import GaussianSettings, build_score
from headwise.attention.scores import comparison, gaussian
from headwise.attention.scores.additive import AdditiveScore
from headwise.attention.scores.bilinear import BilinearScore
from headwise.attention.scores.comparison import Score
from headwise.attention.scores.concat import ConcatScore
from headwise.attention.scores.dot import scaled_dot_scores
from headwise.attention.scores.location import LocationScore
from headwise.errors import UsageError
from headwise.initialization import initialize
from headwise.randomness import torch_generator
from headwise.settings import check_settings

BATCH, HEADS, QUERIES, KEYS, DIM, HIDDEN = 2, 3, 5, 7, 11, 13
KINDS = ("dot", "scaled_dot", "additive", "concat", "bilinear", "cosine", "location", "gaussian")


def make(kind: str, *, query_dim: int = DIM, key_dim: int = DIM, **extra: float) -> Score:
    data = {"kind": kind, **extra} | ({"hidden": HIDDEN} if kind in ("additive", "concat") else {})
    score = build_score(
        check_settings(Full, {"score": data}).score, query_dim=query_dim, key_dim=key_dim
    )
    if isinstance(score, nn.Module):
        for parameter in score.parameters():
            nn.init.normal_(parameter, std=0.5, generator=torch_generator("scores", kind))
        score.double()
    return score


def draw(*shape: int, key: str = "q") -> Tensor:
    return torch.randn(shape, generator=torch_generator("scores", key), dtype=torch.float64)


def by_hand(kind: str, score: Score, q: Tensor, k: Tensor, place: int) -> float:
    """One pair, from the formula in the header, with nothing but sums."""
    weights = (
        {name: value.tolist() for name, value in score.named_parameters()}
        if isinstance(score, nn.Module)
        else {}
    )
    one, other = q.tolist(), k.tolist()
    dot = sum(a * b for a, b in zip(one, other, strict=True)) if len(one) == len(other) else 0.0

    def apply(matrix: list[list[float]], x: list[float]) -> list[float]:
        return [sum(a * b for a, b in zip(row, x, strict=True)) for row in matrix]

    match kind:
        case "dot":
            return dot
        case "scaled_dot":
            return dot / math.sqrt(len(one))
        case "additive":
            sums = zip(
                apply(weights["query_map"], one), apply(weights["key_map"], other), strict=True
            )
            return sum(
                v * math.tanh(a + b) for v, (a, b) in zip(weights["vote"][0], sums, strict=True)
            )
        case "concat":
            hidden = apply(weights["joint_map"], one + other)
            return sum(v * math.tanh(x) for v, x in zip(weights["vote"][0], hidden, strict=True))
        case "bilinear":
            return sum(a * b for a, b in zip(one, apply(weights["between"], other), strict=True))
        case "cosine":
            return (
                10 * math.exp(weights["log_scale"]) * dot / (math.hypot(*one) * math.hypot(*other))
            )
        case "location":
            return apply(weights["place_map"], one)[place]
        case _:
            width = len(one) ** 0.25 * math.exp(weights["log_width"])
            return -sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (2 * width**2)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_has_the_score_of_the_formula(kind: str) -> None:
    score, q, k = make(kind), draw(BATCH, QUERIES, DIM), draw(BATCH, KEYS, DIM, key="k")
    scores = score(q, k)
    assert scores.shape == (BATCH, QUERIES, KEYS)
    for batch in range(BATCH):
        for query in range(QUERIES):
            for key in range(KEYS):
                expected = by_hand(kind, score, q[batch, query], k[batch, key], key)
                assert scores[batch, query, key].item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_hold_for_inputs_and_weights(kind: str) -> None:
    score = make(kind, max_length=3) if kind == "location" else make(kind)
    leaves = [draw(2, DIM).requires_grad_(), draw(3, DIM, key="k").requires_grad_()]
    parameters = dict(score.named_parameters()) if isinstance(score, nn.Module) else {}

    def run(q: Tensor, k: Tensor, *values: Tensor) -> Tensor:
        if not isinstance(score, nn.Module):
            return score(q, k)
        return torch.func.functional_call(score, dict(zip(parameters, values, strict=True)), (q, k))

    assert torch.autograd.gradcheck(run, [*leaves, *parameters.values()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("size", [0.0, 1.0, 6e4, 1e38])
def test_half_precision_zeros_and_huge_values_stay_finite(
    kind: str, dtype: torch.dtype, size: float
) -> None:
    bound = min(size, torch.finfo(dtype).max)
    q = (draw(QUERIES, DIM).sign() * bound).to(dtype).requires_grad_()
    k = (draw(KEYS, DIM, key="k").sign() * bound).to(dtype).requires_grad_()
    scores = make(kind)(q, k)
    assert scores.dtype == torch.float32
    assert scores.isfinite().all()
    scores.softmax(-1).square().sum().backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in (q, k))


@pytest.mark.parametrize("kind", ["additive", "concat", "bilinear", "location"])
def test_queries_and_keys_may_differ_in_width(kind: str) -> None:
    score = make(kind, query_dim=DIM, key_dim=3)
    assert score(draw(QUERIES, DIM), draw(KEYS, 3)).shape == (QUERIES, KEYS)


@pytest.mark.parametrize("kind", ["dot", "scaled_dot", "cosine", "gaussian"])
def test_the_others_say_what_can_be_done(kind: str) -> None:
    with pytest.raises(UsageError, match=rf"11 numbers and keys of 3 .* score {kind}.*additive"):
        make(kind, query_dim=DIM, key_dim=3)


def test_concat_is_additive_with_one_matrix() -> None:
    concat, additive = make("concat"), make("additive")
    assert isinstance(concat, ConcatScore)
    assert isinstance(additive, AdditiveScore)
    joint = torch.cat([additive.query_map, additive.key_map], dim=1)
    concat.load_state_dict({"joint_map": joint, "vote": additive.vote})
    q, k = draw(QUERIES, DIM), draw(KEYS, DIM, key="k")
    torch.testing.assert_close(concat(q, k), additive(q, k))


def test_bilinear_starts_as_the_scaled_dot_product() -> None:
    score = BilinearScore(DIM, DIM)
    initialize(score, torch_generator("start"))
    q, k = draw(QUERIES, DIM), draw(KEYS, DIM, key="k")
    torch.testing.assert_close(score.double()(q, k), scaled_dot_scores(q, k), rtol=1e-6, atol=1e-6)


def test_gaussian_weights_are_those_of_the_scaled_dot_product_for_keys_of_one_length() -> None:
    """−|q − k|²/(2√d) = q·k/√d − |q|²/(2√d) − |k|²/(2√d): the first rest is the same for a row, the
    second for all keys."""
    score = build_score(GaussianSettings(), query_dim=DIM, key_dim=DIM)
    q, k = draw(QUERIES, DIM), nn.functional.normalize(draw(KEYS, DIM, key="k"), dim=-1)
    torch.testing.assert_close(score(q, k).softmax(-1), scaled_dot_scores(q, k).softmax(-1))


def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    score, q, k = make("additive"), draw(BATCH, QUERIES, DIM), draw(BATCH, KEYS, DIM, key="k")
    results = []
    for chunk in (2**26, 2 * BATCH * KEYS * HIDDEN):
        monkeypatch.setattr(comparison, "CHUNK", chunk)
        leaves = [q.clone().requires_grad_(), k.clone().requires_grad_()]
        output = score(*leaves)
        assert isinstance(score, nn.Module)
        results.append(
            (output, *torch.autograd.grad(output.square().sum(), [*leaves, *score.parameters()]))
        )
        with torch.no_grad():
            assert torch.equal(score(*leaves), output)
    for whole, pieces in zip(*results, strict=True):
        torch.testing.assert_close(whole, pieces)


def test_places_beyond_the_limit_are_refused() -> None:
    score = LocationScore(DIM, max_length=5)
    assert score(draw(QUERIES, DIM), draw(5, DIM)).shape == (QUERIES, 5)
    with pytest.raises(
        UsageError,
        match=r"knows 5 positions and was given 7 keys; raise attention\.score\.max_length",
    ):
        score(draw(QUERIES, DIM), draw(7, DIM))


@pytest.mark.parametrize("few", [gaussian.FEW, 0])
def test_gaussian_scores_of_numbers_far_from_zero(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only how far they are apart counts: seconds since 1970 are as good as seconds since this
    morning."""
    monkeypatch.setattr(gaussian, "FEW", few)
    score = make("gaussian", width=1.0)
    assert isinstance(score, nn.Module)
    nn.init.zeros_(score.log_width)
    seconds = torch.tensor([0.0, 1.0, 10.0], dtype=torch.float64)[:, None] + 1.7e9
    scores = score(seconds[1:2], seconds)
    assert scores.tolist() == [[-0.5, 0.0, -40.5]]
    q, k = draw(QUERIES, DIM), draw(KEYS, DIM, key="k")
    torch.testing.assert_close(score(q + 1e6, k + 1e6), score(q, k), atol=1e-6, rtol=1e-6)


def test_a_gaussian_score_is_that_of_its_own_pair() -> None:
    """In large tables too, where a far key (hidden, or of another sentence) moved all others'
    scores by its part in a mean."""
    q, k = draw(257, 64), draw(257, 64, key="k")
    far = torch.cat([k[:-1], torch.full_like(k[:1], 1e9)])
    score = make("gaussian", width=64**0.25)
    assert torch.equal(score(q, k)[:, :-1], score(q, far)[:, :-1])


def test_the_cosine_of_tiny_vectors_is_that_of_long_ones() -> None:
    q, k, score = draw(QUERIES, DIM), draw(KEYS, DIM, key="k"), make("cosine")
    torch.testing.assert_close(score(1e-30 * q, 1e-30 * k), score(q, k))


def test_large_scores_in_double_precision_are_told_apart() -> None:
    """Bounded as float32 would need it, both were 10³⁰ and shared the weight."""
    kernel = ScoredAttention(lambda q, k: q @ k.mT)
    q, k = (
        torch.full((1, 1, 1, 1), 1e20).double(),
        torch.tensor([2e20, 1e20]).double()[None, None, :, None],
    )
    assert kernel.weights(q, k, Mask()).flatten().tolist() == [1.0, 0.0]
