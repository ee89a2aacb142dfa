"""The laws of attention: what holds for every kernel, whatever it does inside.

`check(settings)` runs all of them over a kernel, be it ours or of another package. They need no
test framework: a law is a function that raises AssertionError.
"""

from headwise.laws.case import LawCase, case_of
from headwise.laws.checking import check

__all__ = ["LawCase", "case_of", "check"]
