"""What a model costs before it is run: parameters, memory, and arithmetic per token, part by part.

A matrix of n weights costs 2n operations (multiply and add) for every token it meets, and comparing one query with m keys
of width dim, then mixing m values, 2·m·dim + 2·m·dim. The backward pass does each product twice more (once for the
inputs, once for the weights), so a training step costs three forward passes (Kaplan et al. 2020, section 2.1).

    parameters        tied matrices counted once
    training memory   weights + gradients + Adam's two moments, 4 bytes each; activations come on top
    decoder's cache   2 · layers · dim numbers for each token written, and as many for each token of the source

Look-ups, norms, softmax and residual sums are left out: they are below one percent. Attention is counted as if every key
were compared, the way `full` computes it; masks only save time in kernels that skip.

Tested against: a case worked by hand, and torch's FlopCounterMode, forward and backward.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from headwise.attention.multi_head import MultiHeadAttention
from headwise.language import say
from headwise.models import recurrent_costs
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.recurrent_translator import RecurrentTranslator
from headwise.models.translation_model import TranslationModel

BYTES_FP32, BYTES_BF16 = 4, 2

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Title, headings, rows."""

# In the order of the table; a weight shared by several parts is counted in the first of them.
TITLES: dict[str, tuple[str, str]] = {
    "embedding": ("embeddings and positions", "词嵌入与位置"),
    "encoder_attention": ("encoder self-attention", "编码器自注意力"),
    "encoder_feed_forward": ("encoder feed-forward", "编码器前馈层"),
    "decoder_attention": ("decoder self-attention", "解码器自注意力"),
    "cross_attention": ("cross-attention", "交叉注意力"),
    "decoder_feed_forward": ("decoder feed-forward", "解码器前馈层"),
    "normalization": ("normalisation", "归一化"),
    "recurrent_encoder": ("encoder's recurrent layers", "编码器循环层"),
    "recurrent_decoder": ("decoder's recurrent layers", "解码器循环层"),
    "source_attention": ("attention and readout", "注意力与读出层"),
    "output": ("output", "输出层"),
}


@dataclass(frozen=True)
class PartDescription:
    """One part of a model; operations are those of a forward pass for one token of that side."""

    name: str
    parameters: int
    flops_per_source_token: int
    flops_per_target_token: int

    @property
    def title(self) -> str:
        return say(*TITLES[self.name])


@dataclass(frozen=True)
class MemoryDescription:
    """Bytes."""

    weights_fp32: int
    weights_bf16: int
    training: int
    """Weights, gradients and Adam's two moments in fp32; activations depend on the batch and come on top."""
    cache_per_target_token: int
    """What a decoder keeps for each token of one hypothesis, fp32."""
    cache_per_source_token: int
    """What it keeps of each source token, shared by all hypotheses of a sentence, fp32."""


