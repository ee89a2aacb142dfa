"""Faster forms of a trained model for inference: its linear layers are replaced.

    form      products                                              results
    plain     the layers as they were trained                       the reference
    packed    fp32, weights laid out for the processor              equal up to the rounding of sums
    fp16      weights in fp16; products and sums fp32               within 1e-4 of each product
    bf16      weights and operands in bf16, sums fp32; rest fp32    within 3e-3
    int8      8-bit integers, exact sums; the rest fp32             within 1e-2

`exchange` builds a second tree of `nn.Module`s around the same embeddings and norms; the original
model is not changed and can go on training. `InferenceForm` says which form was chosen and why a
faster one was not. docs/experiments has what each form costs in BLEU and gains in speed.

Tested against: the plain model, for each form, layer by layer and through searches.
"""

import copy
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.inference.half_linear import HalfLinear
from headwise.blocks.inference.int8_linear import FbgemmLinear, IntegerLinear
from headwise.blocks.inference.joint_attention import JointAttention
from headwise.blocks.inference.operator_probe import MakeLinear, refusal_of
from headwise.blocks.inference.packed_linear import PackedLinear
from headwise.errors import UsageError
from headwise.language import say
from headwise.models.translation_model import TranslationModel

Model = TypeVar("Model", bound=TranslationModel)
Precision = Literal["auto", "fp32", "fp16", "bf16", "int8"]
FormName = Literal["plain", "packed", "fp16", "bf16", "int8"]


@dataclass(frozen=True)
class InferenceForm:
    """How the linear layers of a model compute."""

    name: FormName
    make_linear: MakeLinear | None = None
    remark: str | None = None
    """Why a faster form could not be used."""

    @property
    def label(self) -> str:
        """Its name as text."""
        match self.name:
            case "plain":
                return say("as trained", "与训练时相同")
            case "packed":
                return say("fp32, weights packed", "fp32，权重已重排")
            case name:
                return name


_PACKED, _PACKED_BF16 = (
    partial(PackedLinear, dtype=dtype) for dtype in (torch.float32, torch.bfloat16)
)
# For each precision the form it leads to and the layers that offer it, fastest first: name, maker,
# error allowed in a trial.
_OFFERS: dict[Precision, tuple[FormName, tuple[tuple[str, MakeLinear, float], ...]]] = {
    "fp32": ("packed", (("oneDNN", _PACKED, 1e-4),)),
    "fp16": ("fp16", (("fbgemm", HalfLinear, 0.03),)),
    "bf16": ("bf16", (("oneDNN", _PACKED_BF16, 0.3),)),
    "int8": ("int8", (("fbgemm", FbgemmLinear, 0.5), ("torch._int_mm", IntegerLinear, 0.5))),
}


def choose_form(precision: Precision, device: torch.device) -> InferenceForm:
    """The fastest form of this precision; `auto` gives the results of fp32."""
    if device.type != "cpu":
        return _choose_on_accelerator(precision, device)
    wanted: Precision = "fp32" if precision == "auto" else precision
    name, offers = _OFFERS[wanted]
    refusals: list[str] = []
    for library, make, tolerance in offers:
        reason = _refusal(make, tolerance)
        if reason is None:
            return InferenceForm(name, make, remark="; ".join(refusals) or None)
        refusals.append(
            say(
                f"slower: {library} cannot be used here ({reason})",
                f"较慢：此处无法使用 {library}（{reason}）",
            )
        )
    if wanted == "fp32":
        return InferenceForm("plain", remark="; ".join(refusals))
    raise UsageError(
        f"{precision} cannot be computed here ({'; '.join(refusals)}); use --precision fp32",
        f"此处无法以 {precision} 计算（{'；'.join(refusals)}）；请用 --precision fp32",
    )


_refusal = cache(lambda make, tolerance: refusal_of(make, tolerance=tolerance))


def _choose_on_accelerator(precision: Precision, device: torch.device) -> InferenceForm:
    if precision in ("int8", "fp16"):
        raise UsageError(
            f"{precision} is computed on a CPU only, and the device is {device.type}; use "
            "--precision bf16, or --device cpu",
            f"{precision} 只在 CPU 上计算，而设备是 {device.type}；"
            "请用 --precision bf16 或 --device cpu",
        )
    return InferenceForm("bf16" if precision == "bf16" else "plain")


def exchange(model: Model, form: InferenceForm) -> Model:
    """The model in this form, for inference only.

    `model` itself is not changed; embeddings and norms are shared with it.
    """
    if form.name == "plain":
        return model
    if form.make_linear is None:
        return copy.deepcopy(model).to(torch.bfloat16)
    tensors = [*model.parameters(), *model.buffers()]
    exchanged = copy.deepcopy(model, {id(tensor): tensor for tensor in tensors}).eval()
    _exchange_linears(exchanged, form.make_linear)
    return exchanged


def _exchange_linears(module: nn.Module, make_linear: MakeLinear) -> None:
    for name, child in list(module.named_children()):
        if type(child) is MultiHeadAttention and name == "self_attention":
            setattr(module, name, JointAttention(child, make_linear))
        elif isinstance(child, nn.Linear):
            is_output = isinstance(module, TranslationModel)
            made = (
                OutputLayer(child, make_linear)
                if is_output
                else make_linear(child.weight, child.bias)
            )
            setattr(module, name, made)
        else:
            _exchange_linears(child, make_linear)


class OutputLayer(nn.Module):
    """An output layer for inference, which also keeps the trained weight for others to read."""

    def __init__(self, trained: nn.Linear, make_linear: MakeLinear) -> None:
        super().__init__()
        self.weight, self.bias = trained.weight, trained.bias
        self.linear = make_linear(trained.weight, trained.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.linear(hidden)
