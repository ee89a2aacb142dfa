"""One layer of the encoder: self-attention over all source tokens, then a feed-forward network.

    x ← residual(x, self_attention)
    x ← residual(x, feed_forward)

Vaswani et al. 2017, section 3.1. The encoder is a stack of N such layers; shapes never change.

Tested against: transformers' Marian (norm after) and a pre-norm layer of torch with copied weights.
"""

from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headwise.attention.cache import Cache
from headwise.attention.masks import Mask
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.nearest_attention import NearestAttention, Recall
from headwise.blocks.residual import Residual
from headwise.settings.part_names import PartNames


class EncoderBlock(nn.Module):
    part_names: ClassVar[PartNames] = {
        "self_attention": ("self-attention", "自注意力"),
        "feed_forward": ("feed-forward", "前馈神经网络"),
        "attention_residual": ("normalisation", "归一化"),
        "feed_forward_residual": ("normalisation", "归一化"),
    }

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: nn.Module,
        *,
        attention_residual: Residual,
        feed_forward_residual: Residual,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.attention_residual = attention_residual
        self.feed_forward_residual = feed_forward_residual

    def forward(
        self,
        x: Float[Tensor, "batch source dim"],
        mask: Mask,
        *,
        position: Int[Tensor, "batch source"] | None = None,
        real: Bool[Tensor, "batch source"] | None = None,
        past: Float[Tensor, "batch past dim"] | None = None,
        recall: Recall | None = None,
    ) -> Float[Tensor, "batch source dim"]:
        """`past`: what this block has read before x and attends to as well; `recall`: what it may
        look up beyond that."""

        def look(normed: Tensor) -> Tensor:
            attention = self.self_attention
            if past is None:
                return attention(normed, normed, mask, position=position)
            before = self.attention_residual.read_by_sublayer(past)
            if recall is not None:
                assert isinstance(attention, NearestAttention)
                return attention.attend_and_recall(normed, before, mask, recall)
            return attention.attend_after(normed, before, mask)

        x = self.attention_residual(x, look, real=real)
        return self.feed_forward_residual(x, self.feed_forward, real=real)

    def step(self, x: Float[Tensor, "row 1 dim"], cache: Cache) -> Float[Tensor, "row 1 dim"]:
        """One more position under a causal mask (models/decoder_only.py)."""
        x = self.attention_residual(x, lambda normed: self.self_attention.step(normed, cache))
        return self.feed_forward_residual(x, self.feed_forward)
