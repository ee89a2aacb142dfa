"""What a hypothesis may contain, as masks over the next-token log-probabilities of all rows at once.

A forbidden continuation gets log-probability -inf before the search chooses; nothing is renormalised, so scores of what
remains are the model's own. A token w is forbidden after the history h of a row

    always                    if w is padding or the beginning of a sentence (or unknown, when so set)
    by a minimum length       if w ends the sentence too early
    by the rules of its text  if w would write a forbidden phrase, leave too little room for the required ones, or end the text
                              before they are written (`text_rules.py`)
    by no-repeat n-grams      if the last n-1 tokens of h followed by w occur in h already (Paulus et al. 2018)
    by a forced prefix        if w is not the prefix's token at this position (a prefix outranks all other rules)

A row to which the rules leave nothing is ended there. A search that follows one path never writes a token after which the text
could not end: having written "cat" where "cat" is forbidden, only a longer word could save it. A beam may (it has other
hypotheses), and so can still find "catalogue". How a beam makes room for required phrases is in `required.py`.
Tested by laws (the forbidden never appears, the prefix always) and against transformers' processors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from headwise.decoding.rules.length import LengthLimit
from headwise.decoding.rules.needed_tokens import IMPOSSIBLE
from headwise.decoding.rules.text_rules import TextRules
from headwise.decoding.stepper import EOS, PAD, UNKNOWN
from headwise.errors import SettingsError, UsageError
from headwise.settings import Settings
from headwise.text.phrase_matching import NOT_WATCHED, occurs, single_spaced

MINUS_INFINITY = float("-inf")
MAX_LENGTH = 65_536


class Batching(Settings):
    """How a file is cut into batches: longest first within a window, so that memory does not grow with the file."""

    sentences: int = Field(default=64, ge=1)
    """At most this many sentences in a batch."""
    tokens: int = Field(default=8192, ge=1)
    """At most this many source tokens in a batch, padding counted."""
    window: int = Field(default=4096, ge=1)
    """Sentences read, sorted by length and decoded before the next are read."""


class SearchSettings(Settings):
    """What all searches share."""

    plans: ClassVar[bool] = False
    """Whether required phrases can be planned for."""
    max_length: int | LengthLimit = LengthLimit()
    """Most tokens generated, end of sentence included: a number, or {factor, extra, limit} of the source's length."""
    min_length: int = Field(default=0, ge=0)
    """Fewest tokens generated, end of sentence not counted."""
    at_limit: Literal["cut", "end"] = "cut"
    """At the maximum length: cut the hypothesis there, or force the end of the sentence as its last token (free of cost,
    as transformers' `forced_eos_token_id`, which Marian models set)."""
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

    @model_validator(mode="after")
    def _check_lengths(self) -> "SearchSettings":
        limit = self.max_length if isinstance(self.max_length, int) else self.max_length.limit
        if limit < 1 or self.min_length >= limit:
            raise SettingsError(
                f"max_length must be at least 1 and above min_length; given {limit} and {self.min_length}",
                f"max_length 必须至少为 1 且大于 min_length；给出 {limit} 与 {self.min_length}",
            )
        if limit > MAX_LENGTH:
            raise SettingsError(
                f"max_length is {limit:,}; at most {MAX_LENGTH:,} tokens are generated for a sentence: lower it",
                f"max_length 为 {limit:,}；一句最多生成 {MAX_LENGTH:,} 个词元：请调小",
            )
        return self

    @model_validator(mode="after")
    def _check_wishes(self) -> "SearchSettings":
        check_wishes(self)
        return self


def check_wishes(settings: SearchSettings) -> None:
    """Refuse phrases that are empty, that contradict each other, or that this search cannot plan for."""
    for phrase in (*settings.forbidden, *settings.required):
        if not single_spaced(phrase):
            raise SettingsError(
                f"the forbidden or required phrase {phrase!r} is empty; give at least one character",
                f"禁用或必需短语 {phrase!r} 为空；请至少给出一个字符",
            )
        for character in sorted(NOT_WATCHED.keys() & set(phrase)):
            en, zh = NOT_WATCHED[character]
            raise SettingsError(
                f"the forbidden or required phrase {phrase!r} holds U+{ord(character):04X}, {en}; leave that character out",
                f"禁用或必需短语 {phrase!r} 含有 U+{ord(character):04X}，{zh}；请去掉该字符",
            )
    for phrase in settings.required:
        refuse_contradiction(phrase, settings.forbidden, name=("required phrase", "必需短语"))
    refuse_contradiction(settings.prefix, settings.forbidden, name=("prefix", "前缀"))
    if settings.required and not settings.plans:
        raise SettingsError(
            "required phrases were given to a search that follows one path and cannot plan for them; use kind=beam",
            "该搜索只沿一条路径前进，无法保证必需短语出现；请使用 kind=beam",
        )


