"""Launches the kernels of this folder early: on Hopper GPUs, before the previous kernel has ended.

This is programmatic dependent launch (CUDA 11.8). A kernel starts, and reads inputs that do not
depend on the previous kernel, while that kernel is still ending. Then it waits for its results. A
kernel may read what another kernel wrote, and write anything at all, only after the wait.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from triton.language.extra import cuda

EARLY_STARTS = True
"""Whether kernels are launched early if the hardware supports it."""


@triton.jit
def wait_for_last_kernel(EARLY: tl.constexpr):
    if EARLY:
        cuda.gdc_wait()
        # The next kernel may be launched now: it waits for the end of this one where it needs its
        # results.
        cuda.gdc_launch_dependents()


@cache
def starts_early(device: int) -> bool:
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= (9, 0)


def early_start(tensor: torch.Tensor) -> dict[str, bool]:
    """The last arguments of a kernel that works on this tensor and calls
    `wait_for_last_kernel(EARLY)`."""
    if EARLY_STARTS and tensor.is_cuda and starts_early(tensor.get_device()):
        return {"EARLY": True, "launch_pdl": True}
    return {"EARLY": False}
