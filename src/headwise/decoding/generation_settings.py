"""`GenerationSettings`: settings of every search, such as lengths, phrases, unknown tokens,
batches.

Each kind of search (greedy, beam, sampling …) subclasses it, adds a `kind` and its own fields, and
overrides the properties whose answer differs.
Tested: limits, contradictions between phrases, and every subclass through `choices.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from headwise.decoding.request_option import RequestOption
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.errors import SettingsError, UsageError
from headwise.neighbours.settings import MemorySettings
from headwise.settings import Settings
from headwise.text.phrase_matching import NOT_WATCHED, occurs, single_spaced

MAX_LENGTH = 65_536


class Batching(Settings):
    """How a file is cut into batches: by length within a window, so that memory stays bounded."""

    sentences: int = Field(default=64, ge=1)
    """At most this many sentences in a batch."""
    tokens: int = Field(default=8192, ge=1)
    """At most this many source tokens in a batch, padding counted."""
    window: int = Field(default=4096, ge=1)
    """Sentences read, sorted by length and decoded before the next are read."""


class GenerationSettings(Settings):
    """What all ways to generate share."""

    plans: ClassVar[bool] = False
    """Whether required phrases can be planned for."""
    output_forms: ClassVar[tuple[str, ...]] = ()
    """What the model must give, one of these words (`choices.OUTPUT_FORMS`). Empty: any model will
    do."""
    can_trace: ClassVar[bool] = False
    """Whether `Generator.generate(traced=True)` records a search tree."""
    records_passes: ClassVar[bool] = False
    """Whether `Generator.generate(traced=True)` records what each pass over all positions wrote."""
    keeps_record: ClassVar[bool] = False
    """Whether `Generator.generate(traced=True)` keeps a record of what was considered
    (records.py)."""
    summary: ClassVar[str] = ""
    """One sentence about the kind, for the description of the server's requests."""
    request_options: ClassVar[Mapping[str, RequestOption]] = {}
    """What a request to the server may set, besides the kind."""
    max_length: int | LengthLimit = LengthLimit()
    """Most tokens generated, end of sentence included: a number, or {factor, extra, limit} of the
    source's length."""
    min_length: int = Field(default=0, ge=0)
    """Fewest tokens generated, end of sentence not counted."""
    at_limit: Literal["cut", "end"] = "cut"
    """At the maximum length: cut the hypothesis there, or force the end of the sentence as its last
    token (free of cost, as transformers' `forced_eos_token_id`, which Marian models set)."""
    no_repeat_ngrams: int = Field(default=0, ge=0)
    """No n tokens in a row may occur twice; 0 allows everything."""
    allow_unknown: bool = True
    """Whether the unknown token may be generated."""
    forbidden: tuple[str, ...] = ()
    """Words or phrases that must not occur in the text, whatever tokens spell them."""
    required: tuple[str, ...] = ()
    """Words or phrases that must occur in the text; beam search only."""
    prefix: str = ""
    """Every output starts like this."""
    batching: Batching = Batching()

    @property
    def is_traceable(self) -> bool:
        """Whether `Generator.generate(traced=True)` tells more than the result."""
        return self.can_trace or self.records_passes or self.keeps_record

    @property
    def over_steppers(self) -> bool:
        """Whether this is a search over a stepper, token by token. Another such search can then
        take its place: `/v1/trace` shows a beam search of the size asked for, and training
        validates with greedy search."""
        return "steps" in self.output_forms

    @property
    def judge_path(self) -> str | None:
        """The bundle of another translator that chooses among candidates, if one does."""
        return None

    @property
    def language_model_path(self) -> str | None:
        """The bundle or ARPA file of a language model that takes part in the search, if one
        does."""
        return None

    @property
    def asked_memory(self) -> MemorySettings | None:
        """The memory of neighbours that takes part in every step, if one does."""
        return None

    @property
    def unaided(self) -> "GenerationSettings":
        """The same without another model, as validations during training decode."""
        return self

    def check_complete(self) -> None:
        """Refuse settings without something that only a recipe can give."""

    @property
    def num_hypotheses(self) -> int:
        """Hypotheses that are kept for one sentence while it is generated."""
        return 1

    @property
    def needs_attention(self) -> bool:
        """Whether scores depend on the attention to the source."""
        return False

    def with_request_options(self, options: Mapping[str, Any]) -> Self:
        """The same with the values that a request gives to some of `request_options`."""
        return self.model_copy(update=dict(options))

    def with_num_results(self, count: int, *, may_widen: bool) -> Self | None:
        """The same with `count` results for each sentence; None if it cannot find so many.

        `may_widen` allows a search to keep more hypotheses for it.
        """
        return self if count == 1 else None

    @model_validator(mode="before")
    @classmethod
    def _refuse_memory(cls, data: Any) -> Any:
        """Of the searches that have no such setting (search/remembering.py)."""
        if "memory" in cls.model_fields or not isinstance(data, Mapping) or "memory" not in data:
            return data
        kind = f"kind={cls.model_fields['kind'].default}" if "kind" in cls.model_fields else "this"
        raise SettingsError(
            f"{kind} takes no memory of stored neighbours; use kind=greedy, kind=beam or "
            "kind=sampling with it, or leave the memory out",
            f"{kind} 不支持近邻记忆；请改用 kind=greedy、kind=beam 或 kind=sampling，或去掉记忆",
        )

    @model_validator(mode="after")
    def _check_lengths(self) -> "GenerationSettings":
        limit = self.max_length if isinstance(self.max_length, int) else self.max_length.limit
        if limit < 1 or self.min_length >= limit:
            raise SettingsError(
                f"max_length must be at least 1 and above min_length; given {limit} and "
                f"{self.min_length}",
                f"max_length 必须至少为 1 且大于 min_length；给出 {limit} 与 {self.min_length}",
            )
        if limit > MAX_LENGTH:
            raise SettingsError(
                f"max_length is {limit:,}; at most {MAX_LENGTH:,} tokens are generated for a "
                "sentence: lower it",
                f"max_length 为 {limit:,}；一句最多生成 {MAX_LENGTH:,} 个词元：请调小",
            )
        return self

    @model_validator(mode="after")
    def _check_phrases(self) -> "GenerationSettings":
        check_phrase_texts(self)
        return self


