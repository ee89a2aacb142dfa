"""Forbidden and required phrases as a rule for tokens: how many more tokens a text needs after each token.

The automaton of the phrases (`phrase_automaton.py`) reads whole tokens here, so a rule holds on the text, whatever tokens spell
it. A state is a state of that automaton together with the set of required phrases that were written. With

    need(state) = the fewest tokens after which the text may end

a token w may follow a state if it writes no forbidden phrase and need(state after w) ≤ the tokens that are left; the end may
follow if need(state) = 0. That one number is the whole rule: forbidden phrases, required phrases, overlaps between them (counted
once, since the shortest way is taken), and what no output can meet (need is infinite). Tokens with the same effect in every
state are one class, so the tables are small. Tested against `occurs` over decoded text, and against exhaustive search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.decoding.phrase_automaton import Phrase, PhraseAutomaton, build_automaton
from headwise.decoding.stepping import EOS
from headwise.errors import UsageError
from headwise.text.occurrence import single_spaced
from headwise.text.spelling import Spelling

IMPOSSIBLE = 32_767
MAX_REQUIRED = 8
MAX_BYTES = 2048
"""Of all phrases together."""
MAX_STATES = 4096
MAX_ENTRIES = 1 << 22
"""Of a table [state, class of tokens]."""
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class TextRules:
    """What may be written, for one vocabulary. State 0 is the beginning of a text."""

    forbidden: tuple[str, ...]
    required: tuple[str, ...]
    classes: NDArray[np.int64]
    """[token]: its class."""
    moves: NDArray[np.int32]
    """[state, class]: the next state."""
    need: NDArray[np.int16]
    """[state]: the fewest tokens until the text may end; IMPOSSIBLE if it never may."""
    need_after: NDArray[np.int16]
    """[state, class]: the need after such a token; IMPOSSIBLE if it may not be written."""
    _on_devices: dict[torch.device, "RuleTables"] = field(default_factory=dict, repr=False, compare=False)

    def read(self, tokens: Sequence[int]) -> int:
        """How many tokens are needed after these; IMPOSSIBLE if they may not be written."""
        state, need = 0, int(self.need[0])
        for token in tokens:
            need = int(self.need_after[state, self.classes[token]])
            if need == IMPOSSIBLE:
                return need
            state = int(self.moves[state, self.classes[token]])
        return need

    def on(self, device: torch.device) -> "RuleTables":
        """The tables as tensors; made once for each device."""
        if device not in self._on_devices:
            tables = (self.classes, self.moves, self.need, self.need_after)
            self._on_devices[device] = RuleTables(*(torch.from_numpy(table).to(device) for table in tables))
        return self._on_devices[device]


@dataclass(frozen=True)
class RuleTables:
    """`TextRules` where the search computes."""

    classes: Tensor
    moves: Tensor
    need: Tensor
    need_after: Tensor

    def after(self, states: Tensor) -> Tensor:
        """[row, vocab]: the need after every token."""
        return self.need_after[states].index_select(1, self.classes)

    def move(self, states: Tensor, tokens: Tensor) -> Tensor:
        return self.moves[states, self.classes[tokens]].long()


def make_rules(forbidden: Sequence[str], required: Sequence[str], spelling: Spelling) -> TextRules | None:
    """The rules of these phrases; None if there are none."""
    unwanted, wanted = (tuple(dict.fromkeys(map(single_spaced, texts))) for texts in (forbidden, required))
    if not unwanted and not wanted:
        return None
    if len(wanted) > MAX_REQUIRED:
        raise UsageError(
            f"{len(wanted)} phrases are required, at most {MAX_REQUIRED} are possible; give fewer",
            f"要求出现的短语有 {len(wanted)} 个，最多 {MAX_REQUIRED} 个；请减少",
        )
    all_required = (1 << len(wanted)) - 1
    phrases = [Phrase.of(text, bit=1 << number, is_required=True) for number, text in enumerate(wanted)]
    phrases += [Phrase.of(text, bit=all_required + 1, is_required=False) for text in unwanted]
    if sum(len(phrase.content) for phrase in phrases) > MAX_BYTES:
        raise _too_many(phrases)
    automaton = build_automaton(phrases, max_states=MAX_STATES)
    if automaton is None:
        raise _too_many(phrases)
    classes, moves, found = read_vocabulary(automaton, spelling)
    if moves.size << len(wanted) > MAX_ENTRIES:
        raise _too_many(phrases)
    need, need_after, moves = _count_needed(automaton.at_end, moves, found, all_required)
    return TextRules(unwanted, wanted, *_add_end(classes, moves, need, need_after))


def can_be_written(phrase: str, spelling: Spelling) -> bool:
    """Whether some sequence of tokens holds the phrase; of a phrase that is too long to watch for nobody can say."""
    wanted = Phrase.of(phrase, bit=1, is_required=True)
    automaton = build_automaton([wanted], max_states=MAX_STATES) if len(wanted.content) <= MAX_BYTES else None
    if automaton is None:
        return True
    _, moves, found = read_vocabulary(automaton, spelling)
    reached = np.array([0])
    while len(more := np.union1d(reached, moves[reached])) > len(reached):
        reached = more
    return bool(found[reached].any() or automaton.at_end[reached].any())


def _too_many(phrases: Sequence[Phrase]) -> UsageError:
    length = sum(len(phrase.content) for phrase in phrases)
    return UsageError(
        f"the {len(phrases)} forbidden and required phrases have {length:,} bytes together, which is too much to watch for; "
        "give fewer or shorter ones",
        f"{len(phrases)} 个禁用与必需短语共 {length:,} 字节，超出可处理的范围；请减少或缩短",
    )


def read_vocabulary(
    automaton: PhraseAutomaton, spelling: Spelling
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The class of every token; state and complete phrases after each class of tokens, [state, class]."""
    numbers: dict[bytes, int] = {}
    columns: list[NDArray[np.int32]] = []
    classes = np.empty(len(spelling), dtype=np.int64)
    for begin in range(0, len(spelling), CHUNK):
        effects = _read_tokens(automaton, spelling, np.arange(begin, min(begin + CHUNK, len(spelling))))
        for token, effect in enumerate(effects, start=begin):
            name = effect.tobytes()
            if name not in numbers:
                numbers[name] = len(columns)
                columns.append(effect)
            classes[token] = numbers[name]
    table = np.stack(columns, axis=-1)
    return classes, table[0], table[1]