def refuse_contradiction(text: str, forbidden: Sequence[str], *, name: tuple[str, str]) -> None:
    """A text that is asked for must not hold what is forbidden."""
    for phrase in forbidden:
        if occurs(phrase, text):
            raise SettingsError(
                f"the {name[0]} {text!r} holds {phrase!r}, which is forbidden; drop one of them",
                f"{name[1]} {text!r} 含有被禁用的 {phrase!r}；请去掉其一",
            )


@dataclass(frozen=True)
class Phrases:
    """The wishes of one sentence: the tokens it begins with, and the rules of its text."""

    prefix: tuple[int, ...] = ()
    rules: TextRules | None = None
    """The same for all sentences of a batch."""


def check_phrases(phrases: Phrases, *, limit: int) -> None:
    """Refuse wishes that cannot be granted within `limit` tokens, the end of the sentence included."""
    for token in phrases.prefix:
        if token < UNKNOWN:
            raise UsageError(
                f"the prefix holds the special token {token}; only ordinary tokens can be asked for",
                f"前缀含有特殊词元 {token}；只能要求普通词元",
            )
    needed = len(phrases.prefix) + (
        0 if phrases.rules is None else phrases.rules.read(phrases.prefix)
    )
    if needed >= IMPOSSIBLE:
        assert phrases.rules is not None
        raise _explain_impossible(phrases.rules, has_prefix=bool(phrases.prefix))
    if needed >= limit and (
        phrases.prefix or (phrases.rules is not None and phrases.rules.required)
    ):
        raise UsageError(
            f"prefix, required phrases and the end of the sentence take {needed + 1} tokens, but max_length is {limit} here; "
            "raise max_length or ask for less",
            f"前缀、必需短语与句末共需 {needed + 1} 个词元，而此处 max_length 为 {limit}；请调大 max_length 或减少要求",
        )


def _explain_impossible(rules: TextRules, *, has_prefix: bool) -> UsageError:
    required, forbidden = (
        ", ".join(map(repr, texts)) for texts in (rules.required, rules.forbidden)
    )
    begin = ("after this prefix ", "在该前缀之后，") if has_prefix else ("", "")
    return UsageError(
        f"{begin[0]}no text can hold the required phrases ({required or 'none'}) without a forbidden one "
        f"({forbidden or 'none'}); drop one of them",
        f"{begin[1]}没有文本能包含全部必需短语（{required or '无'}）而不出现禁用短语（{forbidden or '无'}）；请去掉其一",
    )