def check_phrase_texts(settings: GenerationSettings) -> None:
    """Refuse phrases that are no text or empty, contradict each other, or cannot be planned
    for.
    """
    for phrase in (*settings.forbidden, *settings.required, settings.prefix):
        try:
            phrase.encode()
        except UnicodeEncodeError as error:
            raise SettingsError(
                f"the prefix or the forbidden or required phrase {phrase!r} is not UTF-8 at "
                f"character {error.start + 1}; give text in UTF-8, on the command line in a UTF-8 "
                "locale such as LC_ALL=C.UTF-8",
                f"前缀、禁用或必需短语 {phrase!r} 的第 {error.start + 1} 个字符不是 UTF-8；"
                "请给出 UTF-8 文本，命令行请使用 UTF-8 区域设置，例如 LC_ALL=C.UTF-8",
            ) from error
    for phrase in (*settings.forbidden, *settings.required):
        if not single_spaced(phrase):
            raise SettingsError(
                f"the forbidden or required phrase {phrase!r} is empty; give at least one "
                "character",
                f"禁用或必需短语 {phrase!r} 为空；请至少给出一个字符",
            )
        for character in sorted(NOT_WATCHED.keys() & set(phrase)):
            en, zh = NOT_WATCHED[character]
            code = f"U+{ord(character):04X}"
            raise SettingsError(
                f"the forbidden or required phrase {phrase!r} holds {code}, {en}; leave that "
                "character out",
                f"禁用或必需短语 {phrase!r} 含有 {code}，{zh}；请去掉该字符",
            )
    for phrase in settings.required:
        refuse_contradiction(phrase, settings.forbidden, name=("required phrase", "必需短语"))
    refuse_contradiction(settings.prefix, settings.forbidden, name=("prefix", "前缀"))
    if settings.required and not settings.plans:
        raise explain_unplanned_phrases()


def explain_unplanned_phrases() -> SettingsError:
    """Required phrases need a search that compares several paths."""
    return SettingsError(
        "greedy search and sampling cannot guarantee required phrases, because they follow one "
        "path; use kind=beam",
        "贪心搜索与采样只沿一条路径前进，无法保证必需短语出现；请使用 kind=beam",
    )


def explain_wrong_settings(given: object) -> UsageError:
    """Something was given as decoding settings that is none, such as a dictionary."""
    return UsageError(
        f"the decoding given is a {type(given).__name__}; make one with "
        "translator.settings(['kind=beam', 'size=8'])",
        f"给出的 decoding 是 {type(given).__name__}；"
        "请用 translator.settings(['kind=beam', 'size=8']) 生成",
    )


def refuse_contradiction(text: str, forbidden: Sequence[str], *, name: tuple[str, str]) -> None:
    """A text that is asked for must not hold a forbidden phrase."""
    if text in forbidden:
        raise SettingsError(
            f"the {name[0]} {text!r} is forbidden too; drop one of the two",
            f"{name[1]} {text!r} 同时又被禁用；请去掉其一",
        )
    for phrase in forbidden:
        if occurs(phrase, text):
            raise SettingsError(
                f"the {name[0]} {text!r} holds {phrase!r}, which is forbidden; drop one of them",
                f"{name[1]} {text!r} 含有被禁用的 {phrase!r}；请去掉其一",
            )
