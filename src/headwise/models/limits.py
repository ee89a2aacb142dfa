"""The longest rows a model can read, and which setting says so: asked before anything is made, not when the first long row comes.

    learned positions      position.max_length                  one vector for each place
    linformer              attention.max_length                 one row of its mixtures for each token
    location score         attention.score.max_length           one output for each place it can name

Everything else goes on for ever. A packed row counts whole: how long its sentences are, only the
device knows.

Tested against: rows one token longer, which the kernels refuse themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from headwise.attention.choices import AttentionSettings, Full, Linformer, Reformer
from headwise.attention.score_choices import LocationSettings, ScoreSettings
from headwise.errors import SettingsError
from headwise.models.choices import DecoderOnlySettings, EncoderDecoderSettings, TranslatorSettings
from headwise.models.recurrent.choices import NoAttention
from headwise.models.sentence_encoder import EncoderRung
from headwise.positions.choices import Learned, PositionSettings


@dataclass(frozen=True)
class Limit:
    """At most `tokens` in a row, because the setting `key` says so."""

    key: str
    tokens: int
    unlimited: tuple[str, ...] = field(default=(), compare=False)
    """Settings that have no such limit."""


def source_limits(model: TranslatorSettings) -> list[Limit]:
    """Of the rows a translator reads."""
    if isinstance(model, EncoderDecoderSettings):
        encoder = _of_attention(model.encoder.attention, "model.encoder.attention")
        cross = _of_attention(model.decoder.cross_attention, "model.decoder.cross_attention")
        return [*_of_position(model.position), *encoder, *cross]
    if isinstance(model.attention, NoAttention):
        return []
    return _of_score(model.attention.score, "model.attention")


def target_limits(model: TranslatorSettings) -> list[Limit]:
    """Of the rows it writes."""
    if isinstance(model, EncoderDecoderSettings):
        return [
            *_of_position(model.position),
            *_of_attention(model.decoder.attention, "model.decoder.attention"),
        ]
    return []


def row_limits(model: DecoderOnlySettings | EncoderRung) -> list[Limit]:
    """Of a model with one stack."""
    return [*_of_position(model.position), *_of_attention(model.attention, "model.attention")]


def check_rows(
    limits: Iterable[Limit], num_tokens: int, *, rows: tuple[str, str], enough: int | None = None
) -> None:
    """Refuse rows of `num_tokens` that are too long; `rows` says what sets their length, in English and Chinese, `enough` what certainly suffices if it is more."""
    needed = num_tokens if enough is None else enough
    for limit in limits:
        if limit.tokens < num_tokens:
            raise SettingsError(
                f"{limit.key} is {limit.tokens}, but rows have {num_tokens} tokens ({rows[0]}); set {limit.key}={needed} or more, "
                f"make the rows shorter, or use {' or '.join(limit.unlimited)}, without a limit",
                f"{limit.key} 为 {limit.tokens}，而每行有 {num_tokens} 个词元（{rows[1]}）；请设 {limit.key}={needed} 或更大，或缩短行长，"
                f"或用没有长度限制的 {'、'.join(limit.unlimited)}",
            )


def check_buckets(
    model: EncoderDecoderSettings | DecoderOnlySettings | EncoderRung, num_tokens: int
) -> None:
    """Refuse hashes with more buckets than a row has tokens: most would be alone in theirs and see nobody."""
    if isinstance(model, EncoderDecoderSettings):
        attentions = {
            "model.encoder.attention": model.encoder.attention,
            "model.decoder.attention": model.decoder.attention,
        }
    else:
        attentions = {"model.attention": model.attention}
    for key, attention in attentions.items():
        if isinstance(attention, Reformer) and attention.num_buckets > num_tokens:
            raise SettingsError(
                f"{key}.num_buckets is {attention.num_buckets}, but rows have {num_tokens} tokens, most of which would be alone in their "
                f"bucket and see only themselves; set {key}.num_buckets to {num_tokens // 2 // 2 * 2 or 2} or less",
                f"{key}.num_buckets 为 {attention.num_buckets}，而每行只有 {num_tokens} 个词元，多数会独占一桶、只看到自己；"
                f"请将 {key}.num_buckets 设为 {num_tokens // 2 // 2 * 2 or 2} 或更小",
            )


def _of_position(position: PositionSettings) -> list[Limit]:
    unlimited = tuple(f"model.position.kind={kind}" for kind in ("sinusoidal", "rotary", "alibi"))
    return (
        [Limit("model.position.max_length", position.max_length, unlimited)]
        if isinstance(position, Learned)
        else []
    )


def _of_attention(attention: AttentionSettings, key: str) -> list[Limit]:
    match attention:
        case Linformer(max_length=tokens):
            return [Limit(f"{key}.max_length", tokens, (f"{key}.kind=fused",))]
        case Full(score=score):
            return _of_score(score, key)
        case _:
            return []


def _of_score(score: ScoreSettings, key: str) -> list[Limit]:
    unlimited = (f"{key}.score.kind=scaled_dot",)
    return (
        [Limit(f"{key}.score.max_length", score.max_length, unlimited)]
        if isinstance(score, LocationSettings)
        else []
    )