@dataclass(frozen=True)
class ModelDescription:
    """The costs of a model for sentences of the stated lengths."""

    source_length: int
    target_length: int
    parts: tuple[PartDescription, ...]
    memory: MemoryDescription

    @property
    def parameters(self) -> int:
        return sum(part.parameters for part in self.parts)

    @property
    def flops_per_source_token(self) -> int:
        return sum(part.flops_per_source_token for part in self.parts)

    @property
    def flops_per_target_token(self) -> int:
        return sum(part.flops_per_target_token for part in self.parts)

    @property
    def forward_flops(self) -> int:
        """For one pair of sentences, the target given."""
        return self.source_length * self.flops_per_source_token + self.target_length * self.flops_per_target_token

    @property
    def training_flops(self) -> int:
        """Forward and backward for one pair of sentences."""
        return 3 * self.forward_flops

    def tables(self) -> list[Table]:
        """For people: the parts with their sum, the memory, and the work of one pair of sentences."""
        lengths = f"{self.source_length} + {self.target_length}"
        memory = self.memory
        sizes = (
            (say("weights, fp32", "权重，fp32"), memory.weights_fp32),
            (say("weights, bf16", "权重，bf16"), memory.weights_bf16),
            (say("training (weights, gradients, Adam)", "训练（权重、梯度、Adam）"), memory.training),
            (say("decoder's cache per target token", "解码缓存，每目标词元"), memory.cache_per_target_token),
            (say("decoder's cache per source token", "解码缓存，每源词元"), memory.cache_per_source_token),
        )
        work = ((say("forward", "前向"), self.forward_flops), (say("training step", "训练一步"), self.training_flops))
        return [
            self._parts_table(),
            (say("Memory", "内存"), (say("what", "项目"), say("bytes", "字节")), _rows(sizes)),
            (
                say(f"One pair of sentences ({lengths} tokens)", f"一对句子（{lengths} 个词元）"),
                (say("pass", "过程"), "FLOPs"),
                _rows(work),
            ),
        ]

    def _parts_table(self) -> Table:
        headings = (
            say("part", "部分"),
            say("parameters", "参数"),
            say("FLOPs / source token", "每源词元 FLOPs"),
            say("FLOPs / target token", "每目标词元 FLOPs"),
        )
        body = [
            (part.title, part.parameters, part.flops_per_source_token, part.flops_per_target_token)
            for part in self.parts
        ]
        total = (say("all", "合计"), self.parameters, self.flops_per_source_token, self.flops_per_target_token)
        return say("Parts", "组成"), headings, _rows([*body, total])

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON; no names depend on the language."""
        return asdict(self) | {
            "parameters": self.parameters,
            "flops_per_source_token": self.flops_per_source_token,
            "flops_per_target_token": self.flops_per_target_token,
            "forward_flops": self.forward_flops,
            "training_flops": self.training_flops,
        }


def describe(model: TranslationModel, *, source_length: int = 32, target_length: int = 32) -> ModelDescription:
    """Costs of a model, for sentences of the given numbers of tokens."""
    match model:
        case EncoderDecoder():
            members = _members(model)
            flops = _flops(model, source_length=source_length, target_length=target_length)
            of_target = of_source = sum(2 * block.self_attention.output.in_features for block in model.decoder)
        case RecurrentTranslator():
            members = recurrent_costs.members(model)
            flops = recurrent_costs.count_flops(model, source_length=source_length)
            of_target, of_source = 0, recurrent_costs.cached_numbers(model)
        case _:
            raise AssertionError(f"no description of {type(model).__name__}")
    own = _count_once(members)
    parts = tuple(PartDescription(name, own[name], flops[0].get(name, 0), flops[1].get(name, 0)) for name in own)
    num_parameters = sum(own.values())
    memory = MemoryDescription(
        weights_fp32=BYTES_FP32 * num_parameters,
        weights_bf16=BYTES_BF16 * num_parameters,
        training=4 * BYTES_FP32 * num_parameters,
        cache_per_target_token=BYTES_FP32 * of_target,
        cache_per_source_token=BYTES_FP32 * of_source,
    )
    return ModelDescription(source_length, target_length, parts, memory)


def _members(model: EncoderDecoder) -> dict[str, list[nn.Module]]:
    blocks: list[nn.Module] = [*model.encoder, *model.decoder]
    residuals = [module for block in blocks for name, module in block.named_children() if name.endswith("_residual")]
    return {
        "embedding": [model.source_embedding, model.target_embedding],
        "encoder_attention": [block.self_attention for block in model.encoder],
        "encoder_feed_forward": [block.feed_forward for block in model.encoder],
        "decoder_attention": [block.self_attention for block in model.decoder],
        "cross_attention": [block.cross_attention for block in model.decoder],
        "decoder_feed_forward": [block.feed_forward for block in model.decoder],
        "normalization": [*residuals, model.encoder_norm, model.decoder_norm],
        "output": [model.output],
    }


def _count_once(members: dict[str, list[nn.Module]]) -> dict[str, int]:
    seen: set[int] = set()
    counts: dict[str, int] = {}
    for name in (title for title in TITLES if title in members):
        fresh = {
            id(parameter): parameter.numel()
            for module in members[name]
            for parameter in module.parameters()
            if id(parameter) not in seen
        }
        seen.update(fresh)
        counts[name] = sum(fresh.values())
    return counts


def _flops(model: EncoderDecoder, *, source_length: int, target_length: int) -> tuple[dict[str, int], dict[str, int]]:
    """Operations of each part per source token and per target token."""
    encoder_attention, decoder_attention, cross_attention = (
        [block.self_attention for block in model.encoder],
        [block.self_attention for block in model.decoder],
        [block.cross_attention for block in model.decoder],
    )
    per_source = {
        "encoder_attention": _products(encoder_attention) + _comparisons(encoder_attention, source_length),
        "encoder_feed_forward": _products(block.feed_forward for block in model.encoder),
        "cross_attention": _products(layer.key_value for layer in cross_attention),
    }
    per_target = {
        "decoder_attention": _products(decoder_attention) + _comparisons(decoder_attention, target_length),
        "cross_attention": _products(part for layer in cross_attention for part in (layer.query, layer.output))
        + _comparisons(cross_attention, source_length),
        "decoder_feed_forward": _products(block.feed_forward for block in model.decoder),
        "output": _products([model.output]),
    }
    return per_source, per_target


def _products(modules: Iterable[nn.Module]) -> int:
    """Two operations for each weight of each linear map inside."""
    linear = (part for module in modules for part in module.modules() if isinstance(part, nn.Linear))
    return sum(2 * part.weight.numel() for part in linear)


def _comparisons(layers: Iterable[MultiHeadAttention], num_keys: int) -> int:
    """One query against all keys, and the mean of all values."""
    return sum(4 * num_keys * layer.output.in_features for layer in layers)


def _rows(entries: Iterable[tuple[str | int, ...]]) -> list[tuple[str, ...]]:
    return [tuple(f"{entry:,}" if isinstance(entry, int) else entry for entry in row) for row in entries]
