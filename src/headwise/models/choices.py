"""Lists the models that a recipe may name under `model: {kind: …}`, and builds them."""

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, overload

import torch
from pydantic import Discriminator, Field, Tag, model_validator
from torch import nn

from headwise.attention.capabilities import Role
from headwise.attention.choices import (
    build_attention,
    share_between_layers,
)
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.nearest_attention import NearestAttention
from headwise.attention.shapes import check_heads
from headwise.attention.viewed_attention import ViewedAttention
from headwise.blocks.choices import (
    DEFAULT_FEED_FORWARD,
    DEFAULT_NORM,
    DropoutSettings,
    FeedForwardSettings,
    NormSettings,
    build_feed_forward,
)
from headwise.blocks.decoder_block import DecoderBlock, ParallelDecoderBlock
from headwise.blocks.embeddings import TokenEmbedding
from headwise.errors import SettingsError, UsageError
from headwise.initialization import Unfilled, initialize
from headwise.models.decoder_only import DecoderOnly
from headwise.models.draft_decoder import DraftDecoder, DraftDecoderSettings
from headwise.models.draft_heads import DraftHeads, DraftHeadSettings
from headwise.models.encoder_decoder import AddedParts, EncoderDecoder
from headwise.models.encoder_stack import (
    build_encoder_blocks,
    build_final_norm,
    build_residual,
    build_self_attention,
)
from headwise.models.memory_check import check_memory
from headwise.models.neural_ngram import NeuralNgram, NeuralNgramSettings
from headwise.models.ngram import NgramSettings
from headwise.models.parallel.choices import ParallelSettings, is_parallel
from headwise.models.parallel.parts import build_parallel_parts
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.recurrent.choices import RecurrentTranslatorSettings, build_recurrent
from headwise.models.recurrent.language_model import RecurrentLanguageModel, RecurrentSettings
from headwise.models.reward_baseline import RewardBaseline
from headwise.models.segment_memory import (
    NO_MEMORY,
    CarriedMemory,
    LanguageMemorySettings,
    NearestMemory,
)
from headwise.models.source_views import SourceViews
from headwise.models.transformer_settings import DecoderSettings as DecoderSettings
from headwise.models.transformer_settings import StackSettings as StackSettings
from headwise.models.transformer_settings import TransformerSettings
from headwise.models.translation_model import TranslationModel
from headwise.positions.choices import (
    DEFAULT_POSITION,
    PositionSettings,
    build_positions,
    build_relations,
)
from headwise.settings.kind import KindOr


class EncoderDecoderSettings(TransformerSettings):
    """The Transformer of Attention Is All You Need."""

    kind: Literal["encoder_decoder"] = "encoder_decoder"
    draft_heads: DraftHeadSettings = DraftHeadSettings()
    draft_decoder: DraftDecoderSettings = DraftDecoderSettings()
    reward_baseline: bool = False
    """Add a linear function of the decoder's state that predicts the reward, for
    `training.objective.baseline=linear`."""

    @model_validator(mode="after")
    def _check_draft_decoder(self) -> "EncoderDecoderSettings":
        if self.draft_decoder.layers and self.decoder.views != "top":
            raise SettingsError(
                "draft_decoder reads the last layer of the encoder alone, and decoder.views="
                f"{self.decoder.views} shows several; use draft_heads, or decoder.views=top",
                "draft_decoder 只读编码器的最后一层，而 decoder.views="
                f"{self.decoder.views} 给出多层；请用 draft_heads，或 decoder.views=top",
            )
        return self


class DecoderOnlySettings(StackSettings):
    """A decoder-only language model."""

    kind: Literal["decoder_only"] = "decoder_only"
    dim: int = Field(default=512, ge=2, le=65536, multiple_of=2)
    """Width of every layer."""
    position: PositionSettings = DEFAULT_POSITION
    norm: NormSettings = DEFAULT_NORM
    feed_forward: FeedForwardSettings = DEFAULT_FEED_FORWARD
    dropout: DropoutSettings = DropoutSettings()
    tied: bool = True
    """Embedding and output share one matrix."""
    scaled: bool = True
    """Multiply embeddings by √dim."""
    output_bias: bool = False
    """Add a learned bias to the logits."""
    memory: LanguageMemorySettings = NO_MEMORY
    """What it keeps of the text before the window that it reads."""
    start_from: Path | None = None
    """A language model (its bundle or run) whose tokenizer and weights the training begins with."""

    @model_validator(mode="after")
    def _check_parts(self) -> "DecoderOnlySettings":
        check_heads(self.dim, self.heads)
        check_memory(self)
        return self


