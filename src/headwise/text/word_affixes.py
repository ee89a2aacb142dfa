"""Hashes the suffixes, the prefixes and the shape of a word to ids that a model can look up.

An unknown word still ends in -ing, begins with un- or has a capital letter. Instead of a list of
affixes, each one is hashed into one of `buckets` rows (the hashing trick, Weinberger et al. 2009;
fastText does so with n-grams). No affix is ever unknown, and two words that share a row usually
differ in others.

    "Walking"  ->  suffixes g ng ing king   prefixes w wa wal   shape Xx

Everything but the shape is in lower case. 0 is an affix that a short word does not have. Tested
against: the list above.
"""

import hashlib
from functools import lru_cache

ENDINGS = (1, 2, 3, 4)
BEGINNINGS = (1, 2, 3)
NUM_AFFIXES = len(ENDINGS) + len(BEGINNINGS) + 1


def affixes(word: str) -> tuple[str, ...]:
    """The features by name; "" if a word is too short for one."""
    small = word.lower()
    endings = [f"-{small[-size:]}" if len(small) >= size else "" for size in ENDINGS]
    beginnings = [f"{small[:size]}-" if len(small) >= size else "" for size in BEGINNINGS]
    return (*endings, *beginnings, f"*{shape(word)}")


def shape(word: str) -> str:
    """Capitals as X, small letters x, digits 0, other letters c, the rest as it is; runs once."""
    marks = (
        "X"
        if one.isupper()
        else "x"
        if one.islower()
        else "0"
        if one.isdigit()
        else "c"
        if one.isalpha()
        else one
        for one in word
    )
    runs: list[str] = []
    for mark in marks:
        if not runs or runs[-1] != mark:
            runs.append(mark)
    return "".join(runs[:8])


@lru_cache(maxsize=1 << 18)
def affix_ids(word: str, buckets: int) -> tuple[int, ...]:
    """Rows of the features, 1 … buckets; 0 for none. They are the same on every machine."""
    return tuple(row_of(name, buckets) if name else 0 for name in affixes(word))


def row_of(name: str, buckets: int) -> int:
    """The row a name is hashed into, 1 … buckets."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % buckets + 1
