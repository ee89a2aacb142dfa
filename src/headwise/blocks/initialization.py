"""Initial weights: one table, read from top to bottom; the first rule that fits a parameter's name is used.

Linear weights are Xavier-uniform, U(±√(6/(fan_in + fan_out))) (Glorot & Bengio 2010), which keeps the variance of signals and
gradients alike across a layer; fused projections count each part by itself. Embeddings are normal with deviation
1/√dim, so that tied logits start with variance one.

Tested against: the variances the formulas promise, every parameter covered by exactly one rule.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headwise.attention.kernels.longformer import LongformerMultiHead

Rule = Callable[[Tensor, torch.Generator], None]


def _xavier(num_parts: int, gain: float = 1.0) -> Rule:
    def fill(weight: Tensor, generator: torch.Generator) -> None:
        for part in weight.chunk(num_parts, dim=0):
            bound = gain * math.sqrt(6.0 / (part.shape[0] + part.shape[1]))
            part.uniform_(-bound, bound, generator=generator)

    return fill


def _normal_by_dim(weight: Tensor, generator: torch.Generator) -> None:
    weight.normal_(0.0, weight.shape[-1] ** -0.5, generator=generator)


def _uniform_by_input(weight: Tensor, generator: torch.Generator) -> None:
    bound = weight.shape[-1] ** -0.5
    weight.uniform_(-bound, bound, generator=generator)


def _scaled_identity(weight: Tensor, generator: torch.Generator) -> None:
    """q · W k starts as the scaled dot product."""
    weight.zero_().diagonal().fill_(weight.shape[-1] ** -0.5)


def _ones(weight: Tensor, generator: torch.Generator) -> None:
    weight.fill_(1.0)


def _uniform_by_filter(weight: Tensor, generator: torch.Generator) -> None:
    bound = weight[0].numel() ** -0.5
    weight.uniform_(-bound, bound, generator=generator)


def _nearly_closed(weight: Tensor, generator: torch.Generator) -> None:
    """A highway's gate: at first nearly everything passes as it is."""
    weight.fill_(-2.0)


def _zeros(weight: Tensor, generator: torch.Generator) -> None:
    weight.zero_()


# Queries, keys and values start smaller (gain 1/√2), as if they were one matrix of thrice the width: fairseq's choice,
# which trains deep post-norm stacks more evenly.
TABLE: tuple[tuple[str, Rule], ...] = (
    (
        r"(.*\.)?(endings|together)\.weight",
        _zeros,
    ),  # an ending or a pair that is never seen in training says nothing
    (r"(.*\.)?(table|halves)\.weight", _normal_by_dim),
    (r"output\.weight", _normal_by_dim),
    (r".*\.((global_)?query|value)\.weight", _xavier(1, 1 / math.sqrt(2))),
    (r".*\.(global_)?key_value\.weight", _xavier(2, 1 / math.sqrt(2))),
    (r".*\.gate_widen\.weight", _xavier(2)),
    (
        r".*\.relation\.dynamics\.narrow\.weight",
        _zeros,
    ),  # a path that stands still at every length, and learns to move
    (r"(?!.*\.dynamics\.narrow).*\.(output|widen|narrow)\.weight", _xavier(1)),
    (r".*\.relation\.distance\.weight", _xavier(1, 1 / math.sqrt(2))),
    (r".*\.relation\.distance_(keys|values)", _normal_by_dim),
    (r".*\.relation\.(start|bucket_bias|content_bias|distance_bias)", _zeros),
    (r"(.*\.)?(query_map|key_map|joint_map|place_map|vote|place_hidden|place_vote)", _xavier(1)),
    (r"(.*\.)?between", _scaled_identity),
    (r"hidden\.weight", _xavier(1)),
    (r".*\.weight_(ih|hh|hr)_l0", _uniform_by_input),
    (r".*\.bias_(ih|hh)_l0", _zeros),
    (r".*\.(key|value)_summary", _normal_by_dim),
    (r"(.*\.)?filters\.\d+\.weight", _uniform_by_filter),
    (r"(.*\.)?(change|gate)\.weight", _xavier(1)),
    (r"(.*\.)?gate\.bias", _nearly_closed),
    (r"(.*\.)?layer_scores", _zeros),
    (r"(.*\.)?gain", _ones),
    (r"(?!.*gate\.bias)(.*\.)?(bias|shift|log_scale|log_width)", _zeros),
)


def rule_for(name: str) -> Rule:
    for pattern, rule in TABLE:
        if re.fullmatch(pattern, name):
            return rule
    raise AssertionError(
        f"no initialisation rule for the parameter {name!r}; add a row to the table"
    )


def initialize(module: nn.Module, generator: torch.Generator) -> None:
    """Fill every parameter by the table; the same generator state gives the same weights."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            rule_for(name)(parameter, generator)
        for part in module.modules():
            if isinstance(part, LongformerMultiHead):
                part.begin_alike()


class Unfilled(TorchFunctionMode):
    """While open, layers that are made leave their weights as the memory was, because others will be put there at once.

    torch's layers fill themselves with random numbers: half a second for 60 million, and on the meta device, where there is
    nothing to fill, three seconds of imports.
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