ModelSettings = Annotated[
    Annotated[EncoderDecoderSettings, Tag("encoder_decoder")]
    | Annotated[RecurrentTranslatorSettings, Tag("recurrent")]
    | Annotated[ParallelSettings, Tag("parallel")],
    Discriminator(KindOr("encoder_decoder")),  # a recipe without model.kind: the Transformer
]
"""What a recipe of task translation may build."""

TranslatorSettings = EncoderDecoderSettings | RecurrentTranslatorSettings | ParallelSettings
AnySettings = TransformerSettings | DecoderOnlySettings


NeuralSettings = NeuralNgramSettings | RecurrentSettings | DecoderOnlySettings
LanguageModelSettings = Annotated[NgramSettings | NeuralSettings, Field(discriminator="kind")]
"""What a recipe of task language_modeling may build."""
LanguageNetwork = NeuralNgram | RecurrentLanguageModel | DecoderOnly


def build_language_model(
    settings: NeuralSettings, *, size: int, generator: torch.Generator | None
) -> LanguageNetwork:
    """A neural language model over a vocabulary of `size`.

    Without a generator weights are not initialised: they will be loaded.
    """
    if isinstance(settings, DecoderOnlySettings):
        return build_decoder_only(settings, size=size, generator=generator)
    with contextlib.nullcontext() if generator is not None else Unfilled():
        model: LanguageNetwork
        match settings:
            case NeuralNgramSettings():
                model = NeuralNgram(settings, size=size)
            case RecurrentSettings():
                model = RecurrentLanguageModel(settings, size=size)
    if generator is not None:
        initialize(model, generator)
    return model


@overload
def build_model(
    settings: EncoderDecoderSettings,
    *,
    source_size: int,
    target_size: int,
    generator: torch.Generator | None,
) -> EncoderDecoder: ...
@overload
def build_model(
    settings: TranslatorSettings,
    *,
    source_size: int,
    target_size: int,
    generator: torch.Generator | None,
) -> TranslationModel: ...
def build_model(
    settings: TranslatorSettings,
    *,
    source_size: int,
    target_size: int,
    generator: torch.Generator | None,
) -> TranslationModel:
    """A new model; sizes are those of the vocabularies.

    Without a generator weights are not initialised: they will be loaded.
    """
    if settings.embedding.tied == "all" and source_size != target_size:
        raise UsageError(
            f"vocabularies of {source_size} and {target_size} tokens cannot share one embedding "
            "(embedding.tied=all needs "
            "text.shared=true); share the vocabulary, or set model.embedding.tied=output",
            f"词表大小为 {source_size} 与 {target_size}，不能共用一个嵌入（embedding.tied=all "
            "需要 text.shared=true）；请共享词表，或设 model.embedding.tied=output",
        )
    with contextlib.nullcontext() if generator is not None else Unfilled():
        model: TranslationModel
        match settings:
            case EncoderDecoderSettings():
                make: Callable[..., EncoderDecoder]
                make = partial(EncoderDecoder, added=_build_added_parts(settings))
                model = _assemble(settings, make, source_size=source_size, target_size=target_size)
            case ParallelSettings():
                parts = build_parallel_parts(settings, target_size=target_size)
                make = partial(ParallelTranslator, parallel=parts)
                model = _assemble(settings, make, source_size=source_size, target_size=target_size)
            case RecurrentTranslatorSettings():
                model = build_recurrent(settings, source_size=source_size, target_size=target_size)
    if generator is not None:
        initialize(model, generator)
    return model


def _build_added_parts(settings: EncoderDecoderSettings) -> AddedParts:
    heads = settings.draft_heads
    return AddedParts(
        draft_heads=DraftHeads(heads, dim=settings.dim) if heads.count else None,
        draft_decoder=_build_draft_decoder(settings),
        reward_baseline=RewardBaseline(dim=settings.dim) if settings.reward_baseline else None,
        views=_build_views(settings),
    )


