"""What the memory of a translator said at every token of a translation (kNN-MT).

The sentence is translated twice, with the memory and without it. The finished translation is then
read once more; before each token y_t the model has a state, whose nearest stored states vote:

    p(y_t) = λ p_kNN(y_t) + (1 − λ) p_model(y_t)
    changed        the mixture finds y_t most probable, and the model alone finds another token so

Each vote names the stored sentence pair that its token stands in. The token is marked there as the
word it belongs to, because a reader looks for words.

Tested against: `headwise translate --memory --json`; words marked by hand.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.results import Hypothesis
from headwise.decoding.rules.phrases import encode_phrases
from headwise.errors import UsageError
from headwise.explorer.data.next_token_choices import TokenChoice, name_token
from headwise.explorer.data.word_grouping import group_pieces
from headwise.neighbours.mixture import mix
from headwise.neighbours.settings import Mixing
from headwise.tasks.translation.memory import ReadPlaces, TranslatorMemory, WordVotes
from headwise.tasks.translation.translator import Translator
from headwise.text.reversed_tokenizer import ReversedTokenizer
from headwise.text.tokenizer import BOS, PAD, Tokenizer

PLACES = 64
"""Distributions that are computed at once."""


@dataclass(frozen=True)
class MemoryPlace:
    """One token of the translation."""

    token: int
    votes: WordVotes
    model_best: TokenChoice
    """What the model alone finds most probable here."""
    is_changed: bool
    num_neighbours: int


@dataclass(frozen=True)
class MemoryTrace:
    """A translation with a memory, and without."""

    text: str
    text_alone: str
    pieces: tuple[str, ...]
    """With the end, if it was written."""
    mixing: Mixing
    places: tuple[MemoryPlace, ...]


@dataclass(frozen=True)
class MarkedSentence:
    """A stored sentence, cut around the word of one of its tokens."""

    before: str
    word: str
    """Empty for the end of the sentence, and if the word cannot be found in the text."""
    after: str


def trace_memory(
    translator: Translator,
    text: str,
    settings: DecodingSettings,
    *,
    num_examples: int,
    before_step: Callable[[], None] | None = None,
) -> MemoryTrace:
    """Translate one sentence with the memory of the settings, and read what it said."""
    source = translator.encode(text)
    settings = translator.within_positions(settings)
    asked = settings.asked_memory
    if not source or asked is None:
        raise UsageError(
            "the sentence is empty, or the search has no memory; give some words, and a store",
            "句子为空，或搜索没有记忆；请给出一些词与存储",
        )
    memory = translator.asked_models.memory(asked)
    unaided = cast("DecodingSettings", settings.unaided)
    written = _search(translator, source, settings, before_step)
    alone = _search(translator, source, unaided, before_step)
    read = memory.read(source, written)
    votes = memory.votes_at(read, shown=num_examples)
    tokenizer = translator.tokenizers.target
    places = []
    for place, (model_best, mixed_best) in enumerate(_best_tokens(memory, read)):
        token = int(read.tokens[place])
        places.append(
            MemoryPlace(
                token,
                votes[place],
                TokenChoice(model_best[0], name_token(tokenizer, model_best[0]), model_best[1]),
                token == mixed_best != model_best[0],
                read.found.tokens.shape[1],
            )
        )
    return MemoryTrace(
        translator.write_down(written).text,
        translator.write_down(alone).text,
        tuple(name_token(tokenizer, int(token)) for token in read.tokens),
        memory.memory.mixing,
        tuple(places),
    )


def _search(
    translator: Translator,
    source: list[int],
    settings: DecodingSettings,
    before_step: Callable[[], None] | None,
) -> Hypothesis:
    (result,) = translator.generator(settings).generate(
        [source],
        settings,
        encode_phrases(settings, translator.tokenizers.target),
        watcher=Watcher(before_step),
    )
    return result.best


@torch.no_grad()
def _best_tokens(memory: TranslatorMemory, read: ReadPlaces) -> list[tuple[tuple[int, float], int]]:
    """At each place the most probable token of the model alone, its log-probability, and that of
    the mixture.
    """
    inner, best = memory.memory, []
    for begin in range(0, len(read.tokens), PLACES):
        part = slice(begin, begin + PLACES)
        scores = memory.translator.model.logits(read.hidden[part]).float().log_softmax(-1)
        mixed = scores
        if not inner.mixing.is_off:
            mixed = mix(scores, read.found.part(part), inner.mixing)
        for one in (scores, mixed):
            one[:, [PAD, BOS]] = -torch.inf  # a search never writes these
        top = scores.max(-1)
        alone = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        best += list(zip(alone, mixed.argmax(-1).tolist(), strict=True))
    return best


def mark_word(tokenizer: Tokenizer, text: str, *, position: int, token: int) -> MarkedSentence:
    """Find the word of the token at a position of a stored sentence.

    The words of the tokens are looked for in the text one after the other, so that of equal words
    the right one is marked. What a tokenizer has changed, such as an unknown word, is skipped.
    """
    unmarked = MarkedSentence(text, "", "")
    tokens = tokenizer.encode(text)
    if isinstance(tokenizer, ReversedTokenizer) or position >= len(tokens):
        return unmarked
    if tokens[position] != token:
        return unmarked
    words = group_pieces(tuple(tokenizer.pieces(tokens)))
    wanted = words.word_of_piece[position]
    begin, end = -1, 0
    for word in words.text[: wanted + 1]:
        begin = text.find(word, end)
        end = end if begin < 0 else begin + len(word)
    return unmarked if begin < 0 else MarkedSentence(text[:begin], text[begin:end], text[end:])
