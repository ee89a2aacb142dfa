"""Sliding-window attention against full attention under a window mask."""

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from headwise.attention.biases import DistanceBias
from headwise.attention.choices import Window, build_attention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.window import WindowAttention, WindowCache
from headwise.attention.masks import Mask, causal, segments, window
from headwise.attention.multi_head import Stepping
from headwise.errors import SettingsError, UsageError
from headwise.randomness import torch_generator

BATCH, HEADS, TIME, HEAD_DIM = 2, 3, 83, 5


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch_generator("window", *shape), dtype=torch.float64)


def triple() -> list[Tensor]:
    generator = torch_generator("window", "qkv")
    return [
        torch.randn(BATCH, HEADS, TIME, HEAD_DIM, generator=generator, dtype=torch.float64)
        for _ in range(3)
    ]


def packed() -> Mask:
    numbers = torch.tensor([1] * 29 + [2] * 2 + [3] * 43 + [0] * 9).expand(BATCH, -1)
    return segments(numbers, numbers)


@pytest.mark.parametrize(
    "mask",
    [Mask(), causal(), packed(), causal() & packed()],
    ids=["all", "causal", "packed", "both"],
)
@pytest.mark.parametrize(("left", "right"), [(7, 3), (0, 11), (13, 0), (40, 41)])
@pytest.mark.parametrize("block", [1, 4, 7, 16])
def test_equals_full_attention_under_a_window_mask(
    mask: Mask, left: int, right: int, block: int
) -> None:
    bias = DistanceBias(draw(HEADS, 9), -4)
    results = []
    for kernel, seen in (
        (WindowAttention(left, right, block=block), mask),
        (FullAttention(), mask & window(left, right)),
    ):
        leaves = [value.requires_grad_() for value in triple()]
        output = kernel(*leaves, seen, bias=bias)
        results.append((output, *torch.autograd.grad(output.square().sum(), leaves)))
    for given, expected in zip(*results, strict=True):
        assert torch.allclose(given, expected, atol=1e-12)


def test_only_pairs_of_the_window_exist() -> None:
    """Eight times the length, eight times the pairs; nothing of size length × length."""
    kernel, device = WindowAttention(16, 16), torch.device("cpu")
    sizes = []
    for length in (512, 4096):
        (part,) = kernel.prepare(Mask(), length, length, device).parts
        sizes.append(part.near.numel())  # type: ignore[attr-defined]
    assert sizes[1] == 8 * sizes[0] == 4096 * 48


def test_the_map_is_zero_outside_the_window_and_gives_the_output() -> None:
    q, k, v = triple()
    kernel = WindowAttention(5, 2)
    weights = kernel.weights(q, k, causal())
    assert torch.allclose(weights @ v, kernel(q, k, v, causal()))
    far = torch.ones(TIME, TIME).tril(-6).bool() | torch.ones(TIME, TIME).triu(1).bool()
    assert weights[..., far].eq(0).all()


def test_the_memory_of_a_step_does_not_grow_and_biases_follow() -> None:
    q, k, v = triple()
    kernel = WindowAttention(3, 9)
    assert isinstance(kernel, Stepping)
    cache = kernel.make_cache(
        max_length=TIME, num_rows=BATCH, num_heads=HEADS, head_dim=HEAD_DIM, like=q
    )
    assert isinstance(cache, WindowCache)
    assert cache.store.shape[1] == 8
    bias, dense = DistanceBias(draw(HEADS, 9), -7), draw(BATCH, HEADS, TIME, TIME)
    for given in (bias, dense):
        whole = kernel(q, k, v, causal(), bias=given)
        cache = kernel.make_cache(
            max_length=TIME, num_rows=BATCH, num_heads=HEADS, head_dim=HEAD_DIM, like=q
        )
        for time in range(TIME):
            now = slice(time, time + 1)
            one = (
                DistanceBias(bias.table, -7, offset=time)
                if given is bias
                else dense[:, :, now, : time + 1]
            )
            output = kernel.step(q[:, :, now], k[:, :, now], v[:, :, now], cache, bias=one)
            assert torch.allclose(output, whole[:, :, now])


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"left and attention\.right are both 0"):
        Window(left=0, right=0)
    with pytest.raises(ValidationError, match="left"):
        Window(left=-1)


def test_cross_attention_has_no_neighbours() -> None:
    with pytest.raises(
        SettingsError, match="use kind=full, fused, linear, performer or linformer there"
    ):
        build_attention(Window(), dim=6, num_heads=2, dropout_rate=0.0, role="cross")


def test_a_decoder_that_sees_only_itself_is_refused() -> None:
    settings = Window(left=0, right=8)
    with pytest.raises(
        SettingsError,
        match=r"stands in model\.decoder\.attention, but .* set attention\.left=1 or more$",
    ):
        build_attention(settings, dim=6, num_heads=2, dropout_rate=0.0, role="decoder")


@pytest.mark.parametrize("kernel", [WindowAttention(9, 0), LongformerAttention(18, 0)])
def test_what_is_in_sight_is_never_forgotten(kernel: WindowAttention | LongformerAttention) -> None:
    """A cache that is shorter than the window ends with a word, as that of full attention does."""
    q, k, v = triple()
    cache = kernel.make_cache(
        max_length=5, num_rows=BATCH, num_heads=HEADS, head_dim=HEAD_DIM, like=q
    )
    for time in range(5):
        kernel.step(*(x[:, :, time : time + 1] for x in (q, k, v)), cache)
    with pytest.raises(
        UsageError, match="room for 5 positions and 6 are needed; start with a larger max_length"
    ):
        kernel.step(*(x[:, :, 5:6] for x in (q, k, v)), cache)