def build_decoder_only(
    settings: DecoderOnlySettings, *, size: int, generator: torch.Generator | None
) -> DecoderOnly:
    """A language model over a vocabulary of `size`.

    Without a generator weights are not initialised: they will be loaded.
    """
    with contextlib.nullcontext() if generator is not None else Unfilled():
        table = nn.Embedding(size, settings.dim)
        output = nn.Linear(settings.dim, size, bias=settings.output_bias)
        if settings.tied:
            output.weight = table.weight
        memory = settings.memory
        blocks = build_encoder_blocks(settings, settings, role="decoder")
        if isinstance(memory, NearestMemory):
            block = blocks[memory.layer_of(settings.layers)]
            block.self_attention = NearestAttention(
                block.self_attention,
                size=memory.size,
                neighbours=memory.neighbours,
                reach=memory.reach,
            )
        model = DecoderOnly(
            embedding=_embedding(settings, table, scaled=settings.scaled),
            blocks=blocks,
            norm=build_final_norm(settings),
            output=output,
            reach=memory.reach if isinstance(memory, CarriedMemory) else None,
        )
    if generator is not None:
        initialize(model, generator)
    return model


def _assemble(
    settings: TransformerSettings,
    make: Callable[..., EncoderDecoder],
    *,
    source_size: int,
    target_size: int,
) -> EncoderDecoder:
    target_table = nn.Embedding(target_size, settings.dim)
    source_table = (
        target_table
        if settings.embedding.tied == "all"
        else nn.Embedding(source_size, settings.dim)
    )
    output = nn.Linear(settings.dim, target_size, bias=settings.output_bias)
    if settings.embedding.tied != "none":
        output.weight = target_table.weight
    encoder = build_encoder_blocks(settings, settings.encoder)
    decoder = _decoder_blocks(
        settings, num_layers=settings.decoder.layers, sees_all=is_parallel(settings)
    )
    return make(
        source_embedding=_embedding(settings, source_table, scaled=settings.embedding.scaled),
        target_embedding=_embedding(settings, target_table, scaled=settings.embedding.scaled),
        encoder=encoder,
        decoder=decoder,
        encoder_norm=build_final_norm(settings),
        decoder_norm=build_final_norm(settings),
        output=output,
    )


def _embedding(settings: AnySettings, table: nn.Embedding, *, scaled: bool) -> TokenEmbedding:
    positions = build_positions(settings.position, dim=settings.dim)
    return TokenEmbedding(table, positions, scaled=scaled, dropout_rate=settings.dropout.embedding)


def _build_views(settings: EncoderDecoderSettings) -> SourceViews | None:
    """What puts several layers of the encoder side by side; None: the last one alone."""
    encoder, decoder = settings.encoder, settings.decoder
    if decoder.views == "top":
        return None
    return SourceViews(decoder.views, num_encoder=encoder.layers, num_decoder=decoder.layers)


def _build_draft_decoder(settings: EncoderDecoderSettings) -> DraftDecoder | None:
    """The small decoder that guesses several tokens, if the settings ask for one."""
    drafting = settings.draft_decoder
    if not drafting.layers:
        return None
    layers = _decoder_blocks(settings, num_layers=drafting.layers, sees_all=True)
    return DraftDecoder(drafting, layers, build_final_norm(settings), dim=settings.dim)


def _decoder_blocks(
    settings: TransformerSettings, *, num_layers: int, sees_all: bool
) -> list[DecoderBlock]:
    """Layers of a decoder. One that sees the whole target attends to it as an encoder does."""
    role: Role = "encoder" if sees_all else "decoder"
    make = ParallelDecoderBlock if sees_all else DecoderBlock
    decoder = settings.decoder
    relations = build_relations(
        settings.position,
        num_layers=num_layers,
        dim=settings.dim,
        num_heads=decoder.heads,
        is_causal=role == "decoder",
    )
    blocks = [
        make(
            build_self_attention(settings, decoder, role=role, relation=relation),
            _cross_attention(settings, view=number),
            build_feed_forward(
                settings.feed_forward, dim=settings.dim, dropout_rate=settings.dropout.hidden
            ),
            attention_residual=build_residual(settings),
            cross_residual=build_residual(settings),
            feed_forward_residual=build_residual(settings),
        )
        for number, relation in enumerate(relations, start=1)
    ]
    share_between_layers([block.cross_attention for block in blocks])
    return blocks


def _cross_attention(settings: TransformerSettings, *, view: int) -> MultiHeadAttention:
    attention = build_attention(
        settings.decoder.cross_attention,
        dim=settings.dim,
        num_heads=settings.decoder.heads,
        dropout_rate=settings.dropout.attention,
        role="cross",
        relation=None,
    )
    if settings.decoder.views == "top":
        return attention
    return ViewedAttention(settings.dim, settings.decoder.heads, attention.kernel, view=view)
