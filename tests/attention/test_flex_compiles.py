"""The fused sparse kernel is compiled once, not once a length. Counted on a CPU; what CUDA makes of the graph is benchmarks/bench_sparse.py."""

import subprocess
import sys

import pytest

ONCE = """
import torch
from torch._dynamo.testing import CompileCounter
from headwise.attention.bigbird import BigBirdAttention
from headwise.attention.flex import MAX_VARIANTS, compile_flex
from headwise.attention.longformer import LongformerAttention
from headwise.attention.masks import Mask, causal, segments
from headwise.attention.window import WindowAttention
from headwise.randomness import torch_generator

def attend(kernel, length, mask_name, flex):
    q, k, v = torch.randn(3, 1, 1, length, 16, generator=torch_generator(length))
    run = torch.arange(length)[None] // (length // 2 + 1) + 1
    mask = {"whole": Mask(), "causal": causal(), "packed": segments(run, run)}[mask_name]
    planned = kernel._planned(mask, q, k, bias=None, dropout_rate=0.0)
    given = flex(q, k, v, block_mask=planned.near.tiles)
    if planned.plan.wide is None:
        expected = WindowAttention(kernel.left, kernel.right, form="chunked")(q, k, v, mask)
        torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-4)

torch._dynamo.config.recompile_limit = MAX_VARIANTS
kinds = ((WindowAttention(64, 64, form="flex"), ("causal",)), (LongformerAttention(64, form="flex"), ("packed",)),
         (BigBirdAttention(16, form="flex"), ("whole",)))
for kernel, masks in kinds:
    for mask in masks:
        counter = CompileCounter()
        flex = compile_flex(counter)
        for length in (64, 300, 777, 4096):
            attend(kernel, length, mask, flex)
        assert counter.frame_count <= 3, (kernel, mask, counter.frame_count)
        torch._dynamo.reset()
"""


@pytest.mark.prove
def test_lengths_share_a_kernel() -> None:
    """In a process of its own: pytest's checks of shapes are no code for a compiler. One tile, one key tile, and all the rest."""
    subprocess.run([sys.executable, "-c", ONCE], check=True, timeout=240)
