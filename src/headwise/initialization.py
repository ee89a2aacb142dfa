"""Initial weights: every layer declares how its own weights begin, and `initialize` draws them.

A layer with weights has a method `initial_weights()` that gives each of its parameters a rule.
Rules are functions of a tensor and a generator:

    xavier             U(±gain · √(6 / (fan_in + fan_out)))       Glorot & Bengio 2010
    normal_by_width    N(0, 1/√width), for embeddings: tied logits start with variance one
    zeros, ones, …     constants

`initialize` goes through `module.named_parameters()`, so the order of the draws is the order in
which the layers were registered, and a parameter that several layers share is drawn once. A
parameter that no layer declares is a bug and raises an error.

Tested against: a table of all parameters with their rules, read by name
(tests/test_initialization.py), and the variances that the formulas promise.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Rule = Callable[[Tensor, torch.Generator], None]
InitialWeights = Iterable[tuple[Tensor, Rule]]

PROJECTION_GAIN = 1 / math.sqrt(2)
"""Queries, keys and values start smaller, as if they were one matrix of three times the width: the
choice of fairseq, which trains deep post-norm stacks more evenly."""


@runtime_checkable
class Initialized(Protocol):
    """A part that declares how its weights begin."""

    def initial_weights(self) -> InitialWeights:
        """Each parameter that the part owns, itself or in a plain torch layer, with its rule."""
        ...


def initialize(module: nn.Module, generator: torch.Generator) -> None:
    """Fill every parameter by the rule of its part; the generator alone decides the numbers."""
    rules: dict[int, Rule] = {}
    for part in module.modules():
        if isinstance(part, Initialized):
            for parameter, rule in part.initial_weights():
                rules.setdefault(id(parameter), rule)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            rule_of = rules.get(id(parameter))
            assert rule_of is not None, (
                f"no part declares how the parameter {name!r} begins; add it to the "
                "initial_weights() of the part that owns it"
            )
            rule_of(parameter, generator)


def initial_linear(layer: nn.Linear | nn.Conv1d, rule: Rule) -> Iterator[tuple[Tensor, Rule]]:
    """The weight by a rule, and a bias of zeros where there is one."""
    yield layer.weight, rule
    if layer.bias is not None:
        yield layer.bias, zeros


def initial_recurrent(layer: nn.RNNBase) -> Iterator[tuple[Tensor, Rule]]:
    """The matrices of one of torch's recurrent layers uniform by their inputs, biases of zeros."""
    for name, parameter in layer.named_parameters():
        yield parameter, zeros if name.startswith("bias") else uniform_by_inputs


def xavier(num_parts: int = 1, gain: float = 1.0) -> Rule:
    """Keeps the variance of signals and gradients alike across a layer.

    A fused projection is `num_parts` matrices on top of each other, each with its own fan-out.
    """

    def fill(weight: Tensor, generator: torch.Generator) -> None:
        for part in weight.chunk(num_parts, dim=0):
            bound = gain * math.sqrt(6.0 / (part.shape[0] + part.shape[1]))
            part.uniform_(-bound, bound, generator=generator)

    return fill


def normal_by_width(weight: Tensor, generator: torch.Generator) -> None:
    weight.normal_(0.0, weight.shape[-1] ** -0.5, generator=generator)


def uniform_by_inputs(weight: Tensor, generator: torch.Generator) -> None:
    bound = weight.shape[-1] ** -0.5
    weight.uniform_(-bound, bound, generator=generator)


def uniform_by_filter(weight: Tensor, generator: torch.Generator) -> None:
    """As `uniform_by_inputs`, where one output of a convolution reads several positions."""
    bound = weight[0].numel() ** -0.5
    weight.uniform_(-bound, bound, generator=generator)


def scaled_identity(weight: Tensor, generator: torch.Generator) -> None:
    """q · W k starts as the scaled dot product."""
    weight.zero_().diagonal().fill_(weight.shape[-1] ** -0.5)


def constant(value: float) -> Rule:
    def fill(weight: Tensor, generator: torch.Generator) -> None:
        weight.fill_(value)

    return fill


zeros, ones = constant(0.0), constant(1.0)


def copy_of(original: Tensor, rule: Rule) -> Rule:
    """A copy of a weight that was drawn before.

    The numbers of `rule` are drawn all the same, so that the parts after it get the same ones
    whether or not this weight is a copy.
    """

    def fill(weight: Tensor, generator: torch.Generator) -> None:
        rule(weight, generator)
        weight.copy_(original)

    return fill


class Unfilled(TorchFunctionMode):
    """Inside the block, torch's layers do not initialise their weights, because others will be
    loaded.

    Drawing random numbers for them takes half a second for 60 million, and on the meta device,
    where there is nothing to fill, three seconds of imports.
    """

    def __torch_function__(
        self,
        func: Callable,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__module__", None) == nn.init.__name__:
            return kwargs["tensor"] if kwargs and "tensor" in kwargs else args[0]
        return func(*args, **(kwargs or {}))