def _read_tokens(automaton: PhraseAutomaton, spelling: Spelling, tokens: NDArray[np.int64]) -> NDArray[np.int32]:
    """[token, 2, state]: the state after each token and the phrases complete in it, from every state."""
    num_states = len(automaton.moves)
    effects = np.zeros((len(tokens), 2, num_states), dtype=np.int32)
    effects[:, 0] = np.arange(num_states)
    first, lengths = spelling.first[tokens], spelling.first[tokens + 1] - spelling.first[tokens]
    for place in range(int(lengths.max(initial=0))):
        here = np.flatnonzero(lengths > place)
        symbols = spelling.symbols[first[here] + place][:, None]
        states = effects[here, 0]
        effects[here, 1] |= automaton.found[states, symbols]
        effects[here, 0] = automaton.moves[states, symbols]
    return effects


def _count_needed(
    at_end: NDArray[np.int32], moves: NDArray[np.int32], found: NDArray[np.int32], all_required: int
) -> tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int32]]:
    """Need, need after each class, and next state, for states with the phrases written so far: the last bits of a state."""
    written = np.arange(all_required + 1)
    may_end = ((written | at_end[:, None]) & all_required == all_required) & (at_end[:, None] <= all_required)
    need = np.where(may_end, 0, IMPOSSIBLE).reshape(-1)
    after = moves[:, None, :] * np.int32(len(written)) + (written[:, None] | (found[:, None, :] & all_required))
    after = after.reshape(-1, moves.shape[1]).astype(np.int32)
    banned = np.repeat(found > all_required, len(written), axis=0)
    while True:
        need_after = np.where(banned, IMPOSSIBLE, need[after])
        shorter = np.minimum(need, np.minimum(need_after.min(axis=1) + 1, IMPOSSIBLE))
        if (shorter == need).all():
            return need.astype(np.int16), need_after.astype(np.int16), after
        need = shorter


def _add_end(
    classes: NDArray[np.int64], moves: NDArray[np.int32], need: NDArray[np.int16], need_after: NDArray[np.int16]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int16], NDArray[np.int16]]:
    """The end of the sentence is a class of its own: it may follow where nothing is needed."""
    classes[EOS] = moves.shape[1]
    stay = np.arange(len(moves), dtype=np.int32)[:, None]
    end = np.where(need == 0, 0, IMPOSSIBLE).astype(np.int16)[:, None]
    return classes, np.hstack([moves, stay]), need, np.hstack([need_after, end])
