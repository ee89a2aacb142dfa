"""The cost of a model before it is run: parameters, memory, and operations per token, part by part.

A matrix of n weights costs 2n operations (multiply and add) for every token. Attention costs what
its kernel declares (attention/costs.py): for full attention, one query against m keys costs
2·m·dim + 2·m·dim. The backward pass computes each product twice more (once for the inputs, once for
the weights), so a training step costs three forward passes (Kaplan et al. 2020, section 2.1).

    parameters        tied matrices are counted once
    training memory   weights + gradients + Adam's two moments, 4 bytes each; no activations
    decoder's cache   2 · layers · dim numbers for each token written, and as many for each source
                      token; a window or linear attention keeps a constant number

Look-ups, norms, softmax and residual sums are left out: they are below one percent.

Tested against: a case worked by hand, and torch's FlopCounterMode, forward and backward.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from headwise.attention.costs import count_cache, count_products
from headwise.attention.multi_head import MultiHeadAttention
from headwise.language import say
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.recurrent import costs as recurrent_costs
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.translation_model import TranslationModel

BYTES_FP32, BYTES_BF16 = 4, 2

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Title, headings, rows."""

# In the order of the table; a weight shared by several parts is counted in the first of them.
TITLES: dict[str, tuple[str, str]] = {
    "embedding": ("embeddings and positions", "词嵌入与位置"),
    "encoder_attention": ("encoder self-attention", "编码器自注意力"),
    "encoder_feed_forward": ("encoder feed-forward", "编码器前馈神经网络"),
    "decoder_attention": ("decoder self-attention", "解码器自注意力"),
    "cross_attention": ("cross-attention", "交叉注意力"),
    "decoder_feed_forward": ("decoder feed-forward", "解码器前馈神经网络"),
    "normalization": ("normalisation", "归一化"),
    "recurrent_encoder": ("encoder's recurrent layers", "编码器循环层"),
    "recurrent_decoder": ("decoder's recurrent layers", "解码器循环层"),
    "source_attention": ("attention and readout", "注意力与读出层"),
    "output": ("output", "输出层"),
}


@dataclass(frozen=True)
class PartDescription:
    """One part of a model; operations are those of a forward pass for one sentence of that side."""

    name: str
    parameters: int
    source_flops: int
    target_flops: int

    @property
    def title(self) -> str:
        return say(*TITLES[self.name])


