"""A trained model in the form it is used in: the same structure, its linear layers exchanged for ones made to be used only.

    form      products                                                   results
    plain     the modules as they were trained                           the reference
    packed    fp32, weights laid out for the processor                   equal up to the rounding of sums
    bf16      bf16 with fp32 sums; norms, softmax, residuals fp32        close (8 bits of precision in each product)
    int8      8-bit integers with exact sums; the rest fp32              close; BLEU within 0.3 in docs/experiments.md

`exchange` builds a second tree of modules around the same embeddings and norms; the model it is given stays as it is and can
go on training. What was chosen, and why something better was not, is said in `Form`.

Tested against: the plain model, for each form, layer by layer and through searches.
"""

import copy
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.int8_linear import choose_int8
from headwise.blocks.joint_attention import JointAttention, MakeLinear
from headwise.blocks.packed_linear import PackedLinear, refusal
from headwise.errors import UsageError
from headwise.language import say
from headwise.models.encoder_decoder import EncoderDecoder

Precision = Literal["auto", "fp32", "bf16", "int8"]


@dataclass(frozen=True)
class Form:
    """In what form a model computes."""

    name: Literal["plain", "packed", "bf16", "int8"]
    make_linear: MakeLinear | None = None
    remark: str | None = None
    """Why it is not a faster one."""

    @property
    def label(self) -> str:
        """In words, for people."""
        match self.name:
            case "plain":
                return say("as trained", "与训练时相同")
            case "packed":
                return say("fp32, weights packed", "fp32，权重已重排")
            case name:
                return name


def choose_form(precision: Precision, device: torch.device) -> Form:
    """The fastest form that keeps what `precision` promises; `auto` promises fp32 results."""
    if device.type != "cpu":
        return _choose_on_accelerator(precision, device)
    if precision == "int8":
        linear, reason = choose_int8()
        if linear is None:
            raise _missing("int8", reason)
        return Form("int8", linear, remark=None if reason is None else _slower("fbgemm", reason))
    if precision == "bf16":
        if (reason := refusal(torch.bfloat16)) is not None:
            raise _missing("bf16", reason)
        return Form("bf16", partial(PackedLinear, dtype=torch.bfloat16))
    if (reason := refusal(torch.float32)) is not None:
        return Form("plain", remark=_slower("oneDNN", reason))
    return Form("packed", partial(PackedLinear, dtype=torch.float32))


def _choose_on_accelerator(precision: Precision, device: torch.device) -> Form:
    if precision == "int8":
        raise UsageError(
            f"int8 is computed on a CPU only, and the device is {device.type}; use --precision bf16, or --device cpu",
            f"int8 只在 CPU 上计算，而设备是 {device.type}；请用 --precision bf16 或 --device cpu",
        )
    return Form("bf16" if precision == "bf16" else "plain")


def _missing(precision: str, reason: str | None) -> UsageError:
    return UsageError(
        f"{precision} cannot be computed here ({reason}); use --precision fp32",
        f"此处无法以 {precision} 计算（{reason}）；请用 --precision fp32",
    )


def _slower(name: str, reason: str) -> str:
    return say(
        f"slower than it could be: {name} cannot be used here ({reason})", f"未达最快：此处无法使用 {name}（{reason}）"
    )


def exchange(model: EncoderDecoder, form: Form) -> EncoderDecoder:
    """The model in this form, for inference only; `model` itself is not touched, and shares its embeddings and norms."""
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
        if isinstance(child, MultiHeadAttention) and name == "self_attention":
            setattr(module, name, JointAttention(child, make_linear))
        elif isinstance(child, nn.Linear):
            is_output = isinstance(module, EncoderDecoder)
            made = OutputLayer(child, make_linear) if is_output else make_linear(child.weight, child.bias)
            setattr(module, name, made)
        else:
            _exchange_linears(child, make_linear)


class OutputLayer(nn.Module):
    """The exchanged output layer. It keeps the trained weight, which it usually shares with the embedding, for who asks."""

    def __init__(self, trained: nn.Linear, make_linear: MakeLinear) -> None:
        super().__init__()
        self.weight, self.bias = trained.weight, trained.bias
        self.linear = make_linear(trained.weight, trained.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.linear(hidden)
