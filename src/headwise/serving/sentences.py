"""Texts become sentences, sentences become parts of a worker's batches, and translations become texts again.

    prepare   split, tokenise, count            in a thread of its own: tokenising blocks the event loop as well as a model does
    answer    one search for all parts of equal settings, stopped between two steps when nobody waits any more
    assemble  sentences back into their places; paragraphs and blank lines stay

A prefix is a wish of each sentence, not of the batch, so requests with different prefixes are joined too. Samples are drawn by
the number of the sentence in its request: neighbours change nothing. Tested: = the translator itself, alone and in company.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from headwise.decoding.choices import DecodingSettings, decode
from headwise.decoding.constraints import Phrases, check_phrases, encode_phrases
from headwise.decoding.length import limit_for
from headwise.decoding.results import SearchResult
from headwise.decoding.stepping import AttendingStepper, Room, RoomyStepper, Stepper
from headwise.serving.faults import Refusal
from headwise.serving.limits import MAX_SENTENCES, MAX_TOKENS
from headwise.serving.orders import Abandoned, Part
from headwise.tasks.translator import Translator, on_one_line
from headwise.text.splitting import SplitText, split_text

Watch = Callable[[Sequence[int]], None]
"""Is shown the tokens of the best hypothesis at every step."""


@dataclass(frozen=True)
class Sentence:
    """What the search is told of a sentence."""

    ids: tuple[int, ...]
    phrases: Phrases
    number: int


@dataclass(frozen=True)
class Found:
    """One of the n best of a sentence."""

    text: str
    score: float
    log_probability: float
    is_whole: bool
    """False if the length limit cut it."""


@dataclass(frozen=True)
class Prepared:
    """A request's texts, split, and their sentences as parts."""

    texts: tuple[SplitText, ...]
    parts: tuple[Part, ...]
    target: str

    def assemble(self, answers: Sequence[tuple[Found, ...]]) -> list[list[Found]]:
        """The n best of every text; the i-th of a text is made of the i-th of its sentences."""
        texts, place = [], 0
        for split in self.texts:
            here = answers[place : place + len(split.sentences)]
            place += len(split.sentences)
            texts.append(
                [_assemble_one(split, rank, target=self.target) for rank in zip(*here, strict=False)] or [_empty(split)]
            )
        return texts


def _empty(split: SplitText) -> Found:
    """White space comes back as it was."""
    return Found("".join(split.gaps), 0.0, 0.0, is_whole=True)


def _assemble_one(split: SplitText, found: Sequence[Found], *, target: str) -> Found:
    return Found(
        text=split.join([one.text for one in found], target=target),
        score=sum(one.score for one in found) / len(found),
        log_probability=sum(one.log_probability for one in found),
        is_whole=all(one.is_whole for one in found),
    )


def prepare(
    translator: Translator, texts: Sequence[str], decoding: DecodingSettings, *, prefix: str = "", split: bool = True
) -> Prepared:
    """Cut and count; what is too long is refused with its length."""
    settings = translator.within_positions(decoding)
    language = translator.source_language
    split_texts = tuple(split_text(text, language=language) if split else _whole(text) for text in texts)
    num_sentences = sum(len(one.sentences) for one in split_texts)
    if num_sentences > MAX_SENTENCES:
        raise Refusal(
            422,
            "too_many_sentences",
            en=f"the texts have {num_sentences:,} sentences together, at most {MAX_SENTENCES:,} are translated at once; send fewer",
            zh=f"文本共有 {num_sentences:,} 句，一次最多翻译 {MAX_SENTENCES:,} 句；请减少",
        )
    rules = encode_phrases(settings, translator.tokenizers.target.encode)
    begun = tuple(translator.tokenizers.target.encode(prefix)) if prefix else ()
    parts: list[Part] = []
    for one in split_texts:
        for first, sentence in enumerate(one.sentences):
            ids = tuple(translator.tokenizers.source.encode(sentence))
            _check_tokens(len(ids), len(parts) + 1)
            phrases = replace(rules, prefix=begun if first == 0 else ())
            check_phrases(phrases, limit=limit_for(settings.max_length, len(ids)))
            parts.append(
                Part(
                    run=Search(translator, settings),
                    argument=Sentence(ids, phrases, len(parts)),
                    key=(id(translator), settings),
                    weight=len(ids) + 1,
                )
            )
    return Prepared(split_texts, tuple(parts), translator.target_language)


