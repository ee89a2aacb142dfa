"""Starts a model from a finished one of the same task (`model.start_from`): tokenizer and weights.

Weights are useless with another vocabulary or another shape, so the two recipes must agree in
language, text section and model settings; an error names each setting that differs. Some settings
may differ:

    dropout                                 shapes no weight
    encoder.layers, decoder.layers, layers  blocks that both have are taken over
    draft_heads, draft_decoder,             taken over if both have them in the same shape
    reward_baseline, output_bias

What is new then begins at random, what the new model does not have is left out, and both are listed
before training (`PartialLoad`). Translators (tasks/translation/translator_start.py) and language
models (tasks/language/language_start.py) use this file. Tested through them.
"""

import fnmatch
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from headwise.errors import CheckpointError
from headwise.language import say
from headwise.weights import put_weights, read_tensors, weights_of

FREE = ("start_from", "dropout", "dropout.*")
"""Settings of every model that may differ, by patterns of their names."""
OPTIONAL = re.compile(
    r"(draft_heads|draft_decoder|reward_baseline|encoder|decoder|blocks)\.|output\.bias$"
)
"""Weights that one of the two models may have alone, if those settings differ."""


@dataclass(frozen=True)
class PartialLoad:
    """Which weights were taken over, by name."""

    taken: int
    new: tuple[str, ...]
    """In the new model alone; they begin at random."""
    left_out: tuple[str, ...]
    """In the model it starts from alone."""

    def describe(self, file: Path) -> str:
        """One sentence; it lists parts if not all weights fit."""
        text = say(
            f"starts from {file.parent}: {self.taken} weights taken over",
            f"由 {file.parent} 开始：沿用 {self.taken} 个权重",
        )
        if self.new:
            parts = ", ".join(_parts(self.new))
            text += say(f"; new, at random: {parts}", f"；新增（随机初始化）：{parts}")
        if self.left_out:
            parts = ", ".join(_parts(self.left_out))
            text += say(f"; left out: {parts}", f"；未使用：{parts}")
        return text


def _parts(names: Sequence[str]) -> list[str]:
    """The blocks that weights belong to: encoder.3 for all of its weights."""
    found = re.compile(r"(encoder|decoder|blocks)\.\d+|[a-z_]+(\.bias)?")
    return sorted({match[0] for name in names if (match := found.match(name))})


def compare_weights(module: nn.Module, file: Path) -> PartialLoad:
    """What `put_start` has copied, without copying."""
    target, source = weights_of(module), read_tensors(file)
    shared = {name for name in target.keys() & source.keys() if _is_alike(target, source, name)}
    return PartialLoad(
        len(shared), tuple(sorted(target.keys() - shared)), tuple(sorted(source.keys() - shared))
    )


def put_start(module: nn.Module, file: Path) -> None:
    """Copy the weights of a finished model; only optional parts may be in one of the two alone."""
    target, source = weights_of(module), read_tensors(file)
    for name in target.keys() | source.keys():
        if OPTIONAL.match(name) and not _is_alike(target, source, name):
            target.pop(name, None)
            source.pop(name, None)
    put_weights(target, source, file=file)


def _is_alike(target: Mapping[str, Any], source: Mapping[str, Any], name: str) -> bool:
    return name in target and name in source and target[name].shape == source[name].shape


def check_agreement(
    there: Mapping[str, Any], here: Mapping[str, Any], path: Path, *, free: Sequence[str]
) -> None:
    """Refuse a start with another language, vocabulary or model; both sides by the keys of a
    recipe. `free`: patterns of settings of the model that may differ, beside FREE.
    """
    theirs, ours = _flat(there), _flat(here)
    differing = sorted(
        key
        for key in theirs.keys() | ours.keys()
        if theirs.get(key) != ours.get(key) and not _is_free(key, (*FREE, *free))
    )
    if differing:
        listed = ", ".join(
            f"{key}={theirs.get(key)} there, {ours.get(key)} here" for key in differing
        )
        raise CheckpointError(
            f"cannot be started from: another vocabulary or another model ({listed}); give the "
            "recipe the same settings, or start from another bundle",
            f"不能由此开始：词表或模型不同（{listed}）；请使配方的这些设置相同，或换一个模型",
            file=path,
        )


def _is_free(key: str, free: Sequence[str]) -> bool:
    section, _, name = key.partition(".")
    return section == "model" and any(fnmatch.fnmatchcase(name, pattern) for pattern in free)


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested settings by their whole keys: model.encoder.heads."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found


def require_start(path: Path, *, noun: tuple[str, str]) -> None:
    """Refuse a `model.start_from` that is not there."""
    if not path.exists():
        raise CheckpointError(
            f"model.start_from: nothing is there; train the {noun[0]} first, e.g. `headwise train "
            f"RECIPE --run {path}`, or start from nothing with model.start_from=null",
            f"model.start_from：该处什么也没有；请先训练{noun[1]}，例如 `headwise train "
            f"RECIPE --run {path}`，或用 model.start_from=null 从零开始",
            file=path,
        )


def digest_of(folder: Path) -> str:
    """Changes with the files of a tokenizer."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return hashlib.sha256("".join(digests).encode()).hexdigest()
