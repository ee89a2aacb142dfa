"""Greedy search: at every step take the most probable token, y_t = argmax_w log p(w | y_<t, x).

Greedy search is the cheapest search, and a good one when the model is sure. It never reconsiders,
so a first token that looks best may lead into a poor sentence (`beam.py` looks further). The score
of a hypothesis is its mean log-probability per token.
Tested on a model that spells a word, on a tree where greedy search fails, and against transformers'
`generate`.
"""

from typing import ClassVar, Literal

from torch import Tensor

from headwise.decoding.search.remembering import RememberingSettings


class GreedySettings(RememberingSettings):
    output_forms: ClassVar[tuple[str, ...]] = ("steps",)
    summary: ClassVar[str] = "The most probable token at every step."
    kind: Literal["greedy"] = "greedy"


def choose_best(scores: Tensor, step: int, sentences: Tensor) -> Tensor:
    """The most probable token of each row."""
    return scores.argmax(-1)
