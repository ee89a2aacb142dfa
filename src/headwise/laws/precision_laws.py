"""The laws of numbers: what comes out is of the kind that came in, rounded no worse than its kind
must be, and is what the map says.

test_mutants.py proves that they bite.
"""

from collections.abc import Callable

import torch

from headwise.laws.case import LawCase
from headwise.laws.kernel_laws import run
from headwise.laws.probes import assert_same
from headwise.laws.scenes import Scene, cases


def keeps_dtype_and_device(row: LawCase) -> None:
    """The output is of the input's kind, and off by no more than the rounding of that kind from
    double precision over the same numbers."""
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
    """The map that people look at is the one that is computed: weights times values is the output,
    whatever the mask."""
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
