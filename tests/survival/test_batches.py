"""R9: a translation does not depend on its neighbours: alone, in random company, padded by longer
sentences, the same text."""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.preparation import read_part
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.randomness import numpy_generator
from headwise.tasks.translation.translator import Translator

BUNDLE = Path(__file__).parents[1] / "fixtures" / "format-1" / "bundle"
SEARCHES: dict[str, DecodingSettings] = {
    "greedy": GreedySettings(max_length=20),
    "beam": BeamSettings(size=3, max_length=20),
}


def sentences(count: int) -> list[str]:
    """Of the pocket corpus, most of them never seen by the model, which makes for close
    decisions."""
    data = DataSettings.model_validate(
        {
            "source": "en",
            "target": "de",
            "train": {"kind": "pocket", "split": "train", "count": count},
        }
    )
    return [pair.source for pair in islice(read_part(data, "train"), count)]


def in_batches(
    translator: Translator,
    texts: Sequence[str],
    settings: DecodingSettings,
    generator: np.random.Generator,
) -> tuple[list[str], list[float]]:
    """In random order and company, a very long sentence in each batch; the results in the order of
    the texts."""
    order = generator.permutation(len(texts))
    long = " ".join(texts[:3])
    found: dict[int, tuple[str, float]] = {}
    start = 0
    while start < len(order):
        batch = order[start : start + int(generator.integers(2, 33))]
        start += len(batch)
        results = translator([*(texts[index] for index in batch), long], settings)
        found |= {
            int(i): (one.text, one.n_best[0].log_probability)
            for i, one in zip(batch, results, strict=False)
        }
    return [found[i][0] for i in range(len(texts))], [found[i][1] for i in range(len(texts))]


def compare(search: str, count: int) -> float:
    """The largest difference of log-probabilities; every text must be equal."""
    translator, texts, settings = (
        Translator.load(BUNDLE, device="cpu"),
        sentences(count),
        SEARCHES[search],
    )
    alone = [translator([text], settings)[0] for text in texts]
    together, scores = in_batches(translator, texts, settings, numpy_generator("batches", search))
    differing = [
        text for text, one, other in zip(texts, alone, together, strict=True) if one.text != other
    ]
    assert differing == []
    return max(
        abs(one.n_best[0].log_probability - other) for one, other in zip(alone, scores, strict=True)
    )


def test_a_few_sentences_with_each_search() -> None:
    assert compare("greedy", 20) < 1e-3
    assert compare("beam", 5) < 1e-3


@pytest.mark.prove
@pytest.mark.parametrize(("search", "count"), [("greedy", 2000), ("beam", 500)])
def test_two_thousand_sentences(search: str, count: int, record: Callable[..., None]) -> None:
    difference = compare(search, count)
    assert difference < 1e-3
    record(
        "R9",
        f"{count:,} sentences ({search}, fp32) alone and in random, padded batches",
        f"100 % the same text; log-probabilities differ by at most {difference:.1e}",
    )