@dataclass(frozen=True)
class MemoryDescription:
    """Bytes."""

    weights_fp32: int
    weights_bf16: int
    training: int
    """Weights, gradients and Adam's two moments in fp32; activations are not counted."""
    cache_per_target_token: int
    """Cache for each token of one hypothesis, fp32."""
    cache_fixed: int
    """Cache of one hypothesis of any length, fp32: windows, and the sums of linear attention."""
    cache_per_source_token: int
    """Cache of each source token, shared by all hypotheses of a sentence, fp32."""


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
        return self.of_source(sum(part.source_flops for part in self.parts))

    @property
    def flops_per_target_token(self) -> int:
        return self.of_target(sum(part.target_flops for part in self.parts))

    @property
    def forward_flops(self) -> int:
        """For one pair of sentences, the target given."""
        return sum(part.source_flops + part.target_flops for part in self.parts)

    def of_source(self, flops: int) -> int:
        """The share of one token of a sentence; in kernels that work in blocks it is an average."""
        return round(flops / self.source_length)

    def of_target(self, flops: int) -> int:
        return round(flops / self.target_length)

    @property
    def training_flops(self) -> int:
        """Forward and backward for one pair of sentences."""
        return 3 * self.forward_flops

    def tables(self) -> list[Table]:
        """As text: the parts with their sum, the memory, and the work for one pair of sentences."""
        lengths = f"{self.source_length} + {self.target_length}"
        memory = self.memory
        sizes = (
            (say("weights, fp32", "权重，fp32"), memory.weights_fp32),
            (say("weights, bf16", "权重，bf16"), memory.weights_bf16),
            (
                say("training (weights, gradients, Adam)", "训练（权重、梯度、Adam）"),
                memory.training,
            ),
            (
                say("decoder's cache per target token", "解码缓存，每目标词元"),
                memory.cache_per_target_token,
            ),
            (say("decoder's cache, fixed part", "解码缓存，固定部分"), memory.cache_fixed),
            (
                say("decoder's cache per source token", "解码缓存，每源词元"),
                memory.cache_per_source_token,
            ),
        )
        work = (
            (say("forward", "前向"), self.forward_flops),
            (say("training step", "训练一步"), self.training_flops),
        )
        return [
            self._parts_table(),
            (
                say("Memory", "内存"),
                (say("what", "项目"), say("size", "大小")),
                [(name, format_size(count)) for name, count in sizes],
            ),
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
            (
                part.title,
                part.parameters,
                self.of_source(part.source_flops),
                self.of_target(part.target_flops),
            )
            for part in self.parts
        ]
        total = (
            say("all", "合计"),
            self.parameters,
            self.flops_per_source_token,
            self.flops_per_target_token,
        )
        return say("Parts", "组成"), headings, _rows([*body, total])

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON; no names depend on the language."""
        parts = [
            asdict(part)
            | {
                "flops_per_source_token": self.of_source(part.source_flops),
                "flops_per_target_token": self.of_target(part.target_flops),
            }
            for part in self.parts
        ]
        return asdict(self) | {
            "parts": parts,
            "parameters": self.parameters,
            "flops_per_source_token": self.flops_per_source_token,
            "flops_per_target_token": self.flops_per_target_token,
            "forward_flops": self.forward_flops,
            "training_flops": self.training_flops,
        }


def describe(
    model: TranslationModel, *, source_length: int = 32, target_length: int = 32
) -> ModelDescription:
    """Costs of a model, for sentences of the given numbers of tokens."""
    match model:
        case EncoderDecoder():
            members = _members(model)
            flops = _flops(model, source_length=source_length, target_length=target_length)
            caches = [count_cache(block.self_attention) for block in model.decoder]
            of_target, fixed = (
                (sum(sizes) for sizes in zip(*caches, strict=True)) if caches else (0, 0)
            )
            of_source = sum(2 * block.self_attention.output.in_features for block in model.decoder)
        case RecurrentTranslator():
            members = recurrent_costs.members(model)
            per_source, per_target = recurrent_costs.count_flops(model, source_length=source_length)
            flops = _times(per_source, source_length), _times(per_target, target_length)
            of_target, fixed, of_source = 0, 0, recurrent_costs.cached_numbers(model)
        case _:
            raise AssertionError(f"no description of {type(model).__name__}")
    own = _count_once(members)
    parts = tuple(
        PartDescription(name, own[name], flops[0].get(name, 0), flops[1].get(name, 0))
        for name in own
    )
    num_parameters = sum(own.values())
    memory = MemoryDescription(
        weights_fp32=BYTES_FP32 * num_parameters,
        weights_bf16=BYTES_BF16 * num_parameters,
        training=4 * BYTES_FP32 * num_parameters,
        cache_per_target_token=BYTES_FP32 * of_target,
        cache_fixed=BYTES_FP32 * fixed,
        cache_per_source_token=BYTES_FP32 * of_source,
    )
    return ModelDescription(source_length, target_length, parts, memory)


def _members(model: EncoderDecoder) -> dict[str, list[nn.Module]]:
    blocks: list[nn.Module] = [*model.encoder, *model.decoder]
    residuals = [
        module
        for block in blocks
        for name, module in block.named_children()
        if name.endswith("_residual")
    ]
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


def _flops(
    model: EncoderDecoder, *, source_length: int, target_length: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Operations of each part for the source sentence and for the target sentence."""
    cross = _of_stack(
        [block.cross_attention for block in model.decoder], target_length, source_length
    )
    of_memory = source_length * _products(
        block.cross_attention.key_value for block in model.decoder
    )
    of_encoder = _of_stack([block.self_attention for block in model.encoder], source_length)
    of_decoder = _of_stack(
        [block.self_attention for block in model.decoder], target_length, is_causal=True
    )
    per_source = _times(
        {"encoder_feed_forward": _products(block.feed_forward for block in model.encoder)},
        source_length,
    )
    per_target = _times(
        {
            "decoder_feed_forward": _products(block.feed_forward for block in model.decoder),
            "output": _products([model.output]),
        },
        target_length,
    )
    return (
        per_source | {"encoder_attention": of_encoder, "cross_attention": of_memory},
        per_target | {"decoder_attention": of_decoder, "cross_attention": cross - of_memory},
    )


def _of_stack(
    layers: Sequence[MultiHeadAttention],
    num_queries: int,
    num_keys: int | None = None,
    *,
    is_causal: bool = False,
) -> int:
    """All layers of a stack are alike: one is counted."""
    return (
        len(layers) * count_products(layers[0], num_queries, num_keys, is_causal=is_causal)
        if layers
        else 0
    )


def _times(counts: dict[str, int], length: int) -> dict[str, int]:
    return {name: length * count for name, count in counts.items()}


def _products(modules: Iterable[nn.Module]) -> int:
    """Two operations for each weight of each linear map inside."""
    linear = (
        part for module in modules for part in module.modules() if isinstance(part, nn.Linear)
    )
    return sum(2 * part.weight.numel() for part in linear)


def format_size(num_bytes: int) -> str:
    """968,392,704 bytes as 923.5 MiB."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.1f} {unit}"
    return f"{num_bytes} B"


def _rows(entries: Iterable[tuple[str | int, ...]]) -> list[tuple[str, ...]]:
    return [
        tuple(f"{entry:,}" if isinstance(entry, int) else entry for entry in row) for row in entries
    ]
