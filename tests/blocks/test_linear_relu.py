import importlib.util
import os
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
    torch.testing.assert_close(fused_gradients, torch.autograd.grad(plain, (x, weight, bias), slope))


def test_products_are_in_the_dtype_of_autocast():
    x, weight, bias = torch.randn(2, 3), torch.randn(5, 3), torch.randn(5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear_relu(x, weight, bias).dtype == torch.bfloat16


INTERPRETED = """
import torch
from headwise.blocks import relu_gradient
relu_gradient.wrap_triton = lambda kernel: kernel
for num_tokens, width in ((517, 300), (1, 7)):
    y, slope = torch.randn(num_tokens, width).relu(), torch.randn(num_tokens, width)
    result, sums = relu_gradient.pass_relu_back(slope, y)
    expected = torch.where(y > 0, slope, 0.0)
    assert torch.equal(result, expected)
    torch.testing.assert_close(sums.sum(0), expected.sum(0), atol=1e-4, rtol=1e-4)
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is installed with torch for GPUs only")
def test_the_kernel_in_tritons_interpreter():
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, check=True, timeout=120)
