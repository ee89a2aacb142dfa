"""What a hypothesis must, may and may not contain, as masks over the next-token log-probabilities of all rows at once.

A forbidden continuation gets log-probability -inf before the search chooses; nothing is renormalised, so scores of what
remains are the model's own. A token w is forbidden after the history h of a row

    always                    if w is padding or the beginning of a sentence (or unknown, when so set)
    by a minimum length       if w ends the sentence too early
    by a forbidden phrase     if the end of h followed by w is that phrase
    by no-repeat n-grams      if the last n-1 tokens of h followed by w occur in h already (Paulus et al. 2018)
    by a forced prefix        if w is not the prefix's token at this position (a prefix outranks all other rules)

A row to which the rules leave nothing is ended there. Required phrases live in `required.py`: they need the beam.
Tested by laws (the forbidden never appears, the prefix always) and against transformers' processors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from headwise.decoding.length import LengthLimit
from headwise.decoding.stepping import EOS, PAD, UNKNOWN
from headwise.errors import SettingsError, UsageError
from headwise.settings import Settings

MINUS_INFINITY = float("-inf")


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
    """Words or phrases that must not appear (as the tokenizer writes them)."""
    required: tuple[str, ...] = ()
    """Words or phrases that must appear; beam search only."""
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
        return self


@dataclass(frozen=True)
class Phrases:
    """The wishes of one sentence as token ids."""

    forbidden: tuple[tuple[int, ...], ...] = ()
    required: tuple[tuple[int, ...], ...] = ()
    prefix: tuple[int, ...] = ()


def encode_phrases(settings: SearchSettings, encode: Callable[[str], Sequence[int]]) -> Phrases:
    """The phrases of the settings as token ids. A phrase is known by one spelling: other segmentations are not seen."""
    return Phrases(
        forbidden=tuple(tuple(encode(text)) for text in settings.forbidden),
        required=tuple(tuple(encode(text)) for text in settings.required),
        prefix=tuple(encode(settings.prefix)) if settings.prefix else (),
    )


def check_phrases(phrases: Phrases, *, limit: int) -> None:
    """Refuse wishes that cannot be granted: empty phrases, special tokens, contradictions, more than the length allows."""
    for phrase in (*phrases.forbidden, *phrases.required):
        if not phrase:
            raise UsageError(
                "a forbidden or required phrase has no tokens; give at least one word",
                "某个禁用或必需短语不含任何词元；请至少给出一个词",
            )
    for token in (*phrases.prefix, *(token for phrase in phrases.required for token in phrase)):
        if token < UNKNOWN:
            raise UsageError(
                f"a prefix or required phrase holds the special token {token}; only ordinary tokens can be asked for",
                f"前缀或必需短语含有特殊词元 {token}；只能要求普通词元",
            )
    for wanted in phrases.required:
        for unwanted in phrases.forbidden:
            if any(wanted[i : i + len(unwanted)] == unwanted for i in range(len(wanted))):
                raise UsageError(
                    f"the phrase {wanted} is required but contains {unwanted}, which is forbidden; drop one of them",
                    f"短语 {wanted} 是必需的，却包含被禁用的 {unwanted}；请去掉其一",
                )
    needed = len(phrases.prefix) + sum(map(len, set(phrases.required))) + 1
    if (phrases.prefix or phrases.required) and needed > limit:
        raise UsageError(
            f"prefix, required phrases and end of sentence take {needed} tokens but max_length is {limit} here; raise it",
            f"前缀、必需短语与句末共需 {needed} 个词元，而此处 max_length 为 {limit}；请调大",
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
    ) -> None:
        for wishes, limit in zip(phrases, limits, strict=True):
            check_phrases(wishes, limit=limit)
        self.settings, self.width, self.device = settings, width, device
        self.step = 0
        self.limits = torch.tensor(limits, device=device)
        self.first_limit = min(limits)
        self.longest_prefix = max(len(wishes.prefix) for wishes in phrases)
        self.prefixes = _pad([wishes.prefix for wishes in phrases], self.longest_prefix, device=device)
        self.forbidden = _tabulate([wishes.forbidden for wishes in phrases], device=device)
        self.keeps_history = settings.no_repeat_ngrams > 0 or any(length > 1 for length in self.forbidden)
        self.history = torch.empty((len(limits) * width, 0), dtype=torch.long, device=device)

    def mask(
        self, log_probabilities: Float[Tensor, "row vocab"], *, wanted: Int[Tensor, "row phrase"] | None = None
    ) -> Float[Tensor, "row vocab"]:
        """Overwrite what is forbidden now with -inf; tokens in `wanted` are exempt from no-repeat n-grams."""
        scores = log_probabilities
        strict = bool(self.forbidden) or self.keeps_history
        end = scores[:, EOS].clone() if strict else None
        in_prefix = self.step < self.longest_prefix
        forced = self.prefixes[:, self.step].repeat_interleave(self.width)[:, None] if in_prefix else None
        forced_value = None if forced is None else scores.gather(1, forced.clamp(min=PAD))
        scores[:, :EOS] = MINUS_INFINITY
        if not self.settings.allow_unknown:
            scores[:, UNKNOWN] = MINUS_INFINITY
        if self.step < self.settings.min_length:
            scores[:, EOS] = MINUS_INFINITY
        self._forbid_phrases(scores)
        kept = None if wanted is None else scores.gather(1, wanted)
        self._forbid_repeats(scores)
        if wanted is not None and kept is not None:
            scores.scatter_(1, wanted, kept)
        if end is not None:
            stuck = scores.amax(-1) == MINUS_INFINITY
            scores[:, EOS] = torch.where(stuck, end, scores[:, EOS])
        if forced is not None and forced_value is not None:
            active = forced >= PAD
            scores.masked_fill_(active, MINUS_INFINITY)
            scores.scatter_(1, forced.clamp(min=PAD), torch.where(active, forced_value, MINUS_INFINITY))
        if self.settings.at_limit == "end" and self.step + 1 >= self.first_limit:
            last = (self.limits == self.step + 1).repeat_interleave(self.width)
            scores.masked_fill_(last[:, None], MINUS_INFINITY)
            scores[:, EOS] = torch.where(last, 0.0, scores[:, EOS])
        return scores

    def _forbid_phrases(self, scores: Tensor) -> None:
        for length, table in self.forbidden.items():
            if self.step + 1 < length:
                continue
            rows = table.expand(len(self.limits), -1, -1).repeat_interleave(self.width, dim=0)
            matches = rows[:, :, -1] >= PAD
            if length > 1:
                recent = self.history[:, self.step + 1 - length :]
                matches &= (rows[:, :, :-1] == recent[:, None, :]).all(-1)
            _subtract(scores, rows[:, :, -1].clamp(min=PAD), matches)

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
        self.step += 1

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Forget all sentences but these; call it before `advance`, whose index then refers to the old rows."""
        self.limits = self.limits[sentences]
        self.prefixes = self.prefixes[sentences]
        self.forbidden = {
            length: table if len(table) == 1 else table[sentences] for length, table in self.forbidden.items()
        }


