"""A word as the runs of letters in it, each a number a model can look up: *unwatchable* is known by
*watch* and *able>*.

    "where"  ->  <wh whe her ere re>   <whe wher here ere>   <wher where here>   <where where>

fastText's subwords (Bojanowski et al. 2017): runs of 3 to 6 letters of the word between < and >,
which tell a beginning and an end from the middle; the whole word is looked up by itself and is not
among them. Runs are hashed as endings are (affixes.py); a word keeps its first 24, shortest first,
which is all of them up to seven letters. Tested against: the list above written out.
"""

from functools import lru_cache

from headwise.text.word_affixes import row_of

SIZES = (3, 4, 5, 6)
NUM_RUNS = 24


def runs(word: str) -> tuple[str, ...]:
    """The runs of a word, shortest first; case is folded."""
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
    """Rows of the runs, 1 … buckets, filled up with 0. The same on every machine."""
    rows = [row_of(f"~{run}", buckets) for run in runs(word)]
    return (*rows, *(0,) * (NUM_RUNS - len(rows)))
