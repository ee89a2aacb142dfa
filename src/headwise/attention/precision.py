"""In which type numbers are added up: no sum of many products is taken in half precision.

    widen           float32, or float64 for float64: softmaxes, sums of features, whatever is divided
    leave_half      float32 in place of float16, which ends at 65,504: the product of two long vectors exceeds that. bfloat16 reaches as far as float32
                    and stays, as product units add its products up in float32 anyway
    product_dtype   what to multiply in where sums must be exact: bfloat16 on a GPU, for the same reason; everywhere else `widen`'s

Tested in tests/attention/kernels/test_full.py (sums that bfloat16 and products that float16 cannot
hold) and by the laws of tests/laws in half precision.
"""

import torch
from torch import Tensor


def widen(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def leave_half(x: Tensor) -> Tensor:
    return x.float() if x.dtype == torch.float16 else x


def product_dtype(x: Tensor) -> torch.dtype:
    """bfloat16 where the hardware adds its products up in float32, else no less than float32."""
    if x.dtype == torch.bfloat16 and x.device.type == "cuda":
        return torch.bfloat16
    return torch.float64 if x.dtype == torch.float64 else torch.float32
