"""Performer: the same as performer-pytorch with its features, errors that fall as they must, and
draws that a resumed run repeats."""

import importlib
import itertools
import sys
import warnings

import pytest
import torch
from torch import Tensor

from headwise.attention.choices import Performer, build_attention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.linear import attend_by_features
from headwise.attention.kernels.performer import (
    Estimate,
    PerformerAttention,
    draw_features,
    key_features,
    query_features,
)
from headwise.attention.masks import Mask, causal
from headwise.attention.segment_order import order_mask
from headwise.randomness import torch_generator


@pytest.mark.skipif(
    sys.version_info >= (3, 12),
    reason="performer-pytorch needs distutils, which Python 3.12 has no more",
)
def test_equals_performer_pytorch_with_its_features() -> None:
    """Its added 10⁻⁴ is set to nothing: with it a result depends on all keys of the row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = importlib.import_module("performer_pytorch.performer_pytorch")
    generator = torch_generator("performer-pytorch")
    q, k, v = (
        torch.randn(2, 3, 29, 16, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    rows = draw_features(53, 16, generator).double()
    theirs = [
        peer.softmax_kernel(x, projection_matrix=rows, is_query=x is q, eps=0.0) for x in (q, k)
    ]
    ours = query_features(q, rows, epsilon=0.0), key_features(k, rows, epsilon=0.0)
    output = attend_by_features(*ours, v, order_mask(Mask(), 29, 29, kind="performer"))
    assert torch.allclose(output, peer.linear_attention(*theirs, v), atol=1e-9)


def test_rows_are_orthogonal_in_blocks_and_long_as_gaussian_vectors() -> None:
    rows = draw_features(96, 32, torch_generator("rows")).double()
    for block in rows.split(32):
        products = block @ block.T
        assert torch.allclose(products, torch.diag(products.diagonal()), atol=1e-4)
    assert draw_features(7, 5, torch_generator("odd")).shape == (7, 5)
    lengths = torch.cat(
        [draw_features(96, 32, torch_generator("many", i)).square().sum(1) for i in range(50)]
    )
    assert lengths.mean().item() == pytest.approx(32, rel=0.02)
    assert lengths.var().item() == pytest.approx(64, rel=0.15)


def _error(rows_of: object, num_draws: int = 24) -> float:
    """Mean squared error against the softmax, relative to its own square; inputs as in the
    reference measurement."""
    generator = torch_generator("trend")
    q, k, v = (0.7 * torch.randn(1, 4, 128, 32, generator=generator) for _ in range(3))
    exact = FullAttention()(q, k, v, Mask())
    errors = []
    for draw in range(num_draws):
        rows = rows_of(torch_generator("draw", draw))  # type: ignore[operator]
        kernel = PerformerAttention(32, rows.shape[0])
        kernel.rows.copy_(rows)
        errors.append((kernel(q, k, v, Mask()) - exact).square().mean() / exact.square().mean())
    return torch.stack(errors).mean().item()


def test_four_times_the_features_make_at_most_half_the_error() -> None:
    errors = [
        _error(lambda generator, m=m: draw_features(m, 32, generator)) for m in (16, 64, 256, 1024)
    ]
    assert all(fewer >= 1.8 * more for fewer, more in itertools.pairwise(errors)), errors


def test_orthogonal_features_beat_independent_ones() -> None:
    def independent(generator: torch.Generator) -> Tensor:
        return torch.randn(64, 32, generator=generator)

    assert _error(lambda generator: draw_features(64, 32, generator), 96) < 0.97 * _error(
        independent, 96
    )


def test_positive_features_beat_sines_and_cosines() -> None:
    generator = torch_generator("trigonometric")
    q, k, v = (0.7 * torch.randn(1, 4, 128, 32, generator=generator) for _ in range(3))
    exact, errors = FullAttention()(q, k, v, Mask()), []
    kernel = PerformerAttention(32, 64)
    features = []
    for x in (q, k):
        scaled = x / 32**0.25
        angles = scaled @ kernel.rows[:32].T
        size = (scaled.square().sum(-1, keepdim=True) / 2).exp()
        features.append(torch.cat([angles.sin(), angles.cos()], dim=-1) * size)
    table = features[0] @ features[1].mT
    for output in (kernel(q, k, v, Mask()), table / table.sum(-1, keepdim=True) @ v):
        errors.append((output - exact).square().mean().item())
    assert errors[0] < errors[1]


def _errors(
    estimate: Estimate, scale: float, *, head_dim: int, length: int, num_features: int
) -> tuple[float, float]:
    """Mean squared error of an estimate, and of the plain mean of the values, relative to the exact
    output."""
    generator = torch_generator("errors", length)
    q, k, v = (torch.randn(1, 1, length, head_dim, generator=generator) for _ in range(3))
    exact = FullAttention()(scale * q, scale * k, v, Mask())
    kernel = PerformerAttention(head_dim, num_features, estimate=estimate)
    outputs = kernel(scale * q, scale * k, v, Mask()), v.mean(2, keepdim=True)
    ours, mean = (
        float((output - exact).square().mean() / exact.square().mean()) for output in outputs
    )
    return ours, mean


@pytest.mark.parametrize("scale", [0.1, 0.25, 0.5, 0.7, 1.0, 1.5, 4.0])
def test_the_bounded_estimate_is_nearer_than_the_mean_in_long_rows(scale: float) -> None:
    """Where the unbiased one is far off: its relative error at scale 1 is 4.0, that of the mean
    0.8."""
    bounded, mean = _errors("bounded", scale, head_dim=64, length=2048, num_features=256)
    unbiased, _ = _errors("unbiased", scale, head_dim=64, length=2048, num_features=256)
    assert bounded < mean
    assert bounded < unbiased


def test_four_times_the_features_make_at_most_half_the_bounded_error() -> None:
    errors = [
        _errors("bounded", 0.25, head_dim=64, length=512, num_features=num_features)[0]
        for num_features in (64, 256, 1024, 4096)
    ]
    assert all(fewer >= 1.8 * more for fewer, more in itertools.pairwise(errors)), errors


def test_the_unbiased_estimate_is_right_in_the_mean_and_its_variance_is_as_counted() -> None:
    """Of exp(q · k), relative to it: mean 1, variance exp(|q + k|²) − 1 for one independent row."""
    generator = torch_generator("variance")
    q, k = (
        0.6 * torch.randn(1, 1, 1, 5, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    rows = torch.randn(400_000, 5, generator=generator, dtype=torch.float64)
    exponents = [key_features(x, rows, epsilon=0.0) for x in (q, k)]
    scaled_q, scaled_k = (x / 5**0.25 for x in (q, k))
    relative = exponents[0] * exponents[1] / (scaled_q * scaled_k).sum().exp()
    assert relative.mean().item() == pytest.approx(1, abs=0.01)
    variance = (scaled_q + scaled_k).square().sum().exp() - 1
    assert 0.3 < variance < 10
    assert relative.var().item() == pytest.approx(variance.item(), rel=0.05)


def test_what_a_model_learns_with_is_what_serves_it() -> None:
    """Unless it is asked for: a model that was taught one draw and is used with another loses more
    than the estimate does."""
    layer = build_attention(
        Performer(num_features=16), dim=12, num_heads=3, dropout_rate=0.0, role="encoder"
    )
    x = torch.randn(2, 11, 12, generator=torch_generator("same"))
    assert isinstance(layer.kernel, PerformerAttention)
    layer.kernel.before_step(1, key="5/encoder.0")
    assert torch.equal(layer.train()(x, x, Mask()), layer.eval()(x, x, Mask()))


def test_a_recipe_means_the_published_estimate() -> None:
    """Also one that was saved when there was no other."""
    saved = Performer.model_validate(
        {"kind": "performer", "num_features": 16, "redraw_every": 1000}
    )
    assert (saved.estimate, saved.redraw_every) == ("unbiased", 1000)
    assert (Performer().estimate, Performer().redraw_every) == ("unbiased", 0)


def test_draws_follow_from_the_step_alone_and_serve_training_only() -> None:
    straight, resumed = (PerformerAttention(8, 16, redraw_every=3) for _ in range(2))
    seen = []
    for step in range(1, 8):
        straight.before_step(step, key="5/encoder.0")
        seen.append(straight.drawn.clone())
    assert all(torch.equal(seen[0], other) for other in seen[:3])
    assert not torch.equal(seen[2], seen[3])
    resumed.load_state_dict(straight.state_dict())
    resumed.before_step(7, key="5/encoder.0")
    assert torch.equal(resumed.drawn, straight.drawn)
    place = straight.drawn.data_ptr()
    straight.before_step(10, key="5/encoder.0")
    assert straight.drawn.data_ptr() == place  # a recorded graph reads the same memory
    assert set(straight.state_dict()) == {"rows"}
    x = torch.randn(1, 1, 5, 8, generator=torch_generator("x"))
    assert not torch.allclose(straight(x, x, x, Mask(), training=True), straight(x, x, x, Mask()))
    never = PerformerAttention(8, 16)
    never.before_step(1, key="5/encoder.0")
    assert torch.equal(never(x, x, x, Mask(), training=True), never(x, x, x, Mask()))


@pytest.mark.parametrize("estimate", ["unbiased", "bounded"])
def test_long_vectors_stay_finite(estimate: Estimate) -> None:
    kernel = PerformerAttention(64, 32, estimate=estimate)
    for size in (30.0, 1e4):
        q, k, v = (
            size * torch.randn(1, 1, 9, 64, generator=torch_generator("long")) for _ in range(3)
        )
        assert kernel(q, k, v, causal()).isfinite().all()


@pytest.mark.parametrize("estimate", ["unbiased", "bounded"])
def test_in_a_decoder_steps_equal_the_whole(estimate: Estimate) -> None:
    settings = Performer(num_features=16, estimate=estimate)
    layer = build_attention(settings, dim=12, num_heads=3, dropout_rate=0.0, role="decoder").eval()
    x = torch.randn(2, 11, 12, generator=torch_generator("decoder"))
    cache = layer.make_cache(max_length=11, num_rows=2, like=x)
    steps = torch.cat([layer.step(x[:, time : time + 1], cache) for time in range(11)], dim=1)
    assert torch.allclose(steps, layer(x, x, causal()), atol=1e-5)
