"""Chooses the dtype in which numbers are added up: never half precision for many products.

    widen           float32, or float64 for float64: for softmaxes, sums of features, divisions
    leave_half      float32 in place of float16, whose largest number, 65,504, is exceeded by the
                    product of two long vectors. bfloat16 stays: its range is that of float32, and
                    matrix units add its products up in float32
    product_dtype   the dtype of products whose sums must be exact: bfloat16 stays on a GPU, for the
                    same reason; everywhere else as `widen`

Tested in tests/attention/kernels/test_full.py (sums that bfloat16 and products that float16 cannot
hold) and by the laws in half precision.
"""

import torch
from torch import Tensor


def widen(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def leave_half(x: Tensor) -> Tensor:
    return x.float() if x.dtype == torch.float16 else x


def product_dtype(x: Tensor) -> torch.dtype:
    """bfloat16 where the hardware accumulates its products in float32, else at least float32."""
    if x.dtype == torch.bfloat16 and x.device.type == "cuda":
        return torch.bfloat16
    return torch.float64 if x.dtype == torch.float64 else torch.float32
