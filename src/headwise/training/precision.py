"""Chooses number formats: matrix products in bf16 where the hardware supports it, everything else
in fp32.

bf16 has the range of fp32 with 8 bits of precision, so no loss scaling is needed (fp16 would need
it and is not offered). Weights, gradients, optimiser state, softmax, norms and the loss stay fp32;
autocast converts the operands of matrix products. Paper: Kalamkar et al. 2019. Tested by reading
back the dtypes, and by the tolerance tests of the loss.
"""

import contextlib
from pathlib import Path
from typing import Literal, get_args

import torch

from headwise.errors import UsageError

# x86: AVX-512 BF16 or AMX tiles; ARM: the `bf16` feature.
FAST_BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})


Device = Literal["auto", "cpu", "cuda"]


def choose_device(setting: Device) -> torch.device:
    if setting not in get_args(Device):
        raise UsageError(
            f"there is no device {setting!r}; choose one of {', '.join(get_args(Device))}",
            f"没有设备 {setting!r}；可选：{'、'.join(get_args(Device))}",
        )
    if setting == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "the device cuda was asked for, but PyTorch sees no GPU; install a CUDA build of "
            "torch or use cpu",
            "要求使用 cuda，但 PyTorch 找不到 GPU；请安装 CUDA 版 torch，或使用 cpu",
        )
    return torch.device("cuda" if setting != "cpu" and torch.cuda.is_available() else "cpu")


def choose_dtype(setting: Literal["auto", "fp32", "bf16"], device: torch.device) -> torch.dtype:
    if setting == "auto":
        return torch.bfloat16 if is_bf16_fast(device) else torch.float32
    return torch.bfloat16 if setting == "bf16" else torch.float32


def name_of(dtype: torch.dtype) -> str:
    """The name of a dtype in recipes."""
    return "bf16" if dtype == torch.bfloat16 else "fp32"


def is_bf16_fast(device: torch.device, *, cpu_information: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the hardware has bf16 instructions, so that it is not emulated."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    try:
        text = cpu_information.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    flags: set[str] = set()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags.update(value.split())
    return bool(FAST_BF16_FLAGS & flags)


def autocast(device: torch.device, dtype: torch.dtype) -> contextlib.AbstractContextManager[object]:
    """The context in which a loss is computed; does nothing for fp32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype == torch.bfloat16)
