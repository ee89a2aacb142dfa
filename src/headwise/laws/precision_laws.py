"""Laws of attention kernels on floating types: the output has the type of the input and its
rounding error, and equals the attention weights times the values.

tests/laws/test_number_mutants.py checks that each law finds a kernel with a known fault.
"""

from collections.abc import Callable

import torch

from headwise.laws.case import LawCase
from headwise.laws.kernel_laws import run
from headwise.laws.random_inputs import Scene, cases
from headwise.laws.result_checks import assert_same


def keeps_dtype_and_device(row: LawCase) -> None:
    """The output has dtype and device of the input, and differs from double precision by at most
    the rounding error of its type."""
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    kernels = {device: row.build(0.0) for device in devices}
    for device, kernel in kernels.items():
        if isinstance(kernel, torch.nn.Module):
            kernel.to(device)
    for name, scene, bias in cases(row, "dtype"):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            same = scene.to(dtype).to(torch.float64)
            precise = run(kernels["cpu"], same, name, None if bias is None else same.bias)
            for device in devices:
                low = Scene(*(value.to(device) for value in vars(scene.to(dtype)).values()))
                output = run(kernels[device], low, name, None if bias is None else low.bias)
                assert output.device == low.q.device, name
                assert output.dtype == dtype, name
                assert_same(output.cpu(), precise, f"{name} {dtype}", more_terms=row.more_terms)


def weights_give_the_output(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """The weights that a kernel shows are those that it computes with: weights times values equals
    the output, under every mask."""
    kernel = row.build(0.0)
    for name, scene, bias in cases(row, "weights", dtype):
        weights = kernel.weights(scene.q, scene.k, scene.mask(name), bias=bias)
        assert weights.dtype == dtype, name
        assert weights.shape == (*scene.q.shape[:3], scene.num_keys), name
        assert_same(
            weights @ scene.v, run(kernel, scene, name, bias), name, more_terms=row.more_terms
        )


PRECISION_LAWS: tuple[Callable[[LawCase], None], ...] = (
    keeps_dtype_and_device,
    weights_give_the_output,
)
