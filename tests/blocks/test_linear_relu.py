import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from headwise.blocks.linear_relu import linear_relu


def test_equals_the_two_operations_with_gradients():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3, 5, 7, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(11, 7, dtype=torch.float64, generator=generator, requires_grad=True)
    bias = torch.randn(11, dtype=torch.float64, generator=generator, requires_grad=True)
    slope = torch.randn(3, 5, 11, dtype=torch.float64, generator=generator)
    fused, plain = linear_relu(x, weight, bias), F.relu(F.linear(x, weight, bias))
    torch.testing.assert_close(fused, plain)
    fused_gradients = torch.autograd.grad(fused, (x, weight, bias), slope)
    torch.testing.assert_close(
        fused_gradients, torch.autograd.grad(plain, (x, weight, bias), slope)
    )


def test_products_are_in_the_dtype_of_autocast():
    x, weight, bias = torch.randn(2, 3), torch.randn(5, 3), torch.randn(5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear_relu(x, weight, bias).dtype == torch.bfloat16


ONE_GRAPH = """
import torch
from headwise.blocks.dropout import hashed_bytes
from headwise.blocks.linear_relu import linear_relu

def part(x, weight, bias, seed):
    hidden = linear_relu(x, weight, bias)
    return torch.where(hashed_bytes(seed, hidden.shape) >= 26, hidden, 0.0).sum()

x, weight = (torch.randn(7, 3, requires_grad=True), torch.randn(5, 3, requires_grad=True))
arguments = (x, weight, torch.randn(5), torch.tensor([1], dtype=torch.int32))
compiled = torch.compile(part, backend="aot_eager", fullgraph=True)
torch.testing.assert_close(compiled(*arguments), part(*arguments))
gradients = [torch.autograd.grad(one(*arguments), (x, weight)) for one in (compiled, part)]
torch.testing.assert_close(*gradients)
"""


@pytest.mark.prove
def test_it_compiles_into_one_graph_backward_included():
    """A compiler that has to stop at every feed-forward part loses more than it gains. Without
    pytest's checks of shapes."""
    subprocess.run([sys.executable, "-c", ONE_GRAPH], check=True, timeout=120)
