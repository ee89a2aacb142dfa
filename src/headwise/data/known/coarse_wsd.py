"""Converts CoarseWSD-20 to one table; the publisher has a folder for each of 20 ambiguous words.

    WORD/train.data.txt      3 <tab> garrett is a pitcher …    index of the word, sentence
    WORD/train.gold.txt      0                                 sense of the same line
    WORD/classes_map.txt     {"0": "pitcher_pitcher", …}       names of the senses

The table has the columns word, sense, index of the word, and sentence:

    pitcher <tab> pitcher_pitcher <tab> 3 <tab> garrett is a pitcher …

Loureiro et al. (2021), "Analysis and Evaluation of Language Models for Word Sense Disambiguation".
Tested against: a table that was split into such folders.
"""

import json
from collections.abc import Callable

WORDS = [
    "apple",
    "arm",
    "bank",
    "bass",
    "bow",
    "chair",
    "club",
    "crane",
    "deck",
    "digit",
    "hood",
    "java",
    "mole",
    "pitcher",
    "pound",
    "seal",
    "spring",
    "square",
    "trunk",
    "yard",
]


def join_senses(read: Callable[[str], bytes], address: str) -> bytes:
    """The table made from the folders at an address in which * stands for the word.

    Folders that do not match give no table.
    """
    rows = []
    for word in WORDS:
        sentences = address.replace("*", word)
        try:
            senses = json.loads(read(sentences.rpartition("/")[0] + "/classes_map.txt"))
            numbers = read(sentences.replace(".data.", ".gold.")).decode().split()
            lines = read(sentences).decode().removesuffix("\n").split("\n")
            rows += [
                f"{word}\t{senses[number]}\t{line}\n"
                for number, line in zip(numbers, lines, strict=True)
            ]
        except (ValueError, KeyError, TypeError):
            return b""  # the checksum says that this is not the text
    return "".join(rows).encode()
