"""One layer of the decoder: self-attention, cross-attention to the source, feed-forward network.

    x ← residual(x, self_attention over earlier targets)
    x ← residual(x, cross_attention over the encoder's memory)
    x ← residual(x, feed_forward)

Vaswani et al. 2017, section 3.1. `forward` takes a whole target at once (teacher forcing, with a
causal mask); `step` takes one more position with caches and gives the same numbers; `extend` takes
several, for rows that each have their own length.

Tested against: transformers' Marian, and step by step = whole sequence.
"""

from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headwise.attention.cache import Cache
from headwise.attention.masks import Mask
from headwise.attention.multi_head import KeysValues, MultiHeadAttention
from headwise.attention.ragged_cache import BlockPlace, RaggedCache
from headwise.blocks.residual import Residual
from headwise.settings.part_names import PartNames


class DecoderBlock(nn.Module):
    part_names: ClassVar[PartNames] = {
        "self_attention": ("decoder self-attention", "解码器自注意力"),
        "cross_attention": ("cross-attention", "交叉注意力"),
        "feed_forward": ("decoder feed-forward", "解码器前馈神经网络"),
        "attention_residual": ("normalisation", "归一化"),
        "cross_residual": ("normalisation", "归一化"),
        "feed_forward_residual": ("normalisation", "归一化"),
    }

    is_causal: ClassVar[bool] = True
    """Whether a position attends to earlier ones only. A decoder that writes all tokens at once
    (non-autoregressive) declares False, and its model then masks other sentences only."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: nn.Module,
        *,
        attention_residual: Residual,
        cross_residual: Residual,
        feed_forward_residual: Residual,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.attention_residual = attention_residual
        self.cross_residual = cross_residual
        self.feed_forward_residual = feed_forward_residual

    def forward(
        self,
        x: Float[Tensor, "batch target dim"],
        memory: Float[Tensor, "batch source views_dim"],
        *,
        mask: Mask,
        cross_mask: Mask,
        position: Int[Tensor, "batch target"] | None = None,
        real: Bool[Tensor, "batch target"] | None = None,
    ) -> Float[Tensor, "batch target dim"]:
        def look(normed: Tensor) -> Tensor:
            return self.self_attention(normed, normed, mask, position=position)

        x = self.attention_residual(x, look, real=real)
        x = self.cross_residual(
            x, lambda normed: self.cross_attention(normed, memory, cross_mask), real=real
        )
        return self.feed_forward_residual(x, self.feed_forward, real=real)

    def step(
        self,
        x: Float[Tensor, "row 1 dim"],
        cache: Cache,
        *,
        source: KeysValues,
        cross_mask: Mask,
        mask: Mask | None = None,
        watch: list[Tensor] | None = None,
    ) -> Float[Tensor, "row 1 dim"]:
        """One more position. `source` holds keys and values per *sentence*; the rows of a sentence
        share them.

        `mask` hides cached positions that belong to other sentences. With `watch`, the weights over
        the source, [sentence, head, row of the sentence, source], are appended to it.
        """

        def look_at_source(normed: Tensor) -> Tensor:
            # The hypotheses of a sentence become the queries of one attention, so that its keys are
            # not copied for each of them.
            queries = normed.reshape(source[0].shape[0], -1, normed.shape[-1])
            time = cache.length - 1  # self-attention has cached this position already
            if watch is not None:
                watch.append(
                    self.cross_attention.weights_over(queries, source, cross_mask, time=time)
                )
            return self.cross_attention.attend(queries, source, cross_mask, time=time).reshape(
                normed.shape
            )

        x = self.attention_residual(
            x, lambda normed: self.self_attention.step(normed, cache, mask=mask)
        )
        x = self.cross_residual(x, look_at_source)
        return self.feed_forward_residual(x, self.feed_forward)

    def extend(
        self,
        x: Float[Tensor, "row step dim"],
        cache: RaggedCache,
        place: BlockPlace,
        *,
        source: KeysValues,
        cross_mask: Mask,
    ) -> Float[Tensor, "row step dim"]:
        """Several more positions, each row after its own length; a row is one sentence."""
        x = self.attention_residual(
            x, lambda normed: self.self_attention.extend(normed, cache, place)
        )
        x = self.cross_residual(
            x, lambda normed: self.cross_attention.attend(normed, source, cross_mask)
        )
        return self.feed_forward_residual(x, self.feed_forward)


class ParallelDecoderBlock(DecoderBlock):
    """A layer whose self-attention sees all positions of the target, for decoders that compute them
    at once."""

    is_causal: ClassVar[bool] = False
