"""Measures how ambiguous a corpus was before and after its distillation, on the same sentences.

Words are linked by IBM Model 1 (`evaluation/ambiguity.py`). The raw corpus is known
where the sources have references. At most `MEASURED_PAIRS` sentences from the start are measured,
with the first translation of each.

Tested against the measure itself on pairs taken by hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headwise.evaluation.ambiguity import Ambiguity, WordPair, measure_ambiguity
from headwise.language import say
from headwise.tasks.translation.distillation_search import REASONS, Distilled
from headwise.tasks.translation.distillation_shards import WorkDirectory
from headwise.text.known_words import find_words

MEASURED_PAIRS = 20_000


def measure_shards(work: WorkDirectory, total: int) -> tuple[Ambiguity | None, Ambiguity]:
    """The ambiguity of the raw and of the distilled corpus, on the same sentences; None without
    references.
    """
    raw: list[WordPair] = []
    distilled: list[WordPair] = []
    for shard in work.shards(total):
        for pair in _first_of_each(shard.pairs):
            words = find_words(pair.source)
            distilled.append((words, find_words(pair.target)))
            if pair.reference is not None:
                raw.append((words, find_words(pair.reference)))
        if len(distilled) >= MEASURED_PAIRS:
            break
    found = measure_ambiguity(raw[:MEASURED_PAIRS]) if raw else None
    return found, measure_ambiguity(distilled[:MEASURED_PAIRS])


def _first_of_each(pairs: Sequence[Distilled]) -> Iterator[Distilled]:
    """The first of the translations of each sentence, which stand one after the other."""
    for pair, before in zip(pairs, [None, *pairs[:-1]], strict=True):
        if before is None or (pair.source, pair.reference) != (before.source, before.reference):
            yield pair


def count_rows(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was read, what was left out and why, and what is there now."""
    source = description["source"]
    rows = [(say("sentences translated", "翻译的句子"), f"{source['sentences']:,}")]
    if source["unusable"]:
        name = say("lines that cannot be translated", "无法翻译的行")
        rows.append((name, f"{source['unusable']:,}"))
    for reason, count in description["dropped"].items():
        rows.append((f"{say('left out: ', '去除：')}{say(*REASONS[reason])}", f"{count:,}"))
    return [*rows, (say("sentence pairs", "句对"), f"{description['pairs']:,}")]


def ambiguity_rows(description: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Both measures, of the raw and of the distilled corpus."""
    found = description["ambiguity"]
    names = {
        "words": say("bits left open: which target word", "未定的比特：用哪个目标词"),
        "order": say("bits left open: where it stands", "未定的比特：它在句中何处"),
        "translations": say("different target words for a source word", "每个源词的不同译词数"),
    }
    return [
        (
            name,
            "–" if found["raw"] is None else f"{found['raw'][key]:.2f}",
            f"{found['distilled'][key]:.2f}",
        )
        for key, name in names.items()
    ]