class Constraints:
    """The rules of one batch and the histories they look at; follows the rows of the search step by step."""

    def __init__(
        self,
        settings: SearchSettings,
        phrases: Sequence[Phrases],
        *,
        limits: Sequence[int],
        width: int,
        device: torch.device,
        can_turn_back: bool = False,
    ) -> None:
        """`can_turn_back`: the search keeps other hypotheses, so one may begin what it can end in a permitted way only."""
        for wishes, limit in zip(phrases, limits, strict=True):
            check_phrases(wishes, limit=limit)
        self.settings, self.width, self.device = settings, width, device
        self.can_turn_back = can_turn_back
        self.step = 0
        self.limits = torch.tensor(limits, device=device)
        self.first_limit = min(limits)
        self.rules = self._shared_rules(phrases)
        self.tables = None if self.rules is None else self.rules.on(device)
        self.states = torch.zeros(len(limits) * width, dtype=torch.long, device=device)
        self._needs: tuple[Tensor, Tensor] | None = None
        self.longest_prefix = max(len(wishes.prefix) for wishes in phrases)
        self.prefixes = _pad(
            [wishes.prefix for wishes in phrases], self.longest_prefix, device=device
        )
        self.keeps_history = settings.no_repeat_ngrams > 0
        self.history = torch.empty((len(limits) * width, 0), dtype=torch.long, device=device)

    @staticmethod
    def _shared_rules(phrases: Sequence[Phrases]) -> TextRules | None:
        rules = phrases[0].rules
        if (
            len(
                {
                    wishes.rules and (wishes.rules.forbidden, wishes.rules.required)
                    for wishes in phrases
                }
            )
            > 1
        ):
            raise UsageError(
                "the sentences of one batch have different forbidden or required phrases; decode them in batches of their own",
                "同一批句子的禁用或必需短语不一致；请分批解码",
            )
        return rules

    def mask(self, log_probabilities: Float[Tensor, "row vocab"]) -> Float[Tensor, "row vocab"]:
        """Overwrite what is forbidden now with -inf."""
        scores = log_probabilities
        end = scores[:, EOS].clone() if self.tables is not None or self.keeps_history else None
        in_prefix = self.step < self.longest_prefix
        forced = (
            self.prefixes[:, self.step].repeat_interleave(self.width)[:, None]
            if in_prefix
            else None
        )
        forced_value = None if forced is None else scores.gather(1, forced.clamp(min=PAD))
        scores[:, :EOS] = MINUS_INFINITY
        if not self.settings.allow_unknown:
            scores[:, UNKNOWN] = MINUS_INFINITY
        if self.step < self.settings.min_length:
            scores[:, EOS] = MINUS_INFINITY
        may_end = self._keep_to_rules(scores)
        if end is not None:
            stuck = scores.amax(-1) == MINUS_INFINITY
            stuck = stuck if may_end is None else stuck & may_end
            scores[:, EOS] = torch.where(stuck, end, scores[:, EOS])
        if forced is not None and forced_value is not None:
            active = forced >= PAD
            scores.masked_fill_(active, MINUS_INFINITY)
            scores.scatter_(
                1, forced.clamp(min=PAD), torch.where(active, forced_value, MINUS_INFINITY)
            )
        if self.settings.at_limit == "end" and self.step + 1 >= self.first_limit:
            last = (self.limits == self.step + 1).repeat_interleave(self.width)
            last = last if may_end is None else last & may_end
            scores.masked_fill_(last[:, None], MINUS_INFINITY)
            scores[:, EOS] = torch.where(last, 0.0, scores[:, EOS])
        return scores

    def _keep_to_rules(self, scores: Tensor) -> Bool[Tensor, "row"] | None:
        """Mask by repeated n-grams and by the rules of the text; which rows may end here, None for all."""
        if self.tables is None:
            self._forbid_repeats(scores)
            return None
        need, need_after = self.needs()
        if self.keeps_history:
            # What a required phrase needs may be a repetition.
            wanted = scores.masked_fill(need_after >= need[:, None], MINUS_INFINITY)
            self._forbid_repeats(scores)
            torch.maximum(scores, wanted, out=scores)
        scores.masked_fill_(need_after > self._remaining()[:, None], MINUS_INFINITY)
        return need == 0 if self.can_turn_back else None

    def needs(self) -> tuple[Int[Tensor, "row"], Int[Tensor, "row vocab"]]:
        """How many tokens each row still needs until it may end, now and after every token."""
        assert self.tables is not None
        if self._needs is None:
            self._needs = self.tables.need[self.states], self.tables.after(self.states)
        return self._needs

    def _remaining(self) -> Int[Tensor, "row"]:
        """Tokens that may follow the next one, the end not counted. A path that cannot turn back needs to be able to end at once."""
        left = (self.limits - self.step - 2).clamp(0, IMPOSSIBLE - 1) * self.can_turn_back
        return left.to(torch.int16).repeat_interleave(self.width)

    def _forbid_repeats(self, scores: Tensor) -> None:
        size = self.settings.no_repeat_ngrams
        if not size or self.step < size:
            return
        seen = self.history.unfold(1, size, 1)
        matches = (seen[:, :, :-1] == self.history[:, None, self.step + 1 - size :]).all(-1)
        _subtract(scores, seen[:, :, -1], matches)

    def advance(self, tokens: Int[Tensor, "new_row"], *, index: Tensor | None = None) -> None:
        """The search chose: new row i continues old row index[i] (the same row when None) with tokens[i]."""
        if self.keeps_history:
            past = self.history if index is None else self.history[index]
            self.history = torch.cat([past, tokens[:, None]], dim=1)
        if self.tables is not None:
            self._needs = None
            self.states = self.tables.move(
                self.states if index is None else self.states[index], tokens
            )
        self.step += 1

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Forget all sentences but these; call it before `advance`, whose index then refers to the old rows."""
        self.limits = self.limits[sentences]
        self.prefixes = self.prefixes[sentences]


def _subtract(scores: Tensor, tokens: Tensor, matches: Tensor) -> None:
    """-inf where a match forbids the token. Adding 0 elsewhere is exact, so repeated tokens do no harm."""
    zero = torch.zeros((), dtype=scores.dtype, device=scores.device)
    scores.scatter_add_(1, tokens, zero.masked_fill(matches, MINUS_INFINITY))


def _pad(sequences: Sequence[Sequence[int]], length: int, *, device: torch.device) -> Tensor:
    rows = [[*sequence, *[-1] * (length - len(sequence))] for sequence in sequences]
    return torch.tensor(rows, dtype=torch.long, device=device).reshape(len(sequences), length)
