"""n-gram language models: counting, and smoothing up to modified Kneser–Ney."""

from headwise.models.ngram.choices import NgramSettings
from headwise.models.ngram.counting import TokenStream, count_ngrams
from headwise.models.ngram.estimation import estimate
from headwise.models.ngram.model import NgramModel

__all__ = ["NgramModel", "NgramSettings", "TokenStream", "count_ngrams", "estimate"]
