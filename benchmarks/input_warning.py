"""How often a text is called unlike the training text: false alarms on its own language, hits on
others.

    python benchmarks/input_warning.py train.en train.de own=test.en news=news.en
        german=test.de french=test.fr
    python benchmarks/input_warning.py --detector en own=test.en german=test.de french=test.fr

The first form judges by the words of training pairs, the second, for models without them, by the
built-in detector (`en`: the language that the model reads). The first two files are the training
pairs, of which 20,000 are drawn as training draws them. Of each other file up to 1,000 lines are
drawn and judged; `made-up` is 1,000 lines of made-up words. Files may be .gz.
docs/experiments/translation.md has what came out.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from headwise.tasks.text_input import read_sentences
from headwise.tasks.translation.input_warning import InputCheck
from headwise.text.choices import CharacterSettings, learn_tokenizer, sample_evenly
from headwise.text.known_words import KnownWords, Reason, find_words
from headwise.text.tokenizer_pair import TokenizerPair

NUM_PAIRS, NUM_LINES = 20_000, 1_000
REASONS: tuple[Reason, ...] = ("unknown_words", "target_language", "other_language")


def make_words(generator: random.Random) -> str:
    """Two to eight words of one to four syllables."""
    syllables = lambda: generator.choice("bcdfghjklmnprstvwz") + generator.choice("aeiou")  # noqa: E731
    words = (
        "".join(syllables() for _ in range(generator.randint(1, 4)))
        for _ in range(generator.randint(2, 8))
    )
    return " ".join(words).capitalize() + "."


def judge(reason_of: Callable[[str], Reason | None], name: str, lines: Sequence[str]) -> str:
    """A row of the table: shares of the lines that have words."""
    found = [reason_of(line) for line in lines if find_words(line)]
    reasons = Counter(found)
    shares = (len(found) - reasons[None], *(reasons[reason] for reason in REASONS))
    return (
        f"| {name} | {len(found):,} | "
        + " | ".join(f"{100 * count / len(found):.1f} %" for count in shares)
        + " |"
    )


def compare(source: Path, target: Path) -> Callable[[str], Reason | None]:
    """By the words of training pairs."""
    pairs = zip(read_sentences(source), read_sentences(target), strict=True)
    known = KnownWords.of(sample_evenly(pairs, NUM_PAIRS, seed=1))
    print(f"{len(known.source.counts):,} and {len(known.target.counts):,} words\n")
    return lambda line: found.reason if (found := known.judge(line)) is not None else None


def detect(language: str) -> Callable[[str], Reason | None]:
    """By the built-in detector; the tokenizer judges nothing here."""
    tokenizer = learn_tokenizer(CharacterSettings(), ["a"])
    check = InputCheck(TokenizerPair(tokenizer, tokenizer, shared=True), source=language, target="")
    return lambda line: found.code if (found := check.judge_language(line)) is not None else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="SOURCE TARGET NAME=FILE")
    parser.add_argument(
        "--detector", metavar="LANGUAGE", help="no training pairs: judge by the built-in detector"
    )
    arguments = parser.parse_args()
    tests = arguments.files if arguments.detector else arguments.files[2:]
    reason_of = (
        detect(arguments.detector)
        if arguments.detector
        else compare(*map(Path, arguments.files[:2]))
    )
    print(
        "| lines | judged | warned | unknown words | target language | other language |\n"
        "|---|---|---|---|---|---|"
    )
    for name, file in (test.split("=", 1) for test in tests):
        lines = sample_evenly(read_sentences(Path(file)), NUM_LINES, seed=2)
        print(judge(reason_of, name, lines))
    generator = random.Random(3)
    print(judge(reason_of, "made-up", [make_words(generator) for _ in range(NUM_LINES)]))


if __name__ == "__main__":
    main()
