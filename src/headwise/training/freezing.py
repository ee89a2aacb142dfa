"""Freezes weights, and lets learning rates fall with depth: two ways to preserve a pretrained
model.

    freeze        encoder.embedding.*  or  layers 0-1     by name or number of a block; not trained
                  not draft_heads.*                       everything except these
    layer_decay   rate · decay^(top - depth)              depth: embeddings 0, block i: i + 1

`top` is the greatest depth. A frozen weight is not given to the optimiser, so that it stays the
same to the last bit. Papers: Howard & Ruder 2018 (discriminative learning rates, gradual
unfreezing); Yosinski et al. 2014 (transfer of layers). Tested: frozen weights are bit-identical;
rates equal the formula.
"""

import fnmatch
import re
from collections.abc import Sequence

from torch import nn

from headwise.errors import SettingsError

_BLOCK = re.compile(
    r"(?:^|\.)(?:blocks|encoder|decoder|layers|ahead|back|forwards|backwards)\.(\d+)\."
)
EXCEPT = "not "
_RANGE = re.compile(r"layers (\d+)(?:-(\d+))?")


def freeze(module: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Exclude the matching weights from training and return their names.

    A pattern that matches nothing, or patterns that match everything, are an error.
    """
    parameters = dict(module.named_parameters())
    frozen: set[str] = set()
    for pattern in patterns:
        found = {name for name in parameters if _matches(pattern, name)}
        if not found:
            names = ", ".join(sorted({name.rpartition(".")[0] for name in parameters})[:12])
            raise SettingsError(
                f"training.freeze: {pattern!r} matches no weight; write a pattern such as "
                f"encoder.embedding.* or a range such as 'layers 0-1'; there are {names} …",
                f"training.freeze：{pattern!r} 不匹配任何权重；请写模式，例如 "
                f"encoder.embedding.*，或范围，例如 'layers 0-1'；现有 {names} ……",
            )
        frozen |= found
    if patterns and len(frozen) == len(parameters):
        raise SettingsError(
            "training.freeze matches every weight, nothing is left to learn; take a pattern away",
            "training.freeze 匹配了全部权重，没有可学的；请去掉一个模式",
        )
    for name in frozen:
        parameters[name].requires_grad_(False)  # noqa: FBT003 - torch's own
    return sorted(frozen)


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith(EXCEPT):
        return not _matches(pattern.removeprefix(EXCEPT), name)
    if numbers := _RANGE.fullmatch(pattern.strip()):
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        block = _BLOCK.search(name)
        return block is not None and first <= int(block[1]) <= last
    return fnmatch.fnmatchcase(name, pattern)


def rate_scales(module: nn.Module, decay: float) -> dict[str, float]:
    """The factor of the learning rate for each weight."""
    names = [name for name, _ in module.named_parameters()]
    blocks = [int(found[1]) for name in names if (found := _BLOCK.search(name))]
    top = max(blocks, default=-1) + 2
    return {name: decay ** (top - _depth(name, top)) for name in names}


def _depth(name: str, top: int) -> int:
    if block := _BLOCK.search(name):
        return int(block[1]) + 1
    return (
        0 if any(part in name for part in ("embedding", "letters", "pairs", "characters")) else top
    )
