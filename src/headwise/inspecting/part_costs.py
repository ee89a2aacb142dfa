"""Counts parameters and operations of a model of any task, part by part.

A part is a submodule of the model, named like its weights with `*` for the number of a layer:
`blocks.*.self_attention`; the module that owns it declares what people call it
(settings/part_names.py). One sentence goes through the model and its loss on tensors without
content (planning/step_tracing.py), and each product is added to the part that computes it. Products
outside all parts belong to the output, because the loss multiplies by the output's weights itself.

    parameters      shared weights are counted once, in the first part that has them
    operations      of the forward pass; a training step costs three times as much (each product is
                    computed twice more: for its inputs and for its weights; Kaplan et al. 2020)

Tested against: translators worked out by hand, all parameters of the model, and torch's
FlopCounterMode.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from headwise.models.recurrent.language_model import Carrying
from headwise.models.segment_memory import Remembering
from headwise.planning.step_tracing import count_flops
from headwise.settings.kind import Words
from headwise.settings.part_names import name_of_part
from headwise.tasks.planned_step import PlannedStep
from headwise.tasks.shape_only_modules import make_contentless

OUTPUT = "output"
OTHER_CALLS = ("step", "map_keys")
"""Methods through which a recurrent decoder calls its parts, beside `forward`."""


@dataclass(frozen=True)
class PartCost:
    """One part of a model; operations are those of a forward pass over one sentence."""

    name: str
    """The path of its weights, which JSON has."""
    parameters: int
    flops: int
    title: Words
    """What its module calls it (settings/part_names.py)."""


def count_parts(step: PlannedStep, *, length: int) -> tuple[PartCost, ...]:
    """The parts of a model in their order, for a sentence of so many tokens."""
    with torch.device("meta"):
        module = _network_of(step.build(1))
    parameters: Counter[str] = Counter()
    for name, weight in module.named_parameters():
        parameters[name_part(name.rpartition(".")[0] or name)] += weight.numel()
    flops = _count_flops(step, tuple(parameters), length)
    names = [*parameters, *(name for name in flops if name not in parameters)]
    return tuple(
        PartCost(name, parameters[name], flops[name], _title(module, name)) for name in names
    )


def _title(module: nn.Module, name: str) -> Words:
    found = name_of_part(module, name)
    return ("output", "输出层") if found == (OUTPUT, OUTPUT) else found


def _network_of(module: nn.Module) -> nn.Module:
    """The model whose weights a bundle holds, without the states that a training carries along."""
    return module.model if isinstance(module, Carrying | Remembering) else module


def name_part(path: str) -> str:
    """The part that a module belongs to: layers are not told apart, and a layer's parts are whole.

    `encoder.3.self_attention.query` belongs to `encoder.*.self_attention`.
    """
    words = ["*" if word.isdigit() else word for word in path.split(".")]
    last = words.index("*") + 2 if "*" in words else len(words)
    return ".".join(words[:last])


def _count_flops(step: PlannedStep, names: tuple[str, ...], length: int) -> Counter[str]:
    with FakeTensorMode(), torch.device("cpu"), torch.no_grad():
        module = step.build(1).eval()
        make_contentless(module)
        trainable = step.trainable(module, step.chunk_size(1, cuda=False))
        batch = step.batch(1, length)
        with (
            _naming_calls(_network_of(module), names) as open_parts,
            _Counter(open_parts) as counter,
        ):
            trainable.loss(batch)
    return counter.flops


@contextmanager
def _naming_calls(module: nn.Module, names: tuple[str, ...]) -> Iterator[list[str]]:
    """Inside, the list holds the parts whose modules are being called, the innermost last."""
    open_parts = [OUTPUT]

    def enter(name: str) -> Any:
        return lambda *_: open_parts.append(name)

    def leave(*_: Any) -> None:
        open_parts.pop()

    def named(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any) -> Any:
            open_parts.append(name)
            try:
                return method(*args)
            finally:
                open_parts.pop()

        return call

    with ExitStack() as stack:
        for path, part in module.named_modules():
            name = _find_part(module, path, names) if path else None
            if name is not None:
                for handle in (
                    part.register_forward_pre_hook(enter(name)),
                    part.register_forward_hook(leave),
                ):
                    stack.callback(handle.remove)
                for method in OTHER_CALLS:
                    if hasattr(part, method):
                        setattr(part, method, named(name, getattr(part, method)))
        yield open_parts


def _find_part(module: nn.Module, path: str, names: tuple[str, ...]) -> str | None:
    """The part that a module's own products belong to: the part of its name, the only part inside
    of it, or the module itself if it has a title.
    """
    name = name_part(path)
    if name in names:
        return name
    inside = [one for one in names if one.startswith(f"{name}.")]
    if len(inside) == 1:
        return inside[0]
    return None if name_of_part(module, name) == (name, name) else name


class _Counter(TorchDispatchMode):
    def __init__(self, open_parts: list[str]) -> None:
        super().__init__()
        self.open_parts = open_parts
        self.flops: Counter[str] = Counter()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        outputs = [result] if isinstance(result, Tensor) else []
        _, flops = count_flops(function, args, outputs)
        if flops:
            self.flops[self.open_parts[-1]] += flops
        return result
