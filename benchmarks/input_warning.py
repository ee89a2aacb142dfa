"""How often a text is called unlike the training text: false alarms on its own language, hits on others.

    python benchmarks/input_warning.py train.en train.de own=test.en news=news.en german=test.de french=test.fr

The first two files are the training pairs, of which 20,000 are drawn as training draws them. Of each other file up to
1,000 lines are drawn and judged; `made-up` is 1,000 lines of made-up words. Files may be .gz. docs/experiments.md has
what came out.
"""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from headwise.tasks.files import read_sentences
from headwise.text.choices import sample_evenly
from headwise.text.known_words import KnownWords, find_words

NUM_PAIRS, NUM_LINES = 20_000, 1_000


def make_words(generator: random.Random) -> str:
    """Two to eight words of one to four syllables."""
    syllables = lambda: generator.choice("bcdfghjklmnprstvwz") + generator.choice("aeiou")  # noqa: E731
    words = ("".join(syllables() for _ in range(generator.randint(1, 4))) for _ in range(generator.randint(2, 8)))
    return " ".join(words).capitalize() + "."


def judge(known: KnownWords, name: str, lines: Sequence[str]) -> str:
    """A row of the table: shares of the lines that have words."""
    found = [known.judge(line) for line in lines if find_words(line)]
    reasons = Counter(one.reason for one in found if one is not None)
    shares = (sum(reasons.values()), reasons["unknown_words"], reasons["target_language"])
    return f"| {name} | {len(found):,} | " + " | ".join(f"{100 * count / len(found):.1f} %" for count in shares) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("tests", nargs="*", metavar="NAME=FILE")
    arguments = parser.parse_args()
    pairs = zip(read_sentences(arguments.source), read_sentences(arguments.target), strict=True)
    known = KnownWords.of(sample_evenly(pairs, NUM_PAIRS, seed=1))
    print(f"{len(known.source.counts):,} and {len(known.target.counts):,} words\n")
    print("| lines | judged | warned | unknown words | target language |\n|---|---|---|---|---|")
    for name, file in (test.split("=", 1) for test in arguments.tests):
        lines = sample_evenly(read_sentences(Path(file)), NUM_LINES, seed=2)
        print(judge(known, name, lines))
    generator = random.Random(3)
    print(judge(known, "made-up", [make_words(generator) for _ in range(NUM_LINES)]))


if __name__ == "__main__":
    main()