def _whole(text: str) -> SplitText:
    inner = text.strip()
    if not inner:
        return SplitText((), (text,))
    begin = text.index(inner)
    return SplitText((inner,), (text[:begin], text[begin + len(inner) :]))


def _check_tokens(num_tokens: int, number: int) -> None:
    if num_tokens > MAX_TOKENS:
        raise Refusal(
            422,
            "too_many_tokens",
            en=f"sentence {number} has {num_tokens:,} tokens, at most {MAX_TOKENS:,} are translated; split it with punctuation",
            zh=f"第 {number} 句有 {num_tokens:,} 个词元，最多翻译 {MAX_TOKENS:,} 个；请用标点断句",
        )


@dataclass(frozen=True)
class Search:
    """Answers parts that share their settings."""

    translator: Translator
    settings: DecodingSettings
    watch: Watch | None = None

    def __call__(self, parts: Sequence[Part]) -> list[tuple[Found, ...]]:
        attending = getattr(self.settings, "coverage_penalty", 0.0) > 0
        inner = self.translator.stepper(attending=attending)
        kind = WatchedAttendingStepper if attending else WatchedStepper
        stepper = kind(inner, is_over=lambda: all(part.is_over for part in parts), watch=self.watch)
        sentences: list[Sentence] = [part.argument for part in parts]
        told: dict[int, tuple[Found, ...]] = {}

        def tell(number: int, result: SearchResult) -> None:
            """Short sentences do not wait for the long ones of their batch, and their clients ask again meanwhile."""
            told[number] = self._read(result)
            order = parts[number].order
            if order is not None:
                order.deliver(parts[number], told[number])

        results = decode(
            stepper,
            [sentence.ids for sentence in sentences],
            self.settings,
            phrases=[sentence.phrases for sentence in sentences],
            sentence_numbers=[sentence.number for sentence in sentences],
            tell=tell,
        )
        return [told.get(number) or self._read(result) for number, result in enumerate(results)]

    def _read(self, result: SearchResult) -> tuple[Found, ...]:
        write = self.translator.tokenizers.target.decode
        return tuple(
            Found(on_one_line(write(one.tokens)), one.score, one.log_probability, is_whole=one.finished)
            for one in result.hypotheses
        )


class WatchedStepper:
    """A stepper that asks between two steps whether anyone still waits, and shows the first row as it grows."""

    def __init__(self, inner: Stepper[Any], *, is_over: Callable[[], bool], watch: Watch | None = None) -> None:
        self.inner, self._is_over, self._watch = inner, is_over, watch
        self._histories: list[tuple[int, ...]] = []

    @property
    def device(self) -> torch.device:
        return self.inner.device

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> Any:
        self._histories = [()] * (len(sources) * width)
        return self.inner.start(sources, width=width, max_length=max_length)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        if self._is_over():
            raise Abandoned
        if self._watch is not None:
            self._histories = [(*past, token) for past, token in zip(self._histories, tokens.tolist(), strict=True)]
            self._watch(self._histories[0][1:])
        return self.inner.step(state, tokens)

    def reorder(self, state: Any, index: Tensor) -> Any:
        if self._watch is not None:
            self._histories = [self._histories[row] for row in index.tolist()]
        return self.inner.reorder(state, index)

    def enter(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> Room | None:
        """Rooms are a GPU's: there a whole search is shorter than the patience of a client."""
        if self._watch is not None or not isinstance(self.inner, RoomyStepper):
            return None
        return self.inner.enter(sources, width=width, max_length=max_length)


class WatchedAttendingStepper(WatchedStepper):
    """The same for searches that look at the attention (coverage penalty)."""

    def attention(self, state: Any) -> Tensor:
        assert isinstance(self.inner, AttendingStepper)
        return self.inner.attention(state)
