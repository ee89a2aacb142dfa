"""Request and reply bodies of `POST /v1/translate`: texts, decoding options, translations.

Tested: limits, examples, and the OpenAPI description with schemathesis.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Field, create_model

from headwise.decoding.choices import decoding_kinds
from headwise.decoding.generation_settings import GenerationSettings
from headwise.serving.schemas.base import (
    Body,
    ModelName,
    Phrases,
    Reply,
    TextOrTexts,
    Texts,
    TextsBody,
    Whole,
    absent,
    describe_texts,
)
from headwise.serving.schemas.limits import MAX_BEST, MAX_PHRASE_BYTES
from headwise.tasks.translation.input_warning import InputWarning
from headwise.tasks.translation.source_sentences import Candidate

DIGITS = 4
"""Scores are rounded: their last bits depend on the batch that a sentence was in."""


class DecodingOptions(Body):
    """How to search. The body of each kind is made from what its settings declare."""

    kind: str


def options_body(settings: type[GenerationSettings]) -> type[DecodingOptions]:
    """The decoding options of one kind: BeamOptions for BeamSettings."""
    fields: dict[str, Any] = {"kind": (settings.model_fields["kind"].annotation, ...)}
    for name, option in settings.request_options.items():
        limits = Field(
            default=option.default, ge=option.low, le=option.high, description=option.description
        )
        fields[name] = (Whole if isinstance(option.default, int) else float, limits)
    return create_model(
        settings.__name__.removesuffix("Settings") + "Options",
        __base__=DecodingOptions,
        __doc__=settings.summary,
        **fields,
    )


if TYPE_CHECKING:
    AnyDecodingOptions = DecodingOptions
else:
    AnyDecodingOptions = Annotated[
        Union[tuple(options_body(kind) for kind in decoding_kinds())],  # noqa: UP007
        Field(discriminator="kind"),
    ]


MemoryWeight = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="λ, the share of the neighbours; null: as the store was tuned",
    ),
]


class MemoryOptions(Body):
    """How a model that is served with a memory of stored examples asks it."""

    off: bool = Field(default=False, description="translate without the memory")
    weight: MemoryWeight = None


class TranslateBody(TextsBody):
    model_config = describe_texts(
        {"text": "The dog is old."},
        {
            "texts": ["The dog is old.", "It rains."],
            "decoding": {"kind": "beam", "size": 4},
            "n_best": 2,
        },
        {"text": "The dog is old.", "forbid": ["Hund"], "require": ["sehr alt"]},
    )

    text: TextOrTexts = absent(
        "one text or several; each may hold several sentences and paragraphs"
    )
    texts: Texts = absent("the same as a list, as /v1/score has it")
    model: ModelName | None = None
    decoding: AnyDecodingOptions | None = Field(
        default=None, description="how to search; without it as the model's recipe says"
    )
    memory: MemoryOptions | None = Field(
        default=None,
        description=(
            "of a model that is served with a memory; without it the memory counts as it was tuned"
        ),
    )
    n_best: Whole = Field(
        default=1, ge=1, le=MAX_BEST, description="translations of each text, best first"
    )
    prefix: str = Field(
        default="", max_length=200, description="every translation begins like this"
    )
    forbid: Phrases = Field(
        default=[],
        description=(
            "words or phrases that occur in no translated sentence; whole words, in scripts "
            f"without spaces any occurrence; at most {MAX_PHRASE_BYTES} bytes of UTF-8 together "
            "with `require`"
        ),
    )
    require: Phrases = Field(
        default=[],
        description=(
            "words or phrases that occur in every translated sentence, counted in the same way; "
            "where the model's own search cannot guarantee them, they are found by beam search, "
            "unless `decoding` names another kind, which is refused; at most "
            f"{MAX_PHRASE_BYTES} bytes of UTF-8 together with `forbid`"
        ),
    )
    split: bool = Field(
        default=True, description="translate sentence by sentence; false: each text is one sentence"
    )
    stream: bool = Field(
        default=False, description="server-sent events while the translation grows"
    )


class CandidateReply(Reply):
    text: str
    score: float
    log_probability: float


class WarningReply(Reply):
    """The text is unlike the model's training data; its translation may be nonsense."""

    code: Literal["unknown_words", "target_language", "other_language"]
    message: str
    message_zh: str


InputWarningReply = Annotated[
    WarningReply | None,
    Field(description="why the text is unlike the model's training data; null if it is not"),
]


class TranslationReply(Reply):
    text: str
    truncated: bool = Field(description="the length limit cut the translation")
    warning: InputWarningReply
    n_best: list[CandidateReply]


class TranslateReply(Reply):
    model: str
    translations: list[TranslationReply]


def translation_reply(found: list[Candidate], warning: InputWarning | None) -> TranslationReply:
    """The n best translations of one text."""
    candidates = [
        CandidateReply(
            text=one.text,
            score=round(one.score, DIGITS),
            log_probability=round(one.log_probability, DIGITS),
        )
        for one in found
    ]
    return TranslationReply(
        text=found[0].text,
        truncated=not found[0].is_whole,
        warning=warning_reply(warning),
        n_best=candidates,
    )


def warning_reply(warning: InputWarning | None) -> WarningReply | None:
    """A warning in both languages."""
    if warning is None:
        return None
    return WarningReply(code=warning.code, message=warning.en, message_zh=warning.zh)
