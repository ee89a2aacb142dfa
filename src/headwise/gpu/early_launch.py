"""Launch of the kernels of this folder: on Hopper, before the previous kernel has ended.

With programmatic dependent launch (CUDA 11.8) a kernel overlaps its start, and the reading of
inputs that do not depend on the previous kernel, with the end of that kernel; where it needs the
results it waits. Reading anything that another kernel wrote, and writing anything at all, must come
after the wait.
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
