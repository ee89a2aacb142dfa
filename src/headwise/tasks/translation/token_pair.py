"""Holds one sentence pair in the tokens of one translator, without their ends of sentence.

Losses that learn from samples and the measure of exposure bias read pairs in this form. Tested with
both.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TokenPair:
    source: Sequence[int]
    target: Sequence[int]
