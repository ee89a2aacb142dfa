"""Hashes the character n-grams of a word to ids: *unwatchable* shares *watch* and *able>* with
others.

    "where"  ->  <wh whe her ere re>   <whe wher here ere>   <wher where here>   <where where>

These are the subwords of fastText (Bojanowski et al. 2017): 3 to 6 letters of the word between <
and >, which mark its beginning and end. The whole word has an id of its own and is not among them.
N-grams are hashed like affixes (word_affixes.py); a word keeps its first 24, shortest first, which
is all of them up to seven letters. Tested against: the list above.
"""

from functools import lru_cache

from headwise.text.word_affixes import row_of

SIZES = (3, 4, 5, 6)
NUM_RUNS = 24


def runs(word: str) -> tuple[str, ...]:
    """The n-grams of a word, shortest first, in lower case."""
    whole = f"<{word.lower()}>"
    found = [
        whole[start : start + size]
        for size in SIZES
        for start in range(len(whole) - size + 1)
        if size < len(whole)
    ]
    return tuple(found[:NUM_RUNS])


@lru_cache(maxsize=1 << 18)
def run_ids(word: str, buckets: int) -> tuple[int, ...]:
    """Ids of the n-grams, 1 … buckets, padded with 0. They are the same on every machine."""
    rows = [row_of(f"~{run}", buckets) for run in runs(word)]
    return (*rows, *(0,) * (NUM_RUNS - len(rows)))
