"""Forbidden and required phrases: how long their rules take to make, and what they cost while
translating.

    python benchmarks/bench_phrase_rules.py

Measured: on the pocket recipe's vocabulary (3,000 pieces): making the rules for 10, 50 and 200
forbidden words, and for 20 forbidden words with 8 required ones; then greedy and beam search with
random weights, without rules and with ten forbidden words. The floor of making rules is reading
every symbol of the vocabulary once; it is far below what is measured, because tables of states and
classes of tokens have to be filled. A search without rules does no work for them. Dated numbers are
in docs/experiments/decoding-speed.md and docs/decisions/31-phrase-rules-on-text.md.
"""

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench_startup import make_bundle
from harness import Bench, Contender, Run, make_parser
from sizes import SIZES

from headwise.decoding.rules.text_rules import make_rules
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.pocket import sentences
from headwise.tasks.translation.translator import Translator
from headwise.text.spelling import Spelling

REQUIRED = ("Hund", "Katze", "Haus", "Baum", "Kind", "Buch", "Straße", "Vogel")


def german_words(count: int) -> tuple[str, ...]:
    """Distinct words of the pocket corpus that are not required above."""
    found: dict[str, None] = {}
    for sentence in sentences("train", 5000):
        found.update(dict.fromkeys(word.strip(".,?!") for word in sentence.text("de").split()))
    return tuple(word for word in found if word and word not in REQUIRED)[:count]


def build_making(spelling: Spelling, forbidden: Sequence[str], required: Sequence[str]) -> Run:
    def run() -> float:
        make_rules(forbidden, required, spelling)
        return 1.0

    return run


def build_translating(
    translator: Translator, settings: GreedySettings | BeamSettings, texts: Sequence[str]
) -> Run:
    def run() -> float:
        translator(texts, settings)
        return float(len(texts))

    return run


def main(arguments: Sequence[str] | None = None) -> None:
    options = make_parser(__doc__).parse_args(arguments)
    num_texts = 4 if options.quick else 64
    bench = Bench("phrase_rules", options)
    words = german_words(200)
    with tempfile.TemporaryDirectory() as directory:
        bundle = make_bundle(Path(directory) / "model", SIZES["pocket"])
        translator = Translator.load(bundle, device=options.device, precision="fp32")
    spelling = Spelling.of(translator.tokenizers.target.surfaces())
    sets = {f"{count} forbidden": (words[:count], ()) for count in (10, 50, 200)}
    sets["20 forbidden, 8 required"] = (words[:20], REQUIRED)
    making = [
        Contender(name, partial(build_making, spelling, *phrases)) for name, phrases in sets.items()
    ]
    bench.compare("making the rules", making, unit="set", baseline="10 forbidden")
    texts = [sentence.text("en") for sentence in sentences("test", num_texts)]
    for name, plain in (
        ("greedy", GreedySettings(max_length=20)),
        ("beam 4", BeamSettings(size=4, max_length=20)),
    ):
        ruled = plain.model_copy(update={"forbidden": words[:10]})
        contenders = [
            Contender("without rules", partial(build_translating, translator, plain, texts)),
            Contender("10 forbidden", partial(build_translating, translator, ruled, texts)),
        ]
        bench.compare(
            f"{name}, {num_texts} sentences", contenders, unit="sentence", baseline="without rules"
        )
    bench.save()


if __name__ == "__main__":
    main()
