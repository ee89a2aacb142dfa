"""Attention of exchangeable parts: the reference where it must be, one graph for the compiler,
finite at the extremes."""

import subprocess
import sys

import pytest
import torch

from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.masks import Mask, causal, explicit
from headwise.attention.normalizers import Entmax, Hard, Normalizer, Softmax, Sparsemax
from headwise.attention.scores.dot import dot_scores, scaled_dot_scores

ONE_GRAPH = """
import torch
from headwise.attention.choices import Full, build_attention
from headwise.attention.masks import segments
from headwise.randomness import torch_generator
from headwise.settings import check_settings

def attend(layer, x, memory, own, source):
    mask = layer.kernel.prepare(segments(own, source), x.shape[1], memory.shape[1], x.device)
    return layer(x, memory, mask)

for data in (
    {
        "score": {"kind": "additive", "hidden": 5},
        "weights": {"kind": "entmax"},
        "window": {"kind": "local_p"},
    },
):
    settings = check_settings(Full, data)
    layer = build_attention(settings, dim=8, num_heads=2, dropout_rate=0.0, role="cross")
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True, dynamic=False)
    for seed, cut in enumerate((7, 31)):
        x = torch.randn(1, 50, 8, generator=torch_generator(seed), requires_grad=True)
        memory = torch.randn(1, 47, 8, generator=torch_generator(seed, "memory"))
        own, source = (
            torch.tensor([[1] * cut + [2] * (size - cut - 5) + [0] * 5]) for size in (50, 47)
        )
        expected = torch.autograd.grad(attend(layer, x, memory, own, source).square().sum(), x)
        with torch.compiler.set_stance("default" if seed == 0 else "fail_on_recompile"):
            given = torch.autograd.grad(compiled(layer, x, memory, own, source).square().sum(), x)
        torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-4)
"""


@pytest.mark.prove
def test_one_graph_for_all_contents() -> None:
    """In a process of its own: pytest's checks of shapes are no code for a compiler."""
    subprocess.run([sys.executable, "-c", ONE_GRAPH], check=True, timeout=240)


def test_the_paper_s_parts_are_the_reference(generator: torch.Generator) -> None:
    q, k, v = (torch.randn(2, 3, 5, 11, generator=generator) for _ in range(3))
    torch.testing.assert_close(
        ScoredAttention(scaled_dot_scores)(q, k, v, causal()), FullAttention()(q, k, v, causal())
    )


@pytest.mark.parametrize(
    "normalizer", [Softmax(), Sparsemax(), Entmax(), Hard(), Hard("gumbel")], ids=str
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_largest_numbers_and_empty_rows_give_no_nan(
    normalizer: Normalizer, dtype: torch.dtype
) -> None:
    largest = torch.finfo(dtype).max
    q = torch.tensor(
        [[[[largest, -largest], [0.0, 0.0], [1.0, 1.0]]]], dtype=dtype
    ).requires_grad_()
    k = torch.tensor(
        [[[[largest, largest], [-largest, largest], [0.0, 1.0]]]], dtype=dtype
    ).requires_grad_()
    v = torch.eye(3, dtype=dtype)[None, None].requires_grad_()
    table = torch.tensor([[True, True, True], [True, False, True], [False, False, False]])[
        None, None
    ]
    for mask in (Mask(), explicit(table)):
        output = ScoredAttention(dot_scores, normalizer)(q, k, v, mask, training=True)
        assert output.isfinite().all()
        gradients = torch.autograd.grad(output.float().square().sum(), (q, k, v))
        # A gradient of the largest numbers may be too large for half precision, but is never
        # undefined.
        assert not any(gradient.isnan().any() for gradient in gradients)
    assert output[0, 0, 2].eq(0).all()
