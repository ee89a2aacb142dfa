"""Switches on deterministic kernels: two runs give the same bits, at lower speed.

A GPU adds numbers in the order in which its threads finish, and (a + b) + c is not a + (b + c) in
floating point, so two runs of one recipe differ in the last bits. For nearly every such operation
torch has a slower kernel with a fixed order; the others raise an error. cuBLAS needs a fixed
workspace, and the compiler must not choose kernels by timing them. A CPU with a fixed number of
threads gives the same bits without this.

Tested: two runs are bit-equal; previous settings are restored. On a GPU:
tests/survival/test_determinism.py.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

from headwise.errors import UsageError

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


@contextlib.contextmanager
def repeatable(*, enabled: bool) -> Iterator[None]:
    """Inside the block, operations are deterministic; one that cannot be raises a UsageError."""
    if not enabled:
        yield
        return
    import torch._inductor.config as compiler  # imported only if needed: it takes a second

    # Read by cuBLAS at its first product; another size set by the user is kept.
    os.environ.setdefault(WORKSPACE, ":4096:8")
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    # Its settings are properties that a type checker does not see.
    memory: Any = torch.utils.deterministic
    benchmark = torch.backends.cudnn.benchmark
    fills_memory = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(mode=True)
    memory.fill_uninitialized_memory = False  # it is for finding bugs, and writes all memory twice
    torch.backends.cudnn.benchmark = False
    try:
        with compiler.patch(deterministic=True):
            yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        reason = str(error).partition(".")[0]
        raise UsageError(
            "training.deterministic is on, but torch has no such form of an operation of this "
            f"model ({reason}); choose another part in the recipe or set "
            "training.deterministic=false",
            f"training.deterministic 已打开，但 torch 没有此模型某个运算的确定性实现（{reason}）；"
            "请更换配方中的部件，或设 training.deterministic=false",
        ) from error
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        memory.fill_uninitialized_memory = fills_memory
        torch.backends.cudnn.benchmark = benchmark
