"""Alignment error rate of the aligner (`data/pairs/alignment/`) on the pocket corpus, whose word
alignment is known.

    python benchmarks/word_alignment.py en de
    python benchmarks/word_alignment.py zh en --pairs 30000 --data prepared/zh-en

Pairs of the recipe `pocket` are prepared as for training, both directions are learned from their
pieces, and the links of 200 test sentences are compared word by word: of the pieces of two words
one link is enough. Columns: each direction, both combined by `symmetrize`, and the error when
every target token must have a link, as for fertilities. docs/experiments/translation.md has what
came out.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from headwise.data.pairs.alignment.aligner import AlignerSettings, fit_aligner
from headwise.data.pairs.alignment.lexical_table import LexicalTable
from headwise.data.pairs.alignment.links import NO_SOURCE, link_targets
from headwise.data.pairs.preparation import prepare_data
from headwise.data.shards import Ragged, TokenStore, as_ragged
from headwise.evaluation.alignment import (
    GoldLinks,
    Links,
    assign_pieces,
    score_alignments,
    symmetrize,
)
from headwise.pocket import sentences
from headwise.tasks.recipe import load_translation_recipe
from headwise.text.tokenizer import Tokenizer

NUM_TEST = 200


class Swapped:
    """A store read from target to source."""

    def __init__(self, store: TokenStore) -> None:
        self.store = store
        self.source_lengths, self.target_lengths = store.target_lengths, store.source_lengths

    def gather(self, pairs: np.ndarray) -> tuple[Ragged, Ragged]:
        source, target = self.store.gather(pairs)
        return target, source


class Side:
    """The pieces of the test sentences in one language, and the word of each piece."""

    def __init__(self, language: str, tokenizer: Tokenizer) -> None:
        test = list(sentences("test", NUM_TEST))
        ids = [tokenizer.encode(one.text(language)) for one in test]
        self.pieces = as_ragged(ids)
        self.words = [
            assign_pieces(tokenizer.pieces(some), one.words(language))
            for some, one in zip(ids, test, strict=True)
        ]


def link_words(
    table: LexicalTable, source: Side, target: Side, *, without_source: bool
) -> list[Links]:
    links = link_targets(table, source.pieces, target.pieces, without_source=without_source)
    return [
        frozenset((here[i], there[j]) for j, i in enumerate(found.tolist()) if i != NO_SOURCE)
        for found, here, there in zip(links.split(), source.words, target.words, strict=True)
    ]


def measure(
    store: TokenStore, source: Side, target: Side, gold: Sequence[GoldLinks], sizes: Sequence[int]
) -> None:
    for tension, fit in ((0.0, False), (1.0, False), (2.0, False), (4.0, False), (4.0, True)):
        settings = AlignerSettings(tension=tension, fit_tension=fit)
        begin = time.process_time()
        forward = fit_aligner(store, num_targets=sizes[1], settings=settings)
        seconds = time.process_time() - begin
        backward = fit_aligner(Swapped(store), num_targets=sizes[0], settings=settings)
        there = link_words(forward, source, target, without_source=True)
        back = [
            frozenset((i, j) for j, i in links)
            for links in link_words(backward, target, source, without_source=True)
        ]
        both = [symmetrize(one, other) for one, other in zip(there, back, strict=True)]
        full = link_words(forward, source, target, without_source=False)
        errors = [score_alignments(links, gold).error_rate for links in (there, back, both, full)]
        name = f"{forward.tension:.1f}, fitted" if fit else f"{tension:.0f}"
        row = " | ".join(f"{error:.3f}" for error in errors)
        print(f"| {name} | {row} | {seconds:.2f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--pairs", type=int, default=30_000)
    parser.add_argument("--data", type=Path, default=None)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    languages = (wanted.source, wanted.target)
    recipe = load_translation_recipe(
        "pocket",
        [
            f"data.source={wanted.source}",
            f"data.target={wanted.target}",
            f"data.train.count={wanted.pairs}",
        ],
    )
    directory = wanted.data or Path(f"runs/pocket-alignment-{wanted.source}-{wanted.target}")
    data = prepare_data(recipe.data, recipe.text, directory)
    tokenizers = (data.tokenizers.source, data.tokenizers.target)
    sides = [Side(language, one) for language, one in zip(languages, tokenizers, strict=True)]
    known = [one.alignment(*languages) for one in sentences("test", NUM_TEST)]
    print(f"{len(data.train):,} pairs, {NUM_TEST} test sentences, {'-'.join(languages)}")
    print("| tension | forward | backward | both | forward, all linked | training |")
    gold = [GoldLinks(links, links) for links in known]
    measure(data.train, sides[0], sides[1], gold, [one.size for one in tokenizers])


if __name__ == "__main__":
    main()