def _subtract(scores: Tensor, tokens: Tensor, matches: Tensor) -> None:
    """-inf where a match forbids the token. Adding 0 elsewhere is exact, so repeated tokens do no harm."""
    zero = torch.zeros((), dtype=scores.dtype, device=scores.device)
    scores.scatter_add_(1, tokens, zero.masked_fill(matches, MINUS_INFINITY))


def _pad(sequences: Sequence[Sequence[int]], length: int, *, device: torch.device) -> Tensor:
    rows = [[*sequence, *[-1] * (length - len(sequence))] for sequence in sequences]
    return torch.tensor(rows, dtype=torch.long, device=device).reshape(len(sequences), length)


def _tabulate(forbidden: Sequence[tuple[tuple[int, ...], ...]], *, device: torch.device) -> dict[int, Tensor]:
    """Phrases by length, [sentence, phrase, length] with -1 where a sentence has fewer; one row if all share them."""
    if all(phrases == forbidden[0] for phrases in forbidden):
        forbidden = forbidden[:1]
    tables = {}
    for length in sorted({len(phrase) for phrases in forbidden for phrase in phrases}):
        chosen = [[phrase for phrase in phrases if len(phrase) == length] for phrases in forbidden]
        most = max(map(len, chosen))
        rows = [[*phrases, *[(-1,) * length] * (most - len(phrases))] for phrases in chosen]
        tables[length] = torch.tensor(rows, dtype=torch.long, device=device)
    return tables
