"""The fused sparse kernel is compiled once, not once a length, and torch can put its mask into a
kernel. Counted and looked at on a CPU; what CUDA makes of the graph is benchmarks/bench_sparse.py.
"""

import subprocess
import sys

import pytest

ONCE = """
import sympy
import torch
from torch._dynamo.backends.common import aot_autograd
from headwise.attention.biases import DistanceBias
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.sparse.flex import attend_compiled, attend_flex, compile_flex
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.masks import Mask, causal, padding, segments
from headwise.attention.kernels.window import WindowAttention
from headwise.randomness import torch_generator

graphs = []

def look(graph, inputs):
    graphs.append(graph)
    (node,) = [node for node in graph.graph.nodes if "flex_attention" in str(node.target)]
    for group in (*node.args[7:9], node.args[4][:2]):
        for given in group:
            value = given.meta.get("val") if isinstance(given, torch.fx.Node) else given
            is_size = isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol)
            is_tensor = isinstance(value, torch.Tensor)
            assert is_size or is_tensor, f"{value} is neither a tensor nor a size"
    return graph

flex = compile_flex(aot_autograd(fw_compiler=look))

def attend(kernel, length, mask_name, has_bias):
    q, k, v = torch.randn(3, 2, 3, length, 16, generator=torch_generator(length))
    run = (torch.arange(length) // (length // 2 + 1) + 1).expand(2, length)
    own = {
        "whole": Mask(),
        "causal": causal(),
        "packed": segments(run, run),
        "padded": padding(run == 1),
    }
    mask = own[mask_name]
    table = torch.randn(3, 2 * length - 1, generator=torch_generator(length))
    bias = DistanceBias(table, 1 - length) if has_bias else None
    table = kernel._planned(mask, q, k, bias=bias, dropout_rate=0.0).near
    with torch.no_grad():
        given = attend_compiled(flex, q, k, v, table, bias=bias)
    torch.testing.assert_close(given, attend_flex(q, k, v, table, bias=bias), rtol=1e-4, atol=1e-4)

kinds = (
    (WindowAttention(64, 64, form="flex"), ("causal", "whole")),
    (WindowAttention(8, 0, form="flex"), ("packed",)),
    (LongformerAttention(64, form="flex"), ("packed", "padded")),
    (LongformerAttention(16, form="flex"), ("whole",)),
    (BigBirdAttention(16, form="flex"), ("packed", "padded", "whole")),
)
for kernel, masks in kinds:
    for mask in masks:
        for has_bias in (False, True):
            before = len(graphs)
            for length in (64, 300, 777, 2048):
                attend(kernel, length, mask, has_bias)
            assert len(graphs) <= before + 2, (kernel, mask, has_bias, len(graphs) - before)
"""


@pytest.mark.prove
def test_lengths_share_a_kernel() -> None:
    """In a process of its own: pytest's checks of shapes are no code for a compiler. Once for rows
    of one tile, and once for all the rest."""
    subprocess.run([sys.executable, "-c", ONCE], check=True, timeout=600)
