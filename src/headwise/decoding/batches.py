"""Generates for a whole file: batches of similar length, results in the order of the file.

A window of N sources is read, sorted by length, cut into batches of similar length, decoded, and
returned in the order of the file before the next window is read. So there is little padding, and
memory does not grow with the file. The longest batch, which needs most memory, comes first, so that
a lack of memory shows at once. A batch holds at most `batching.sentences` sentences, and sentences
· (longest source) is at most `batching.tokens`; it holds at least one sentence.
Tested: order, empty lines, sizes of batches, that reading never runs ahead of a window, and outputs
= one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat

from headwise.decoding.generation_settings import Batching, GenerationSettings
from headwise.decoding.generator import Generator
from headwise.decoding.results import EMPTY_RESULT, SearchResult
from headwise.decoding.rules.constraints import SentenceRules
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


def generate_stream(
    generator: Generator,
    sources: Iterable[Sequence[int]],
    settings: GenerationSettings,
    *,
    rules: SentenceRules | Iterable[SentenceRules] | None = None,
) -> Iterator[SearchResult]:
    """Results in the order of the sources, which are read one window at a time.

    `rules` hold for all sentences or name one entry per sentence.
    """
    each: Iterator[SentenceRules | None]
    each = (
        repeat(rules)
        if rules is None or isinstance(rules, SentenceRules)
        else chain(rules, repeat(None))
    )
    pairs = zip(sources, each, strict=False)  # the sources end it: the rules never do
    first = 0
    while window := list(islice(pairs, settings.batching.window)):
        here = [one for _, one in window if one is not None]
        if rules is not None and len(here) < len(window):
            count = first + len(here)
            raise UsageError(
                f"phrases were given for {count} sentences but there are more; give one entry per "
                "sentence",
                f"只给出了 {count} 句的短语，而句子更多；请每句给一项",
            )
        yield from generate_window(
            generator,
            [source for source, _ in window],
            settings,
            rules=None if rules is None else here,
            first_number=first,
        )
        first += len(window)


def generate_window(
    generator: Generator,
    sources: Sequence[Sequence[int]],
    settings: GenerationSettings,
    *,
    rules: Sequence[SentenceRules] | None = None,
    first_number: int = 0,
) -> list[SearchResult]:
    """Results of all these sources in their order; empty ones ask no model.

    `first_number` is the number of the first source in its file: sampling draws by that number, not
    by the position in a batch.
    """
    results = [EMPTY_RESULT] * len(sources)
    for batch in plan_batches([len(source) for source in sources], settings.batching):
        found = generator.generate(
            [sources[i] for i in batch],
            settings,
            None if rules is None else [rules[i] for i in batch],
            numbers=[first_number + i for i in batch],
        )
        for i, result in zip(batch, found, strict=True):
            results[i] = result
    return results
