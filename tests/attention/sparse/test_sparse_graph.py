"""Attention over few pairs is one graph for the compiler, gradient included, whatever sentences a
row holds."""

import subprocess
import sys

import pytest

ONE_GRAPH = """
import torch
from headwise.attention.choices import BigBird, Longformer, Window, build_attention
from headwise.attention.masks import causal, segments
from headwise.randomness import torch_generator

def attend(layer, x, run, is_causal):
    mask = segments(run, run) & causal() if is_causal else segments(run, run)
    mask = layer.kernel.prepare(mask, x.shape[1], x.shape[1], x.device)
    return layer(x, x, mask)

kinds = (
    (Window(left=9, right=5), "decoder"),
    (Longformer(width=8), "encoder"),
    (BigBird(block=4), "encoder"),
)
for settings, role in kinds:
    layer = build_attention(settings, dim=8, num_heads=2, dropout_rate=0.0, role=role)
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True, dynamic=False)
    for seed, cut in enumerate((7, 131)):
        x = torch.randn(1, 300, 8, generator=torch_generator(seed), requires_grad=True)
        run = torch.tensor([[1] * cut + [2] * (290 - cut) + [0] * 10])
        expected = torch.autograd.grad(attend(layer, x, run, role == "decoder").square().sum(), x)
        with torch.compiler.set_stance("default" if seed == 0 else "fail_on_recompile"):
            output = compiled(layer, x, run, role == "decoder")
            given = torch.autograd.grad(output.square().sum(), x)
        torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-4)
"""
ANY_LENGTH = """
import torch
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.masks import Mask

kernel = BigBirdAttention(2, 1, 2, 1)
compiled = torch.compile(lambda q, k, v: kernel(q, k, v, Mask()), backend="eager")
for length in (20, 33):
    q, k, v = torch.randn(3, 1, 1, length, 3).unbind()
    torch.testing.assert_close(compiled(q, k, v), kernel(q, k, v, Mask()))
"""


@pytest.mark.prove
def test_a_compiled_call_takes_any_length() -> None:
    """At its second length torch compiles for any, and sizes become symbols."""
    subprocess.run([sys.executable, "-c", ANY_LENGTH], check=True, timeout=240)


@pytest.mark.prove
def test_one_graph_for_all_contents() -> None:
    """In a process of its own: pytest's checks of shapes are no code for a compiler."""
    subprocess.run([sys.executable, "-c", ONE_GRAPH], check=True, timeout=240)
