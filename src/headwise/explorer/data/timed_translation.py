"""How long a model takes for one sentence, from its text to the text of its translation.

Each measurement encodes the sentence, generates, and decodes the tokens of the best hypothesis. One
translation before the first measurement is not counted. Nothing else is batched with the sentence.
Tested: the text is the translator's, and the passes of a search whose number is known.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.rules.phrases import encode_phrases
from headwise.errors import UsageError
from headwise.tasks.translation.translator import Translator


@dataclass(frozen=True)
class TimedTranslation:
    text: str
    num_tokens: int
    """Of the translation, its end not counted."""
    num_passes: int
    """How often the search asked the model: steps, passes or rounds."""
    seconds: tuple[float, ...]
    """Of each measurement, in order."""


def time_sentence(
    translator: Translator,
    text: str,
    settings: DecodingSettings,
    *,
    repeats: int,
    before_step: Callable[[], None] | None = None,
) -> TimedTranslation:
    """Translate one sentence `repeats` times; `before_step` may stop the work by raising."""
    if not translator.encode(text):
        raise UsageError("the sentence is empty; give some words", "句子为空；请给出一些词")
    settings = translator.within_positions(settings)
    phrases = encode_phrases(settings, translator.tokenizers.target)
    generator = translator.generator(settings)
    num_passes = 0

    def count() -> None:
        nonlocal num_passes
        num_passes += 1
        if before_step is not None:
            before_step()

    seconds = []
    for _ in range(repeats + 1):
        num_passes = 0
        start = time.perf_counter()
        (result,) = generator.generate(
            [translator.encode(text)], settings, phrases, watcher=Watcher(count)
        )
        written = translator.write_down(result.best).text
        seconds.append(time.perf_counter() - start)
    return TimedTranslation(written, len(result.best.tokens), num_passes, tuple(seconds[1:]))
