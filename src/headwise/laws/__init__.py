"""The laws of attention: properties that every kernel must have.

`check(settings)` tests a kernel, one of Headwise or of another package, against all of them. No
test framework is needed: a law is a function that raises AssertionError.
"""

from headwise.laws.case import LawCase, case_of
from headwise.laws.checking import check

__all__ = ["LawCase", "case_of", "check"]
