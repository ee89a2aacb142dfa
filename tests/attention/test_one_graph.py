"""Kernels in linear time are one graph for the compiler, gradient included: no shape and no branch
depends on data."""

import subprocess
import sys

import pytest

ONE_GRAPH = """
import torch
from headwise.attention.choices import Linear, Linformer, Performer, Reformer, build_attention
from headwise.attention.masks import causal, segments
from headwise.randomness import torch_generator

def attend(layer, x, run, is_causal):
    mask = segments(run, run) & causal() if is_causal else segments(run, run)
    mask = layer.kernel.prepare(mask, x.shape[1], x.shape[1], x.device)
    return layer(x, x, mask)

kinds = (
    (Linear(), "encoder"),
    (Linear(), "decoder"),
    (Performer(num_features=8), "encoder"),
    (Linformer(rank=8), "encoder"),
    (Reformer(num_rounds=2), "decoder"),
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


@pytest.mark.prove
def test_one_graph_for_all_contents() -> None:
    """In a process of its own: pytest's checks of shapes are no code for a compiler."""
    subprocess.run([sys.executable, "-c", ONE_GRAPH], check=True, timeout=240)
