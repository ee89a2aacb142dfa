"""Settings of an encoder and a decoder made of attention blocks: layers, heads, width, norms,
positions.

    model: {dim: 256, encoder: {layers: 4, heads: 4}, decoder: {layers: 4, heads: 4}, …}

The Transformer (`kind: encoder_decoder`) and the parallel translator (`kind: parallel`) share them.
They differ in what their decoder may see, and in how their outputs depend on each other.
"""

from pathlib import Path

from pydantic import Field, model_validator

from headwise.attention.choices import DEFAULT_ATTENTION, AttentionSettings
from headwise.attention.shapes import check_heads
from headwise.blocks.choices import (
    DEFAULT_FEED_FORWARD,
    DEFAULT_NORM,
    DropoutSettings,
    EmbeddingSettings,
    FeedForwardSettings,
    NormSettings,
)
from headwise.errors import SettingsError
from headwise.models.source_views import Views
from headwise.positions.choices import DEFAULT_POSITION, PositionSettings
from headwise.settings import Settings


class StackSettings(Settings):
    """The encoder's or the decoder's layers."""

    layers: int = Field(default=6, ge=0, le=256)
    """Number of blocks; 0: the embeddings alone."""
    heads: int = Field(default=8, ge=1, le=256)
    """Attention heads in each block; must divide dim."""
    attention: AttentionSettings = DEFAULT_ATTENTION
    """How a head attends."""


class DecoderSettings(StackSettings):
    """The decoder's layers: `attention` is its self-attention."""

    layers: int = Field(default=6, ge=1, le=256)
    """Number of blocks; at least one, because only these blocks attend to the source."""
    cross_attention: AttentionSettings = DEFAULT_ATTENTION
    """How a head attends to the source."""
    views: Views = "top"
    """Which layers of the encoder the layers of the decoder see (models/source_views.py)."""


class TransformerSettings(Settings):
    """What translators with an encoder and a decoder of attention have in common."""

    kind: str
    dim: int = Field(default=512, ge=2, le=65536, multiple_of=2)
    """Width of every layer."""
    encoder: StackSettings = StackSettings()
    decoder: DecoderSettings = DecoderSettings()
    position: PositionSettings = DEFAULT_POSITION
    norm: NormSettings = DEFAULT_NORM
    feed_forward: FeedForwardSettings = DEFAULT_FEED_FORWARD
    embedding: EmbeddingSettings = EmbeddingSettings()
    dropout: DropoutSettings = DropoutSettings()
    output_bias: bool = False
    """Add a learned bias to the logits."""
    start_from: Path | None = None
    """A translator (its bundle or run) whose tokenizers and weights the training begins with."""

    @model_validator(mode="after")
    def _check_heads(self) -> "TransformerSettings":
        for name, stack in (("encoder", self.encoder), ("decoder", self.decoder)):
            check_heads(self.dim, stack.heads, key=f"{name}.heads")
        if self.decoder.views != "top":
            self._check_views(self.decoder.views)
        return self

    def _check_views(self, views: str) -> None:
        """Refuse what cannot see several layers of the encoder."""
        if self.kind != "encoder_decoder":
            raise SettingsError(
                f"decoder.views={views}, but model.kind={self.kind} reads more from the encoder "
                "than attention does, and knows its last layer only; use decoder.views=top",
                f"decoder.views={views}，但 model.kind={self.kind} 除注意力外还从编码器读取信息，"
                "只认得它的最后一层；请用 decoder.views=top",
            )
        if self.encoder.layers == 0:
            raise SettingsError(
                f"decoder.views={views} needs layers of an encoder, and encoder.layers is 0; set "
                "encoder.layers=1 or more, or decoder.views=top",
                f"decoder.views={views} 需要编码器的层，而 encoder.layers 为 0；请设 "
                "encoder.layers=1 或更多，或 decoder.views=top",
            )
        if "pairs" not in self.decoder.cross_attention.takes:
            kind = self.decoder.cross_attention.kind
            raise SettingsError(
                f"decoder.views={views} attends twice with the same weights, which "
                f"decoder.cross_attention (kind={kind}, with these settings) cannot do; leave "
                "decoder.cross_attention out, or use decoder.views=top",
                f"decoder.views={views} 用同样的权重关注两次，decoder.cross_attention"
                f"（kind={kind} 及其设置）做不到；请去掉 decoder.cross_attention，或用 "
                "decoder.views=top",
            )
