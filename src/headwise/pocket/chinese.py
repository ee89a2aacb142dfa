"""Writes Chinese numerals as they stand before a measure word (两, not 二), for the sentences of
the pocket corpus. No other form is needed: Chinese words do not inflect."""

from __future__ import annotations

COUNTING = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")


def numeral(value: int) -> str:
    """The numeral that stands before a measure word, 1 to 12."""
    return COUNTING[value]
