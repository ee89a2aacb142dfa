"""Forbids tokens: sets their log-probabilities to -inf before the search chooses.

Nothing is renormalised, so the scores of the other tokens are the model's own. A token w is
forbidden after the history h of a row

    always                    if w is padding or the beginning of a sentence (or unknown, if so set)
    by a minimum length       if w ends the sentence too early
    by the rules of its text  if w would complete a forbidden phrase, leave too few tokens for the
                              required ones, or end the text before they are written
                              (`text_rules.py`)
    by no-repeat n-grams      if the last n-1 tokens of h followed by w occur in h already
                              (Paulus et al. 2018)
    by a forced prefix        if w is not the prefix's token at this position; the prefix is applied
                              after all other rules

If the rules forbid every token, the row ends there. Greedy search and sampling follow one path, so
they never write a token after which the text could not end. For example, if "cat" is forbidden,
they do not write it, although "catalogue" would be allowed. A beam may write it, because it has
other hypotheses, and can still find "catalogue". `search/required_phrases.py` says how a beam keeps
slots for required phrases.

Tested by laws (the forbidden never appears, the prefix always) and against transformers'
processors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.rules.needed_tokens import IMPOSSIBLE
from headwise.decoding.rules.next_token import (
    MINUS_INFINITY,
    forbid_special,
    force_end,
    force_prefix,
    is_too_short,
    look_up,
)
from headwise.decoding.rules.text_rules import TextRules
from headwise.errors import UsageError
from headwise.text.tokenizer import EOS, UNKNOWN


@dataclass(frozen=True)
class SentenceRules:
    """The rules of one sentence: the tokens it begins with, and what its text may hold."""

    prefix: tuple[int, ...] = ()
    rules: TextRules | None = None
    """The same for all sentences of a batch."""


def check_sentence_rules(phrases: SentenceRules, *, limit: int) -> None:
    """Refuse rules that cannot be met within `limit` tokens, the end of the sentence included."""
    for token in phrases.prefix:
        if token < UNKNOWN:
            raise UsageError(
                f"the prefix holds the special token {token}; only ordinary tokens can be asked "
                "for",
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
            f"prefix, required phrases and the end of the sentence take {needed + 1} tokens, but "
            f"max_length is {limit} here; raise max_length or ask for less",
            f"前缀、必需短语与句末共需 {needed + 1} 个词元，而此处 max_length 为 {limit}；"
            "请调大 max_length 或减少要求",
        )


def _explain_impossible(rules: TextRules, *, has_prefix: bool) -> UsageError:
    required, forbidden = (
        ", ".join(map(repr, texts)) for texts in (rules.required, rules.forbidden)
    )
    begin = ("after this prefix ", "在该前缀之后，") if has_prefix else ("", "")
    return UsageError(
        f"{begin[0]}no text can hold the required phrases ({required or 'none'}) without a "
        f"forbidden one ({forbidden or 'none'}); drop one of them",
        f"{begin[1]}没有文本能包含全部必需短语（{required or '无'}）"
        f"而不出现禁用短语（{forbidden or '无'}）；请去掉其一",
    )


class Constraints:
    """The rules of one batch and the histories they look at, row by row of the search."""

    def __init__(
        self,
        settings: GenerationSettings,
        phrases: Sequence[SentenceRules],
        *,
        limits: Sequence[int],
        width: int,
        device: torch.device,
        can_turn_back: bool = False,
    ) -> None:
        """`can_turn_back`: the search keeps other hypotheses.

        A row may then write a forbidden phrase that a longer word may still save.
        """
        for one, limit in zip(phrases, limits, strict=True):
            check_sentence_rules(one, limit=limit)
        self.settings, self.width, self.device = settings, width, device
        self.can_turn_back = can_turn_back
        self.step = 0
        self.limits = torch.tensor(limits, device=device)
        self.first_limit = min(limits)
        self.rules = self._shared_rules(phrases)
        self.tables = None if self.rules is None else self.rules.on(device)
        self.states = torch.zeros(len(limits) * width, dtype=torch.long, device=device)
        self._needs: tuple[Tensor, Tensor] | None = None
        self.longest_prefix = max(len(one.prefix) for one in phrases)
        self.prefixes = _pad([one.prefix for one in phrases], self.longest_prefix, device=device)
        self.keeps_history = settings.no_repeat_ngrams > 0
        self.history = torch.empty((len(limits) * width, 0), dtype=torch.long, device=device)

    @staticmethod
    def _shared_rules(phrases: Sequence[SentenceRules]) -> TextRules | None:
        rules = [one.rules for one in phrases]
        if len({one and (one.forbidden, one.required) for one in rules}) > 1:
            raise UsageError(
                "the sentences of one batch have different forbidden or required phrases; decode "
                "them in separate batches",
                "同一批句子的禁用或必需短语不一致；请分批解码",
            )
        return rules[0]

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
        forced_value = None if forced is None else look_up(scores, forced)
        forbid_special(scores, self.settings)
        if is_too_short(self.step + 1, self.settings):
            scores[:, EOS] = MINUS_INFINITY
        may_end = self._keep_to_rules(scores)
        if end is not None:
            stuck = scores.amax(-1) == MINUS_INFINITY
            stuck = stuck if may_end is None else stuck & may_end
            scores[:, EOS] = torch.where(stuck, end, scores[:, EOS])
        if forced is not None and forced_value is not None:
            force_prefix(scores, forced, forced_value)
        if self.settings.at_limit == "end" and self.step + 1 >= self.first_limit:
            last = (self.limits == self.step + 1).repeat_interleave(self.width)
            last = last if may_end is None else last & may_end
            force_end(scores, last)
        return scores

    def _keep_to_rules(self, scores: Tensor) -> Bool[Tensor, "row"] | None:
        """Mask by repeated n-grams and by the rules of the text.

        Returns which rows may end here; None: all.
        """
        if self.tables is None:
            self._forbid_repeats(scores)
            return None
        need, need_after = self.needs()
        if self.keeps_history:
            # A required phrase may need a repetition.
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
        """Tokens that may follow the next one, the end not counted.

        A path that cannot turn back must be able to end at once, so none may follow there.
        """
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
        """New row i continues old row index[i] (the same row when None) with tokens[i]."""
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
        """Forget all sentences but these. Called before `advance`, whose index is of old rows."""
        self.limits = self.limits[sentences]
        self.prefixes = self.prefixes[sentences]


def _subtract(scores: Tensor, tokens: Tensor, matches: Tensor) -> None:
    """-inf where a match forbids the token. Adding 0 elsewhere is exact, however often."""
    zero = torch.zeros((), dtype=scores.dtype, device=scores.device)
    scores.scatter_add_(1, tokens, zero.masked_fill(matches, MINUS_INFINITY))


def _pad(sequences: Sequence[Sequence[int]], length: int, *, device: torch.device) -> Tensor:
    rows = [[*sequence, *[-1] * (length - len(sequence))] for sequence in sequences]
    return torch.tensor(rows, dtype=torch.long, device=device).reshape(len(sequences), length)
