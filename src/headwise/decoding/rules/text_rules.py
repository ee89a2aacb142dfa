"""Decides which token may come next, so that no forbidden phrase is written and every required one
is.

The automaton of the phrases (`phrase_automaton.py`) reads whole tokens here, so a rule holds for
the text, whatever tokens spell it. A state is a state of that automaton together with the set of
required phrases that were written. With

    need(state) = the fewest tokens after which the text may end

a token w may follow a state if it writes no forbidden phrase and need(state after w) is at most the
number of tokens that are left. The end may follow if need(state) = 0. This covers forbidden
phrases, required phrases, overlaps between them (counted once, since the shortest way is taken),
and rules that no output can meet (need is infinite).

Tokens with the same effect in every state form one class, so the tables are small
(`token_effects.py`). The set of written phrases is kept beside the state; only the table of needs
has a row for every set (`needed_tokens.py`).
Tested against `occurs` over decoded text, and against exhaustive search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.decoding.rules.needed_tokens import IMPOSSIBLE, count_needed
from headwise.decoding.rules.phrase_automaton import Phrase, PhraseAutomaton, build_automaton
from headwise.decoding.rules.token_effects import read_vocabulary
from headwise.errors import UsageError
from headwise.text.phrase_matching import single_spaced
from headwise.text.spelling import Spelling
from headwise.text.tokenizer import EOS

MAX_REQUIRED = 8
MAX_BYTES = 4096
"""Of all phrases together."""
MAX_STATES = 8192


@dataclass(frozen=True, eq=False)
class TextRules:
    """The rules of some phrases for one vocabulary. State 0 is the beginning of a text."""

    forbidden: tuple[str, ...]
    required: tuple[str, ...]
    classes: NDArray[np.int64]
    """[token]: its class; the end of a sentence is the last one."""
    moves: NDArray[np.int16]
    """[state, class]: the next state."""
    found: NDArray[np.uint8]
    """[state, class]: bits of the required phrases that such a token completes."""
    need: NDArray[np.int16]
    """[state, set of required phrases]: the fewest tokens until the text may end, or IMPOSSIBLE."""
    _on_devices: dict[torch.device, "RuleTables"] = field(
        default_factory=dict, repr=False, compare=False
    )

    def read(self, tokens: Sequence[int]) -> int:
        """How many tokens are needed after these; IMPOSSIBLE if they may not be written."""
        state, written = 0, 0
        for token in tokens:
            column = self.classes[token]
            written |= int(self.found[state, column])
            state = int(self.moves[state, column])
        return int(self.need[state, written])

    def on(self, device: torch.device) -> "RuleTables":
        """The tables as tensors; made once for each device."""
        if device not in self._on_devices:
            tables = (self.classes, self.moves, self.found, self.need.reshape(-1))
            on_device = (torch.from_numpy(table).to(device) for table in tables)
            self._on_devices[device] = RuleTables(self.need.shape[1], *on_device)
        return self._on_devices[device]


@dataclass(frozen=True)
class RuleTables:
    """`TextRules` as tensors.

    A state here is a state there times `num_sets`, plus the set of written phrases.
    """

    num_sets: int
    classes: Tensor
    moves: Tensor
    found: Tensor
    need: Tensor

    def after(self, states: Tensor) -> Tensor:
        """[row, vocab]: the need after every token. The end may follow where nothing is needed."""
        need = self.need[self._next(states, slice(None))]
        need[:, -1] = torch.where(self.need[states] == 0, 0, IMPOSSIBLE)
        return need.index_select(1, self.classes)

    def move(self, states: Tensor, tokens: Tensor) -> Tensor:
        return self._next(states, self.classes[tokens])

    def _next(self, states: Tensor, classes: Tensor | slice) -> Tensor:
        row, written = states // self.num_sets, states % self.num_sets
        after = self.moves[row, classes].long()
        if self.num_sets == 1:
            return after
        written = written[:, None] if isinstance(classes, slice) else written
        return after * self.num_sets + (written | self.found[row, classes].long())


def make_rules(
    forbidden: Sequence[str], required: Sequence[str], spelling: Spelling
) -> TextRules | None:
    """The rules of these phrases; None if there are none."""
    unwanted, wanted = (
        tuple(dict.fromkeys(map(single_spaced, texts))) for texts in (forbidden, required)
    )
    if not unwanted and not wanted:
        return None
    if len(wanted) > MAX_REQUIRED:
        raise UsageError(
            f"{len(wanted)} phrases are required, at most {MAX_REQUIRED} are possible; give fewer",
            f"要求出现的短语有 {len(wanted)} 个，最多 {MAX_REQUIRED} 个；请减少",
        )
    all_required = (1 << len(wanted)) - 1
    phrases = [
        Phrase.of(text, bit=1 << number, is_required=True) for number, text in enumerate(wanted)
    ]
    phrases += [Phrase.of(text, bit=all_required + 1, is_required=False) for text in unwanted]
    automaton = _build(phrases, spelling)
    effects = read_vocabulary(automaton, spelling, all_required=all_required)
    if effects is None:
        raise _too_much_work(phrases)
    need = count_needed(automaton.at_end, effects, all_required)
    effects.classes[EOS] = effects.moves.shape[1]
    stay = np.arange(len(effects.moves), dtype=np.int16)[:, None]
    moves, found = (
        np.hstack([effects.moves, stay]),
        np.hstack([effects.found, np.zeros_like(stay, dtype=np.uint8)]),
    )
    return TextRules(unwanted, wanted, effects.classes, moves, found, need)


def can_be_written(phrase: str, spelling: Spelling) -> bool:
    """Whether some sequence of tokens holds the phrase."""
    automaton = _build([Phrase.of(phrase, bit=1, is_required=True)], spelling)
    effects = read_vocabulary(automaton, spelling, all_required=1)
    if effects is None:
        return True
    return bool(count_needed(automaton.at_end, effects, 1)[0, 0] < IMPOSSIBLE)


def _build(phrases: Sequence[Phrase], spelling: Spelling) -> PhraseAutomaton:
    """The automaton of these phrases; too many or too long ones are refused before the work."""
    length = sum(len(phrase.content) for phrase in phrases)
    if length > MAX_BYTES:
        raise UsageError(
            f"the {len(phrases)} forbidden and required phrases have {length:,} bytes together, "
            f"which is too much to watch for: at most {MAX_BYTES:,} are possible; "
            "give fewer or shorter ones",
            f"{len(phrases)} 个禁用与必需短语共 {length:,} 字节，"
            f"超出可处理的范围（最多 {MAX_BYTES:,} 字节）；请减少或缩短",
        )
    automaton = build_automaton(phrases, max_states=MAX_STATES, symbols=spelling.alphabet)
    if automaton is None:
        raise _too_much_work(phrases)
    return automaton


def _too_much_work(phrases: Sequence[Phrase]) -> UsageError:
    length = sum(len(phrase.content) for phrase in phrases)
    return UsageError(
        f"the {len(phrases)} forbidden and required phrases ({length:,} bytes together) take too "
        "much work to watch for with this vocabulary; give fewer or shorter ones, above all of "
        "those that hold many spaces or repeat themselves",
        f"{len(phrases)} 个禁用与必需短语（共 {length:,} 字节）在此词表下监视的工作量过大；"
        "请减少或缩短，尤其是含许多空格或自身重复的短语",
    )
