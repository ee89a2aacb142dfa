"""Saves and loads weights as safetensors files; names, shapes and types must all match.

A weight tied under two names is stored once, under the first. Names, shapes and types are compared
before the first number is copied, and all differences are listed, because half-loaded weights are
worse than none. safetensors files contain numbers only. They have no checksum of their own;
`storage` adds one. NaN or infinity in a tensor is an error whenever it is read: a model with such
weights would still answer, wrongly.

Tested against: bit-equality after a round trip; renamed pickles, oversized headers, missing and
misshapen weights; NaN and infinity in every number type.
"""

import contextlib
import errno
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headwise.errors import CheckpointError

Weights = Mapping[str, Tensor]
MAX_HEADER_BYTES, MAX_HEADER_ENTRIES = 4 << 20, 1 << 18
"""A model of 512 layers, the deepest a recipe may ask for, has 8,197 weights: with its optimiser 3
MB and 150,000 commas."""


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The tensors of a module (parameters and saved buffers), each under its first name."""
    seen: set[int] = set()
    found: dict[str, Tensor] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def is_part(tensor: Tensor) -> bool:
    """Whether the tensor is sharded over processes (a DTensor of torch)."""
    return hasattr(tensor, "to_local")


def local_part(tensor: Tensor) -> Tensor:
    """The part of a tensor in this process: all of it, unless it is sharded."""
    return tensor.to_local() if is_part(tensor) else tensor  # type: ignore[attr-defined]


def load_weights(module: nn.Module, path: Path) -> None:
    put_weights(weights_of(module), read_tensors(path), file=path)


def check_shapes(module: nn.Module, path: Path) -> None:
    """Compare a module (possibly on the meta device) with the header of a file."""
    expected = {name: tuple(tensor.shape) for name, tensor in weights_of(module).items()}
    try:
        _check_header(path)
        with _named_in_utf8(path) as name, safe_open(name, framework="pt") as file:
            names = file.keys()
            found = {name: tuple(file.get_slice(name).get_shape()) for name in names}
    except (OSError, SafetensorError) as error:
        raise _damaged(path, error) from error
    differences = [
        name
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
    if differences:
        raise _unfit(
            path,
            [f"{name}: {found.get(name)} instead of {expected.get(name)}" for name in differences],
        )


def write_tensors(path: Path, tensors: Weights) -> None:
    path.touch()
    permissions = path.stat().st_mode
    try:
        save_file(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path
        )
    except SafetensorError as error:
        # safetensors hides the system's error in a text; a full disk must be known as one.
        number = errno.ENOSPC if "os error 28" in str(error) else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from error
    # safetensors makes files that only the owner can read; a model may be shared.
    path.chmod(permissions)


def read_tensors(path: Path, *, lowest: float = -sys.float_info.max) -> dict[str, Tensor]:
    """All tensors of a safetensors file; the size of the header is checked before it is parsed.

    Every number must be finite; `lowest` is -inf for tables of log-probabilities, where log 0 is
    valid.
    """
    try:
        _check_header(path)
        with _named_in_utf8(path) as name:
            tensors = load_file(name)
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise _damaged(path, error) from error
    _check_finite(tensors, path, lowest)
    return tensors


@contextlib.contextmanager
def _named_in_utf8(path: Path) -> Iterator[Path]:
    """The file under a name that safetensors takes: it refuses any path that is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        with path.open("rb") as file:
            yield Path(f"/dev/fd/{file.fileno()}")
        return
    yield path


def _check_finite(tensors: Weights, path: Path, lowest: float) -> None:
    wrong = [name for name, tensor in sorted(tensors.items()) if not _is_finite(tensor, lowest)]
    if wrong:
        listed = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        listed_zh = "、".join(wrong[:5]) + (f" 等 {len(wrong)} 个" if len(wrong) > 5 else "")
        raise CheckpointError(
            f"holds numbers that are NaN or infinite (in {listed}), but weights must be finite; "
            "use another copy or an earlier checkpoint, or train the model again",
            f"含有 NaN 或无穷大（位于 {listed_zh}），而权重必须是有限的数；"
            "请用其他副本或更早的检查点，或重新训练",
            file=path,
        )


def _is_finite(tensor: Tensor, lowest: float) -> bool:
    """Minimum and maximum show it in one pass without a copy; both are NaN if one number is."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    least, largest = (bound.item() for bound in tensor.aminmax())
    return lowest <= least and largest < math.inf


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        header = (
            file.read(header_bytes)
            if header_bytes <= min(MAX_HEADER_BYTES, path.stat().st_size)
            else b""
        )
    # Commas bound what the parser will make: each tensor, number of a shape and remark takes one.
    if not header.startswith(b"{") or header.count(b",") > MAX_HEADER_ENTRIES:
        raise CheckpointError(
            "is not a safetensors file (another format under this name, or damaged); use the file "
            "that was saved",
            "不是 safetensors 文件（其他格式或已损坏）；请使用当初保存的文件",
            file=path,
        )


def _damaged(path: Path, error: Exception) -> CheckpointError:
    en, zh = f"is damaged ({error})", f"已损坏（{error}）"
    if isinstance(error, OSError):
        en, zh = f"cannot be read ({error.strerror})", f"无法读取（{error.strerror}）"
    return CheckpointError(
        f"{en}; use another copy or an earlier checkpoint",
        f"{zh}；请用其他副本或更早的检查点",
        file=path,
    )


def _unfit(path: Path | str | None, differences: list[str]) -> CheckpointError:
    listed = "; ".join(differences[:12]) + (
        f"; and {len(differences) - 12} more" if len(differences) > 12 else ""
    )
    return CheckpointError(
        f"does not fit this model ({listed}); use the recipe it was trained with",
        f"与此模型不符（{listed}）；请使用训练时的配方",
        file=path,
    )


@torch.no_grad()
def put_weights(target: Weights, source: Weights, *, file: Path | str | None = None) -> None:
    """Copy `source` into the tensors of `target` if names, shapes and types are the same."""
    check_fit(target, source, file=file)
    for name, tensor in target.items():
        tensor.copy_(source[name])


def check_fit(target: Weights, source: Weights, *, file: Path | str | None = None) -> None:
    """Compare names, shapes and types; a CheckpointError lists all differences."""
    differences = [f"missing {name}" for name in sorted(target.keys() - source.keys())]
    differences += [f"unknown {name}" for name in sorted(source.keys() - target.keys())]
    for name in sorted(target.keys() & source.keys()):
        if target[name].shape != source[name].shape or target[name].dtype != source[name].dtype:
            differences.append(f"{name} is {_form(source[name])} instead of {_form(target[name])}")
    if differences:
        raise _unfit(file, differences)


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
