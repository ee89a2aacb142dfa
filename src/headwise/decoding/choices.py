"""How a model answers: greedy search, beam search or sampling, told apart by `kind`, and one call for all of them.

    decoding: {kind: greedy}
    decoding: {kind: beam, size: 5, length_penalty: {kind: wu, alpha: 0.6}, max_length: {factor: 1.5, extra: 10}}
    decoding: {kind: sampling, temperature: 0.8, top_p: 0.9, seed: 1}

Phrases in the settings are text; whoever knows the tokenizer makes them ready (`encode_phrases`) and hands them in.
Tested: every kind through `decode`, empty sources, phrases for all sentences and for each.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from headwise.decoding.out_of_memory import explaining_memory
from headwise.decoding.results import EMPTY_RESULT, SearchResult, Tell
from headwise.decoding.rules.constraints import Phrases
from headwise.decoding.rules.length import limit_for
from headwise.decoding.search.beam import BeamSettings, search_beams
from headwise.decoding.search.greedy import GreedySettings, search_greedily
from headwise.decoding.search.sampling import SamplingSettings, sample
from headwise.decoding.stepper import State, Stepper
from headwise.errors import UsageError

__all__ = ["BeamSettings", "DecodingSettings", "GreedySettings", "SamplingSettings", "decode"]

DecodingSettings = Annotated[
    GreedySettings | BeamSettings | SamplingSettings, Field(discriminator="kind")
]


def decode(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    settings: DecodingSettings,
    *,
    phrases: Phrases | Sequence[Phrases] | None = None,
    sentence_numbers: Sequence[int] | None = None,
    traced: bool = False,
    tell: Tell | None = None,
) -> list[SearchResult]:
    """Decode one batch, all sources together; results come in the order of the sources.

    `phrases` are the wishes of all sentences or of each; `sentence_numbers` (0, 1, … if not given) name the sentences to
    the random generator; `traced` keeps the tree of a beam search; `tell` is told of sentences that are done before the others.
    """
    wishes = _spread_phrases(settings, phrases, len(sources))
    numbers = range(len(sources)) if sentence_numbers is None else sentence_numbers
    if traced and not isinstance(settings, BeamSettings):
        raise UsageError(
            f"a trace of the search was asked of {settings.kind} decoding, which has no tree; use decoding.kind=beam",
            f"{settings.kind} 解码没有搜索树可供记录；请使用 decoding.kind=beam",
        )
    filled = [i for i, source in enumerate(sources) if len(source)]
    results = [EMPTY_RESULT] * len(sources)
    if filled:
        longest = max(limit_for(settings.max_length, len(sources[i])) for i in filled)
        with explaining_memory(settings, num_sentences=len(filled), longest=longest):
            found = _search(
                stepper,
                [sources[i] for i in filled],
                settings,
                phrases=[wishes[i] for i in filled],
                sentence_numbers=[numbers[i] for i in filled],
                traced=traced,
                tell=None if tell is None else lambda i, result: tell(filled[i], result),
            )
        for i, result in zip(filled, found, strict=True):
            results[i] = result
    return results


def _search(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    settings: DecodingSettings,
    *,
    phrases: Sequence[Phrases],
    sentence_numbers: Sequence[int],
    traced: bool,
    tell: Tell | None,
) -> list[SearchResult]:
    match settings:
        case GreedySettings():
            return search_greedily(stepper, sources, settings, phrases=phrases, tell=tell)
        case BeamSettings():
            return search_beams(
                stepper, sources, settings, phrases=phrases, traced=traced, tell=tell
            )
        case SamplingSettings():
            return sample(
                stepper,
                sources,
                settings,
                phrases=phrases,
                sentence_numbers=sentence_numbers,
                tell=tell,
            )


def _spread_phrases(
    settings: DecodingSettings, phrases: Phrases | Sequence[Phrases] | None, num_sources: int
) -> Sequence[Phrases]:
    if phrases is None:
        if settings.forbidden or settings.required or settings.prefix:
            raise UsageError(
                "the settings hold phrases as text but they were not made ready; pass phrases=encode_phrases(settings, tokenizer)",
                "设置中含有文本短语，但尚未转换；请传入 phrases=encode_phrases(settings, tokenizer)",
            )
        return [Phrases()] * num_sources
    spread = [phrases] * num_sources if isinstance(phrases, Phrases) else phrases
    if len(spread) != num_sources:
        raise UsageError(
            f"phrases were given for {len(spread)} sentences, but there are {num_sources}; give one entry per sentence",
            f"给出了 {len(spread)} 句的短语，但有 {num_sources} 句；请每句给一项",
        )
    return spread
