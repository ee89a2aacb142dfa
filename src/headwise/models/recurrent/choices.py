"""The settings of recurrent models (`model: {kind: recurrent, …}`), and how they are built."""

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.score_choices import (
    AdditiveSettings,
    LocalWindowSettings,
    ScoreSettings,
    SoftmaxSettings,
    WeightsSettings,
    build_local_window,
    build_normalizer,
    build_score,
)
from headwise.attention.scores.bilinear import LUONG_GENERAL
from headwise.blocks.choices import EmbeddingSettings
from headwise.blocks.dropout import DropRate
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.recurrent_cells import CellKind, RecurrentLayer, RecurrentStack
from headwise.models.recurrent.decoders import (
    BahdanauDecoder,
    FixedVectorDecoder,
    LuongDecoder,
    RecurrentDecoder,
    SourceAttention,
)
from headwise.models.recurrent.translator import RecurrentEncoder, RecurrentTranslator
from headwise.settings import Settings


class NoAttention(Settings):
    """No attention: the decoder gets only the last state of the encoder."""

    kind: Literal["none"] = "none"


class Bahdanau(Settings):
    """The query is the previous state of the decoder."""

    kind: Literal["bahdanau"] = "bahdanau"
    score: ScoreSettings = AdditiveSettings()
    """How a state of the decoder and one of the encoder are compared."""
    weights: WeightsSettings = SoftmaxSettings()
    """How scores become weights."""
    window: LocalWindowSettings | None = None
    """The part of the source that a target word attends to; null: all of it."""


class Luong(Settings):
    """The query is the current state of the decoder."""

    kind: Literal["luong"] = "luong"
    score: ScoreSettings = LUONG_GENERAL
    """How a state of the decoder and one of the encoder are compared."""
    weights: WeightsSettings = SoftmaxSettings()
    """How scores become weights."""
    window: LocalWindowSettings | None = None
    """The part of the source that a target word attends to; null: all of it."""
    input_feeding: bool = True
    """Feed the attentional vector to the next step (input feeding)."""


RecurrentAttentionSettings = Annotated[NoAttention | Bahdanau | Luong, Field(discriminator="kind")]


class RecurrentDropoutSettings(Settings):
    """Dropout rates; never from word to word."""

    embedding: DropRate = 0.1
    """Of the embeddings."""
    hidden: DropRate = 0.1
    """Between layers and before the output."""


class RecurrentTranslatorSettings(Settings):
    """The translators before the Transformer."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellKind = "lstm"
    """What carries the state from word to word."""
    layers: int = Field(default=2, ge=1, le=64)
    """Layers of the encoder, and as many of the decoder."""
    dim: int = Field(default=512, ge=2, le=65536, multiple_of=2)
    """Width of embeddings and states; of two directions each has half."""
    bidirectional: bool = True
    """The encoder reads from both ends."""
    attention: RecurrentAttentionSettings = Luong()
    """How the decoder attends to the source."""
    embedding: EmbeddingSettings = EmbeddingSettings()
    dropout: RecurrentDropoutSettings = RecurrentDropoutSettings()
    output_bias: bool = False
    """Add a learned bias to the logits."""


def attends(model: Settings) -> bool:
    """Whether a translator of these settings has attention: only a recurrent one need not."""
    return not (
        isinstance(model, RecurrentTranslatorSettings) and isinstance(model.attention, NoAttention)
    )


def build_recurrent(
    settings: RecurrentTranslatorSettings, *, source_size: int, target_size: int
) -> RecurrentTranslator:
    """The model, not initialised."""
    target_table = nn.Embedding(target_size, settings.dim)
    source_table = (
        target_table
        if settings.embedding.tied == "all"
        else nn.Embedding(source_size, settings.dim)
    )
    output = nn.Linear(settings.dim, target_size, bias=settings.output_bias)
    if settings.embedding.tied != "none":
        output.weight = target_table.weight
    return RecurrentTranslator(
        source_embedding=_embedding(settings, source_table),
        target_embedding=_embedding(settings, target_table),
        encoder=_encoder(settings),
        decoder=_decoder(settings),
        output=output,
    )


def _embedding(settings: RecurrentTranslatorSettings, table: nn.Embedding) -> TokenEmbedding:
    return TokenEmbedding(
        table, None, scaled=settings.embedding.scaled, dropout_rate=settings.dropout.embedding
    )


def _encoder(settings: RecurrentTranslatorSettings) -> RecurrentEncoder:
    dim = settings.dim // 2 if settings.bidirectional else settings.dim

    def layers() -> list[RecurrentLayer]:
        return [RecurrentLayer(settings.cell, settings.dim, dim) for _ in range(settings.layers)]

    return RecurrentEncoder(
        layers(), layers() if settings.bidirectional else [], dropout_rate=settings.dropout.hidden
    )


def _decoder(settings: RecurrentTranslatorSettings) -> RecurrentDecoder:
    dim, rate = settings.dim, settings.dropout.hidden

    def stack(input_dim: int) -> RecurrentStack:
        return RecurrentStack(settings.cell, input_dim, [dim] * settings.layers, dropout_rate=rate)

    match settings.attention:
        case NoAttention():
            return FixedVectorDecoder(stack(dim), dropout_rate=rate)
        case Bahdanau():
            return BahdanauDecoder(
                stack(2 * dim), _attention(settings.attention, dim), dim=dim, dropout_rate=rate
            )
        case Luong(input_feeding=feeding):
            return LuongDecoder(
                stack(2 * dim if feeding else dim),
                _attention(settings.attention, dim),
                dim=dim,
                input_feeding=feeding,
                dropout_rate=rate,
            )


def _attention(settings: Bahdanau | Luong, dim: int) -> SourceAttention:
    return SourceAttention(
        ScoredAttention(
            build_score(settings.score, query_dim=dim, key_dim=dim),
            build_normalizer(settings.weights),
            window=None
            if settings.window is None
            else build_local_window(settings.window, head_dim=dim),
        )
    )
