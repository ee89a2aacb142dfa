"""The Transformer: an encoder reads the source, a decoder writes the target.

    memory = encoder(source)                   every layer: self-attention, feed-forward
    hidden = decoder(target so far, memory)    every layer: self-, cross-attention, feed-forward
    P(next token) = softmax(hidden · output_weightᵀ + bias)

Vaswani et al. 2017, *Attention Is All You Need*, figure 1.

A batch is rows of packed sentence pairs. Segment numbers keep pairs apart in self- and
cross-attention, positions restart with each sentence, and a plain padded batch is the case of one
segment per row. `forward` stops at the hidden states: the loss multiplies them with the output
weight piece by piece, so that a [token, vocabulary] table of logits need not exist.

Tested against: transformers' Marian (norm after) and Pegasus (norm before) with copied weights,
gradients included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.masks import Mask, causal, segments
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.taps import tap_attention
from headwise.blocks.decoder_block import DecoderBlock
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.normalization import TokenNorm, apply_norm
from headwise.initialization import InitialWeights, initial_linear, normal_by_width
from headwise.models.draft_decoder import DraftDecoder
from headwise.models.draft_heads import DraftHeads
from headwise.models.reward_baseline import RewardBaseline
from headwise.models.source_views import SourceViews
from headwise.models.translation_model import TranslationModel
from headwise.settings.part_names import PartNames


@dataclass(frozen=True)
class AddedParts:
    """Parts that a recipe may add to a translator."""

    draft_heads: DraftHeads | None = None
    draft_decoder: DraftDecoder | None = None
    reward_baseline: RewardBaseline | None = None
    views: SourceViews | None = None


class EncoderDecoder(TranslationModel):
    """Parts are handed in by `build_model` (models/choices.py)."""

    part_names: ClassVar[PartNames] = {
        "encoder.*.self_attention": ("encoder self-attention", "编码器自注意力"),
        "encoder.*.feed_forward": ("encoder feed-forward", "编码器前馈神经网络"),
        "encoder_norm": ("normalisation", "归一化"),
        "decoder_norm": ("normalisation", "归一化"),
        "draft_heads": ("draft heads", "草稿头"),
        "reward_baseline": ("reward baseline", "奖励基线"),
    }

    encoder: Sequence[EncoderBlock]
    decoder: Sequence[DecoderBlock]

    def __init__(
        self,
        *,
        source_embedding: TokenEmbedding,
        target_embedding: TokenEmbedding,
        encoder: list[EncoderBlock],
        decoder: list[DecoderBlock],
        encoder_norm: nn.Module,
        decoder_norm: nn.Module,
        output: nn.Linear,
        added: AddedParts | None = None,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        # torch's list is a sequence of blocks to its users but not to the type checker.
        self.encoder = nn.ModuleList(encoder)  # type: ignore[assignment]
        self.decoder = nn.ModuleList(decoder)  # type: ignore[assignment]
        self.encoder_norm = encoder_norm
        self.decoder_norm = decoder_norm
        self.output = output
        added = AddedParts() if added is None else added
        self.draft_heads = added.draft_heads
        self.draft_decoder = added.draft_decoder
        self.reward_baseline = added.reward_baseline
        self.views = added.views
        self.is_causal = all(block.is_causal for block in decoder)
        """Whether the decoder writes from left to right; its blocks declare it."""
        self.looks_over_tokens = any(isinstance(module, TokenNorm) for module in self.modules())
        """Whether a norm must know which tokens are padding."""

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    def forward(
        self,
        source: Int[Tensor, "row source"],
        target_input: Int[Tensor, "row target"],
        *,
        source_segment: Int[Tensor, "row source"],
        target_segment: Int[Tensor, "row target"],
        source_position: Int[Tensor, "row source"],
        target_position: Int[Tensor, "row target"],
    ) -> Float[Tensor, "row target dim"]:
        """Hidden states that predict each target token (teacher forcing).

        A causal decoder predicts a token from the ones before it; any other sees the whole target.
        """
        memory = self.encode(source, segment=source_segment, position=source_position)
        return self.decode(
            target_input,
            memory,
            source_segment=source_segment,
            target_segment=target_segment,
            target_position=target_position,
        )

    def decode(
        self,
        target_input: Int[Tensor, "row target"],
        memory: Float[Tensor, "row source views_dim"],
        *,
        source_segment: Int[Tensor, "row source"],
        target_segment: Int[Tensor, "row target"],
        target_position: Int[Tensor, "row target"],
    ) -> Float[Tensor, "row target dim"]:
        """Hidden states of the decoder, given the encoder's memory."""
        return self.decode_embedded(
            self.target_embedding(target_input, target_position, length=target_input.shape[1]),
            memory,
            source_segment=source_segment,
            target_segment=target_segment,
            target_position=target_position,
        )

    def decode_embedded(
        self,
        x: Float[Tensor, "row target dim"],
        memory: Float[Tensor, "row source views_dim"],
        *,
        source_segment: Int[Tensor, "row source"],
        target_segment: Int[Tensor, "row target"],
        target_position: Int[Tensor, "row target"],
    ) -> Float[Tensor, "row target dim"]:
        """The same for inputs that are embedded already, such as mixtures of several tokens."""
        length = x.shape[1]
        own = segments(target_segment, target_segment)
        mask = (causal() & own if self.is_causal else own).ignoring_blind()
        cross_mask = segments(target_segment, source_segment).ignoring_blind()
        if len(self.decoder) > 0:
            mask = self.decoder[0].self_attention.kernel.prepare(mask, length, length, x.device)
            cross_kernel = self.decoder[0].cross_attention.kernel
            cross_mask = cross_kernel.prepare(cross_mask, length, memory.shape[1], x.device)
        real = target_segment != 0 if self.looks_over_tokens else None
        for block in self.decoder:
            x = block(
                x, memory, mask=mask, cross_mask=cross_mask, position=target_position, real=real
            )
        return apply_norm(self.decoder_norm, x, real)

    def encode(
        self,
        source: Int[Tensor, "row source"],
        *,
        segment: Int[Tensor, "row source"],
        position: Int[Tensor, "row source"],
    ) -> Float[Tensor, "row source views_dim"]:
        """The encoder's memory of each source token: the states of its last layer, or those of
        several layers side by side (source_views.py)."""
        length = source.shape[1]
        x = self.source_embedding(source, position, length=length)
        mask: Mask = segments(segment, segment).ignoring_blind()
        if len(self.encoder) > 0:
            mask = self.encoder[0].self_attention.kernel.prepare(mask, length, length, x.device)
        real = segment != 0 if self.looks_over_tokens else None
        states = []
        for block in self.encoder:
            x = block(x, mask, position=position, real=real)
            states.append(x)
        if self.views is None:
            return apply_norm(self.encoder_norm, x, real)
        return self.views([apply_norm(self.encoder_norm, state, real) for state in states])

    def attention_maps(
        self, source: Int[Tensor, "row source"], target_input: Int[Tensor, "row target"]
    ) -> Mapping[str, Float[Tensor, "row head query key"]]:
        source_position, target_position = (
            torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
            for tokens in (source, target_input)
        )
        with tap_attention(self.attention_layers()) as maps:
            self(
                source,
                target_input,
                source_segment=torch.ones_like(source),
                target_segment=torch.ones_like(target_input),
                source_position=source_position,
                target_position=target_position,
            )
        return maps

    def attention_layers(self) -> dict[str, MultiHeadAttention]:
        """Every attention by name: `encoder.0.self`, `decoder.0.self`, `decoder.0.cross`."""
        layers: dict[str, MultiHeadAttention] = {}
        for number, block in enumerate(self.encoder):
            layers[f"encoder.{number}.self"] = block.self_attention
        for number, layer in enumerate(self.decoder):
            layers[f"decoder.{number}.self"] = layer.self_attention
            layers[f"decoder.{number}.cross"] = layer.cross_attention
        return layers
