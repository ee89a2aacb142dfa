"""Sentence encoders: a vector for each word, from the word alone, a window, or the whole sentence.

    x = √dim · E[word] (+ letters, pairs)               the look-up of all kinds (token_features.py)
    word       x                                        every "saw" gets the same vector
    window     x + narrow(relu(widen([x₋ₙ … x … xₙ])))  a window of 2n + 1 words (window_encoder.py)
    recurrent  hidden states of two RNNs                the whole sentence, step by step
                                                        (recurrent_encoder.py)
    encoder    blocks of self-attention                 the whole sentence; any kernel, positions
                                                        and norm

`encoder` is the encoder of BERT (Devlin et al. 2019) and of the translator; labeller.py and
masked_language_model.py have the layers on top of it. For two sentences read as one
(`<s> A <s> B`), `halves` tells each token which of them it is in (BERT's segment embeddings). Rows
hold several sentences (`segment`); no encoder reads beyond the end of a sentence.

Tested against: one word = the same everywhere; a window sees its neighbours and no further; packed
rows = sentences one by one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from headwise.attention.choices import (
    DEFAULT_ATTENTION,
    AttentionSettings,
)
from headwise.attention.masks import segments
from headwise.attention.shapes import check_heads
from headwise.blocks.choices import (
    DEFAULT_FEED_FORWARD,
    DEFAULT_NORM,
    DropoutSettings,
    FeedForwardSettings,
    NormSettings,
    Rate,
)
from headwise.blocks.dropout import drop
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.normalization import TokenNorm, apply_norm
from headwise.blocks.recurrent_cells import CellKind
from headwise.errors import SettingsError
from headwise.models.encoder_stack import build_encoder_blocks, build_final_norm
from headwise.models.recurrent_encoder import SentenceReader, build_sentence_reader
from headwise.models.token_features import HalfEmbedding, LetterEmbedding, PairEmbedding
from headwise.models.window_encoder import Neighbours
from headwise.positions.choices import (
    DEFAULT_POSITION,
    PositionSettings,
    build_positions,
)
from headwise.settings import Settings
from headwise.settings.part_names import PartNames
from headwise.text.tokenizer import UNKNOWN


class _Words(Settings):
    dim: int = Field(default=128, ge=2, le=65536, multiple_of=2)
    """Width of every layer."""
    letters: int = Field(default=0, ge=0, le=10_000_000)
    """Rows for letter features; 0: the word alone."""
    spelling: Literal["affixes", "runs"] = "affixes"
    """Letter features: endings, beginnings and shape, or every run of three to six letters."""
    pairs: int = Field(default=0, ge=0, le=10_000_000)
    """Rows for pairs of neighbouring words; 0: none."""
    word_dropout: Rate = 0.0
    """Share of the words replaced by the unknown word in training, so that context and letters are
    used."""
    letter_dropout: Rate = 0.0
    """Share of the words whose letters are left out in training."""
    dropout: DropoutSettings = DropoutSettings()
    pooling: Literal["mean", "first"] = "mean"
    """The vector of a text that gets one label: the mean over its tokens, or its first one, <s>."""
    start_from: Path | None = None
    """A bundle whose encoder and tokenizer this one starts with; it needs the same text and model
    settings."""


class WordEncoderSettings(_Words):
    """One word at a time."""

    kind: Literal["word"] = "word"


class WindowEncoderSettings(_Words):
    """A word and its neighbours, fully connected."""

    kind: Literal["window"] = "window"
    reach: int = Field(default=2, ge=1, le=64)
    """Neighbours on each side."""
    hidden: int = Field(default=512, ge=1, le=65536)
    """Width of the hidden layer."""


class RecurrentEncoderSettings(_Words):
    """A state that has read up to the word, and one that has read back to it."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellKind = "lstm"
    """What carries the state from word to word."""
    layers: int = Field(default=2, ge=1, le=64)
    """Number of layers."""
    bidirectional: bool = True
    """Read from both ends, with half of `dim` each."""


class TransformerEncoderSettings(_Words):
    """Self-attention over the whole sentence."""

    kind: Literal["encoder"] = "encoder"
    layers: int = Field(default=2, ge=0, le=256)
    """Number of blocks; 0: the embeddings alone."""
    heads: int = Field(default=4, ge=1, le=256)
    """Attention heads in each block; must divide dim."""
    attention: AttentionSettings = DEFAULT_ATTENTION
    """How a head attends."""
    position: PositionSettings = DEFAULT_POSITION
    norm: NormSettings = DEFAULT_NORM
    feed_forward: FeedForwardSettings = DEFAULT_FEED_FORWARD
    halves: bool = False
    """Add a vector for the first or the second sentence of a pair."""

    @model_validator(mode="after")
    def _check_heads(self) -> "TransformerEncoderSettings":
        check_heads(self.dim, self.heads)
        return self


class ElmoSettings(_Words):
    """Two language models, one per direction, over characters (elmo.py); `dim` is the width of
    both together."""

    kind: Literal["elmo"] = "elmo"
    layers: int = Field(default=2, ge=1, le=16)
    """Recurrent layers of each direction."""
    hidden: int = Field(default=512, ge=1, le=65536)
    """Width of a recurrent layer, projected to dim/2."""
    letter_dim: int = Field(default=16, ge=1, le=4096)
    """Width of a letter's vector."""
    filters: tuple[Annotated[int, Field(ge=1, le=8192)], ...] = Field(
        default=(32, 32, 64, 128), min_length=1, max_length=12
    )
    """Number of filters over 1, 2, 3 … letters."""
    highways: int = Field(default=2, ge=0, le=8)
    """Gated layers between the filters and the word's vector."""

    @model_validator(mode="after")
    def _check_widths(self) -> "ElmoSettings":
        if self.hidden < self.dim // 2:
            raise SettingsError(
                f"hidden={self.hidden} is narrower than dim/2={self.dim // 2}, to which it is "
                f"projected; set hidden={self.dim // 2} or more",
                f"hidden={self.hidden} 小于其投影宽度 dim/2={self.dim // 2}；"
                f"请设 hidden={self.dim // 2} 或更大",
            )
        if self.letters > 0 or self.word_dropout > 0 or self.pairs > 0:
            name = "letters" if self.letters > 0 else "pairs" if self.pairs > 0 else "word_dropout"
            raise SettingsError(
                f"{name} is set, but kind=elmo reads every word by its letters already and has no "
                f"unknown words; leave {name} at 0",
                f"设置了 {name}，但 kind=elmo 已按字母读取每个词，没有未知词；请将 {name} 保持为 0",
            )
        return self


