"""Converts a Transformer to a CTranslate2 network: the same weights under other names.

    Headwise                   CTranslate2 (ctranslate2.specs)
    query, key_value           self_attention.linear_0 (all three stacked);
                               cross-attention: linear_0 and linear_1
    gate_widen (gate, wide)    linear_0 with its activation, linear_0_noact
    sinusoidal, learned        position_encodings.encodings, a table, because CTranslate2 orders
                               its own sinusoids differently
    rotary                     rotary_dim
    relative                   relative_position_keys, relative_position_values
    t5                         relative_attention_bias

Klein et al. 2020 (OpenNMT's engine, C++ without torch). If CTranslate2 cannot express a layer of
the model, an error names it before anything is written.

Tested against: the log-probability of every token and the results of both searches, for each
combination (1e-4).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headwise.attention.choices import AttentionSettings, Full, Fused
from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.choices import Gated, Layer, Relu, Rms, Silu
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.feed_forward import FeedForward, GatedFeedForward
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.errors import UsageError
from headwise.models.choices import EncoderDecoderSettings, TranslatorSettings
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.positions.choices import Buckets, Learned, Relative, Rotary, Sinusoidal
from headwise.positions.learned import LearnedPositions
from headwise.positions.relative import RelativeRelation
from headwise.positions.sinusoidal import sinusoidal_table
from headwise.positions.t5 import T5Relation

if TYPE_CHECKING:
    from ctranslate2.specs.transformer_spec import TransformerSpec

TOKENIZERS = ("sentencepiece", "imported_pieces")
"""Kinds of text whose pieces a sentencepiece model cuts; the first can be trained."""
ADDED = Sinusoidal | Learned
KNOWN_POSITIONS = Sinusoidal | Learned | Rotary | Relative | Buckets


def require_expressible(settings: TranslatorSettings, *, tokenizer: str) -> EncoderDecoderSettings:
    """The settings of a model that can be exported; others are refused with all reasons."""
    found = list(_obstacles(settings, tokenizer=tokenizer))
    if found:
        raise UsageError(
            "this model has "
            f"{'; '.join(f'{what} (CTranslate2 takes {known})' for what, known in found)}; ship "
            "the bundle with Headwise itself (headwise serve), or train with what CTranslate2 "
            "takes",
            "该模型有 "
            f"{'；'.join(f'{what}（CTranslate2 支持 {known}）' for what, known in found)}；请连同 "
            "Headwise 一起部署原模型（headwise serve），或改用 CTranslate2 支持的设置训练",
        )
    assert isinstance(settings, EncoderDecoderSettings)
    return settings


def _obstacles(settings: TranslatorSettings, *, tokenizer: str) -> Iterator[tuple[str, str]]:
    """Pairs of what the model has and what CTranslate2 supports instead."""
    if tokenizer not in TOKENIZERS:
        yield f"text.kind={tokenizer}", TOKENIZERS[0]
    if not isinstance(settings, EncoderDecoderSettings):
        yield f"model.kind={settings.kind}", "encoder_decoder"
        return
    kernels: dict[str, AttentionSettings] = {
        "encoder.attention": settings.encoder.attention,
        "decoder.attention": settings.decoder.attention,
        "decoder.cross_attention": settings.decoder.cross_attention,
    }
    for name, kernel in kernels.items():
        if isinstance(kernel, Full) and kernel != Full():
            yield (
                f"model.{name}.kind=full with another score, weights or window",
                "full as it is, fused",
            )
        elif not isinstance(kernel, Full | Fused):
            yield f"model.{name}.kind={kernel.kind}", "full, fused"
    if settings.decoder.views != "top":
        yield f"model.decoder.views={settings.decoder.views}", "top"
    if not isinstance(settings.position, KNOWN_POSITIONS):
        yield (
            f"model.position.kind={settings.position.kind}",
            "sinusoidal, learned, rotary, relative, t5",
        )
    if not isinstance(settings.norm, Layer | Rms):
        yield f"model.norm.kind={settings.norm.kind}", "layer, rms"
    for name, layers in (
        ("encoder", settings.encoder.layers),
        ("decoder", settings.decoder.layers),
    ):
        if layers == 0:
            yield f"model.{name}.layers=0", "1 or more"


def build_network(
    model: EncoderDecoder,
    settings: EncoderDecoderSettings,
    *,
    vocabularies: tuple[Sequence[str], Sequence[str]],
    longest: int,
) -> "TransformerSpec":
    """The network with copies of the weights, since CTranslate2 rounds them in place. `longest` is
    the number of positions of a sinusoidal table.
    """
    from ctranslate2.specs import transformer_spec

    shape = _describe_shape(settings)
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(
            settings.encoder.layers, settings.encoder.heads, **shape
        ),
        transformer_spec.TransformerDecoderSpec(
            settings.decoder.layers, settings.decoder.heads, **shape
        ),
    )
    with torch.no_grad():
        _fill_embedding(
            spec.encoder,
            spec.encoder.embeddings[0],
            model.source_embedding,
            settings,
            longest=longest,
        )
        _fill_embedding(
            spec.decoder, spec.decoder.embeddings, model.target_embedding, settings, longest=longest
        )
        for layer, block in zip(spec.encoder.layer, model.encoder, strict=True):
            _fill_self_attention(
                layer.self_attention, block.self_attention, block.attention_residual.norm
            )
            _fill_feed_forward(layer.ffn, block.feed_forward, block.feed_forward_residual.norm)
        for layer, own in zip(spec.decoder.layer, model.decoder, strict=True):
            _fill_self_attention(
                layer.self_attention, own.self_attention, own.attention_residual.norm
            )
            cross = own.cross_attention
            for linear, part in zip(
                layer.attention.linear, (cross.query, cross.key_value, cross.output), strict=True
            ):
                _fill_linear(linear, part)
            _fill_norm(layer.attention.layer_norm, own.cross_residual.norm)
            _fill_feed_forward(layer.ffn, own.feed_forward, own.feed_forward_residual.norm)
        if settings.norm.place == "before":
            _fill_norm(spec.encoder.layer_norm, model.encoder_norm)
            _fill_norm(spec.decoder.layer_norm, model.decoder_norm)
        _fill_linear(spec.decoder.projection, model.output)
    spec.register_source_vocabulary(list(vocabularies[0]))
    spec.register_target_vocabulary(list(vocabularies[1]))
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = settings.norm.epsilon
    spec.validate()
    return spec


def _describe_shape(settings: EncoderDecoderSettings) -> dict[str, Any]:
    """The options of both stacks: norms, activation, positions."""
    from ctranslate2.specs.common_spec import Activation

    match settings.feed_forward:
        case Gated() | Silu():
            activation = Activation.SWISH
        case Relu():
            activation = Activation.RELU
        case _:
            activation = Activation.GELU
    shape: dict[str, Any] = {
        "pre_norm": settings.norm.place == "before",
        "rms_norm": isinstance(settings.norm, Rms),
        "activation": activation,
        "ffn_glu": isinstance(settings.feed_forward, Gated),
        "relative_position": isinstance(settings.position, Relative),
        "relative_attention_bias": isinstance(settings.position, Buckets),
    }
    if isinstance(settings.position, Rotary):
        interleaved = settings.position.pairing == "interleaved"
        shape |= {
            "rotary_dim": 0,
            "rotary_interleave": interleaved,
            "rotary_base": settings.position.base,
        }
    return shape


def _copied(tensor: Tensor) -> NDArray[np.float32]:
    return np.array(tensor.detach().float().cpu().numpy(), copy=True)


def _fill_linear(linear: Any, *parts: nn.Linear) -> None:
    """Copy several layers into one: their outputs are concatenated."""
    linear.weight = np.concatenate([_copied(part.weight) for part in parts])
    if parts[0].bias is not None:
        linear.bias = np.concatenate([_copied(part.bias) for part in parts])


def _fill_norm(norm: Any, own: nn.Module) -> None:
    assert isinstance(own, LayerNorm | RMSNorm)
    norm.gamma = _copied(own.gain)
    if isinstance(own, LayerNorm):
        norm.beta = _copied(own.shift)


def _fill_embedding(
    stack: Any, table: Any, own: TokenEmbedding, settings: EncoderDecoderSettings, *, longest: int
) -> None:
    table.weight = _copied(own.table.weight)
    stack.scale_embeddings = own.scale
    match own.positions:
        case LearnedPositions(table=learned):
            stack.position_encodings.encodings = _copied(learned.weight)
        case None:
            pass
        case _:
            assert isinstance(settings.position, Sinusoidal)
            waves = sinusoidal_table(longest, settings.dim, layout=settings.position.layout)
            stack.position_encodings.encodings = _copied(waves)


def _fill_self_attention(attention: Any, own: MultiHeadAttention, norm: nn.Module) -> None:
    _fill_linear(attention.linear[0], own.query, own.key_value)
    _fill_linear(attention.linear[1], own.output)
    _fill_norm(attention.layer_norm, norm)
    match own.relation:
        case RelativeRelation(distance_keys=keys, distance_values=values):
            attention.relative_position_keys = _copied(keys)
            # CTranslate2 always adds vectors to the values; without such vectors they are zeros.
            attention.relative_position_values = _copied(
                torch.zeros_like(keys) if values is None else values
            )
        case T5Relation(bucket_bias=bias, max_distance=distance):
            attention.relative_attention_bias = np.ascontiguousarray(_copied(bias).T)
            attention.relative_attention_max_distance = np.int32(distance)


def _fill_feed_forward(part: Any, own: nn.Module, norm: nn.Module) -> None:
    _fill_norm(part.layer_norm, norm)
    match own:
        case GatedFeedForward(gate_widen=both, narrow=narrow):
            part.linear_0.weight, part.linear_0_noact.weight = np.split(_copied(both.weight), 2)
        case FeedForward(widen=widen, narrow=narrow):
            _fill_linear(part.linear_0, widen)
        case _:
            raise AssertionError(f"no words for {type(own).__name__}")
    _fill_linear(part.linear_1, narrow)
