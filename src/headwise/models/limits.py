"""Computes the longest row that a model can read, and names the setting that limits it.

Recipes are checked with it before a model is built. Each attention kernel, score and position
encoding declares its own limit (`longest_row`); most have none. In a packed row the whole row
counts, because only the device knows how long its segments are.

Tested against: rows one token longer, which the kernels refuse.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from headwise.attention.capabilities import AttentionKind, RowLimit
from headwise.attention.choices import DEFAULT_ATTENTION
from headwise.attention.score_choices import DEFAULT_SCORE
from headwise.attention.scores.declaration import ScoreKind
from headwise.errors import SettingsError
from headwise.models.choices import DecoderOnlySettings, TranslatorSettings
from headwise.models.recurrent.choices import NoAttention
from headwise.models.sentence_encoder import TransformerEncoderSettings
from headwise.models.transformer_settings import TransformerSettings
from headwise.positions.choices import BUILT_IN as POSITIONS
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import join_words


@dataclass(frozen=True)
class Limit:
    """At most `tokens` in a row, because the setting `key` says so."""

    key: str
    tokens: int
    unlimited: tuple[str, ...] = field(default=(), compare=False)
    """Settings that have no such limit."""


def source_limits(model: TranslatorSettings) -> list[Limit]:
    """Of the rows a translator reads."""
    if isinstance(model, TransformerSettings):
        encoder = _of_attention(model.encoder.attention, "model.encoder.attention")
        cross = _of_attention(model.decoder.cross_attention, "model.decoder.cross_attention")
        return [*_of_position(model.position), *encoder, *cross]
    if isinstance(model.attention, NoAttention):
        return []
    return _of_score(model.attention.score, "model.attention")


def target_limits(model: TranslatorSettings) -> list[Limit]:
    """Of the rows it writes."""
    if isinstance(model, TransformerSettings):
        return [
            *_of_position(model.position),
            *_of_attention(model.decoder.attention, "model.decoder.attention"),
        ]
    return []


def row_limits(model: DecoderOnlySettings | TransformerEncoderSettings) -> list[Limit]:
    """Of a model with one stack."""
    return [*_of_position(model.position), *_of_attention(model.attention, "model.attention")]


def check_rows(
    limits: Iterable[Limit], num_tokens: int, *, rows: tuple[str, str], enough: int | None = None
) -> None:
    """Refuse rows of `num_tokens` that are too long; `rows` says what sets their length, in English
    and Chinese, `enough` what certainly suffices if it is more."""
    needed = num_tokens if enough is None else enough
    for limit in limits:
        if limit.tokens < num_tokens:
            raise SettingsError(
                f"{limit.key} is {limit.tokens}, but rows have {num_tokens} tokens ({rows[0]}); "
                f"set {limit.key}={needed} or more, "
                f"make the rows shorter, or use {' or '.join(limit.unlimited)}, without a limit",
                f"{limit.key} 为 {limit.tokens}，而每行有 {num_tokens} 个词元（{rows[1]}）；请设 "
                f"{limit.key}={needed} 或更大，或缩短行长，"
                f"或用没有长度限制的 {'、'.join(limit.unlimited)}",
            )


def check_buckets(
    model: TransformerSettings | DecoderOnlySettings | TransformerEncoderSettings,
    num_tokens: int,
) -> None:
    """Refuse kernels that make no sense for rows this short, such as more buckets than tokens."""
    attentions: dict[str, AttentionKind]
    if isinstance(model, TransformerSettings):
        attentions = {
            "model.encoder.attention": model.encoder.attention,
            "model.decoder.attention": model.decoder.attention,
        }
    else:
        attentions = {"model.attention": model.attention}
    for key, attention in attentions.items():
        why = attention.refuse_rows(num_tokens, key=key)
        if why is not None:
            raise SettingsError(*why)


def _limit(found: RowLimit | None, key: str, unlimited: tuple[str, ...]) -> list[Limit]:
    return [] if found is None else [Limit(f"{key}.{found.key}", found.tokens, unlimited)]


def _of_position(position: PositionKind) -> list[Limit]:
    kinds = [kind.word() for kind in POSITIONS if kind.model_validate({}).longest_row is None]
    unlimited = (f"model.position.kind={join_words(kinds, ' or ')}",)
    return _limit(position.longest_row, "model.position", unlimited)


def _of_attention(attention: AttentionKind, key: str) -> list[Limit]:
    found = attention.longest_row
    # A limit of the score is lifted by another score, one of the kernel by another kernel.
    is_of_score = found is not None and found.key.startswith("score.")
    unlimited = (
        f"{key}.score.kind={DEFAULT_SCORE.kind}"
        if is_of_score
        else f"{key}.kind={DEFAULT_ATTENTION.kind}"
    )
    return _limit(found, key, (unlimited,))


def _of_score(score: ScoreKind, key: str) -> list[Limit]:
    return _limit(score.longest_row, f"{key}.score", (f"{key}.score.kind={DEFAULT_SCORE.kind}",))
