"""What a word's letters tell: its endings, its beginnings and its shape, each a number a model can
look up.

A word that was never seen still ends in -ing, begins with un- or is written with a capital. Instead
of a list of endings, each is hashed into one of `buckets` rows (Weinberger et al. 2009, the hashing
trick; fastText does so with n-grams): no ending is ever unknown, and two that share a row are told
apart by the others.

    "Walking"  ->  endings g ng ing king   beginnings w wa wal   shape Xx

Case is folded in all but the shape. 0 stands for what a short word has not got. Tested against: the
list above written out.
"""

import hashlib
from functools import lru_cache

ENDINGS = (1, 2, 3, 4)
BEGINNINGS = (1, 2, 3)
NUM_AFFIXES = len(ENDINGS) + len(BEGINNINGS) + 1


def affixes(word: str) -> tuple[str, ...]:
    """The features by name; "" where a word is too short for one."""
    small = word.lower()
    endings = [f"-{small[-size:]}" if len(small) >= size else "" for size in ENDINGS]
    beginnings = [f"{small[:size]}-" if len(small) >= size else "" for size in BEGINNINGS]
    return (*endings, *beginnings, f"*{shape(word)}")


def shape(word: str) -> str:
    """Capitals X, small letters x, digits 0, other letters c, the rest as it is; runs are written
    once.
    """
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
    """Rows of the features, 1 … buckets; 0 for none. The same on every machine."""
    return tuple(row_of(name, buckets) if name else 0 for name in affixes(word))


def row_of(name: str, buckets: int) -> int:
    """The row a name is hashed into, 1 … buckets."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % buckets + 1
