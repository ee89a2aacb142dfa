"""Decoding a file: longest first within a window, so that padding is small and memory does not grow with the file.

A window of N sources is read, sorted by length (longest first: what needs most memory is met at once, not after an hour),
cut into batches of similar length, decoded, and given out in the order of the file before the next window is read.
Per batch: sentences ≤ `batching.sentences` and sentences · (longest source) ≤ `batching.tokens` (one sentence at least).
Tested: order, empty lines, sizes of batches, that reading never runs ahead of a window, and outputs = one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat

from headwise.decoding.choices import DecodingSettings, decode
from headwise.decoding.results import EMPTY_RESULT, SearchResult
from headwise.decoding.rules.constraints import Batching, Phrases
from headwise.decoding.stepper import State, Stepper
from headwise.errors import UsageError


def plan_batches(lengths: Sequence[int], batching: Batching) -> list[list[int]]:
    """Numbers of the non-empty sources in batches of similar length, longest first."""
    order = sorted((i for i, length in enumerate(lengths) if length), key=lambda i: -lengths[i])
    batches: list[list[int]] = []
    for i in order:
        # The first of a batch is its longest; the batch is as wide as that one.
        fits = (
            batches
            and len(batches[-1]) < batching.sentences
            and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= batching.tokens
        )
        if fits:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def decode_stream(
    stepper: Stepper[State],
    sources: Iterable[Sequence[int]],
    settings: DecodingSettings,
    *,
    phrases: Phrases | Iterable[Phrases] | None = None,
) -> Iterator[SearchResult]:
    """Results in the order of the sources, which are read one window at a time; phrases for all or for each."""
    wishes: Iterator[Phrases | None]
    wishes = (
        repeat(phrases)
        if phrases is None or isinstance(phrases, Phrases)
        else chain(phrases, repeat(None))
    )
    pairs = zip(sources, wishes, strict=False)  # the sources end it: the wishes never do
    first = 0
    while window := list(islice(pairs, settings.batching.window)):
        here = [wish for _, wish in window if wish is not None]
        if phrases is not None and len(here) < len(window):
            raise UsageError(
                f"phrases were given for {first + len(here)} sentences but there are more; give one entry per sentence",
                f"只给出了 {first + len(here)} 句的短语，而句子更多；请每句给一项",
            )
        yield from decode_window(
            stepper,
            [source for source, _ in window],
            settings,
            phrases=None if phrases is None else here,
            first_number=first,
        )
        first += len(window)


def decode_window(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    settings: DecodingSettings,
    *,
    phrases: Sequence[Phrases] | None = None,
    first_number: int = 0,
) -> list[SearchResult]:
    """Results of all these sources in their order; empty ones are answered without asking the model.

    `first_number` is the number of the first source in its file: sampling draws by numbers, not by places in a batch.
    """
    results = [EMPTY_RESULT] * len(sources)
    for batch in plan_batches([len(source) for source in sources], settings.batching):
        found = decode(
            stepper,
            [sources[i] for i in batch],
            settings,
            phrases=None if phrases is None else [phrases[i] for i in batch],
            sentence_numbers=[first_number + i for i in batch],
        )
        for i, result in zip(batch, found, strict=True):
            results[i] = result
    return results