TokenEncoderSettings = (
    WordEncoderSettings
    | WindowEncoderSettings
    | RecurrentEncoderSettings
    | TransformerEncoderSettings
)
SentenceEncoderSettings = Annotated[
    TokenEncoderSettings | ElmoSettings, Field(discriminator="kind")
]


class SentenceEncoder(nn.Module):
    """Parts are handed in by `build_sentence_encoder`."""

    part_names: ClassVar[PartNames] = {
        "letters": ("letter features", "字母特征"),
        "pairs": ("pairs of words", "词对特征"),
        "halves": ("first or second sentence", "前后句标记"),
        "norm": ("normalisation", "归一化"),
    }

    blocks: Sequence[EncoderBlock]

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        letters: LetterEmbedding | None,
        pairs: PairEmbedding | None,
        halves: HalfEmbedding | None,
        context: Neighbours | SentenceReader | None,
        blocks: list[EncoderBlock],
        norm: nn.Module,
        word_dropout: float,
    ) -> None:
        super().__init__()
        self.embedding, self.letters, self.pairs, self.halves = embedding, letters, pairs, halves
        self.neighbours = context if isinstance(context, Neighbours) else None
        self.reader = context if isinstance(context, SentenceReader) else None
        # torch's list is a sequence of blocks to its users but not to the type checker.
        self.blocks = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = norm
        self.word_dropout = word_dropout
        self.looks_over_tokens = any(isinstance(module, TokenNorm) for module in self.modules())

    def forward(
        self,
        tokens: Int[Tensor, "row time"],
        *,
        segment: Int[Tensor, "row time"],
        position: Int[Tensor, "row time"],
        affixes: Int[Tensor, "row time affix"] | None = None,
    ) -> Float[Tensor, "row time dim"]:
        """A vector for each token; segments number the sentences of a row from 1, 0 is padding."""
        shown = tokens
        if self.training and self.word_dropout > 0:
            hidden = torch.rand(tokens.shape, device=tokens.device) < self.word_dropout
            shown = torch.where(hidden & (tokens > UNKNOWN), UNKNOWN, tokens)
        length = tokens.shape[1]
        x = self.embedding(shown, position, length=length)
        # A dropped word also loses its pair; the pair of the next word still names it.
        if self.pairs is not None:
            x = x + self.pairs(tokens, position) * (shown == tokens)[..., None]
        if self.letters is not None and affixes is not None:
            x = x + drop(self.letters(affixes), self.embedding.dropout_rate, training=self.training)
        if self.halves is not None:
            x = x + self.halves(shown, position)
        if self.neighbours is not None:
            x = self.neighbours(x, segment)
        if self.reader is not None:
            x = self.reader(x, segment, position)
        mask = segments(segment, segment).ignoring_blind()
        if len(self.blocks) > 0:
            mask = self.blocks[0].self_attention.kernel.prepare(mask, length, length, x.device)
        real = segment != 0 if self.looks_over_tokens else None
        for block in self.blocks:
            x = block(x, mask, position=position, real=real)
        return apply_norm(self.norm, x, real)


def build_sentence_encoder(
    settings: TokenEncoderSettings, *, vocabulary_size: int
) -> SentenceEncoder:
    """The encoder of these settings, not initialised."""
    positions, blocks, norm = None, list[EncoderBlock](), nn.Module()
    context: Neighbours | SentenceReader | None = None
    match settings:
        case WordEncoderSettings():
            norm = nn.Identity()
        case WindowEncoderSettings(reach=reach, hidden=hidden):
            rate = settings.dropout.hidden
            context, norm = (
                Neighbours(settings.dim, reach=reach, hidden=hidden, dropout_rate=rate),
                nn.Identity(),
            )
        case RecurrentEncoderSettings(cell=cell, layers=layers, bidirectional=both):
            rate, norm = settings.dropout.hidden, nn.Identity()
            context = build_sentence_reader(
                cell, settings.dim, num_layers=layers, bidirectional=both, dropout_rate=rate
            )
        case TransformerEncoderSettings():
            positions = build_positions(settings.position, dim=settings.dim)
            blocks = build_encoder_blocks(settings, settings)
            norm = build_final_norm(settings)
    table = nn.Embedding(vocabulary_size, settings.dim)
    return SentenceEncoder(
        embedding=TokenEmbedding(
            table, positions, scaled=True, dropout_rate=settings.dropout.embedding
        ),
        letters=LetterEmbedding(settings.letters, settings.dim, settings.letter_dropout)
        if settings.letters
        else None,
        pairs=PairEmbedding(settings.pairs, settings.dim) if settings.pairs else None,
        halves=HalfEmbedding(settings.dim)
        if isinstance(settings, TransformerEncoderSettings) and settings.halves
        else None,
        context=context,
        blocks=blocks,
        norm=norm,
        word_dropout=settings.word_dropout,
    )
