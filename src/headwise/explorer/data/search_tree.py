"""The tree of a beam search: every continuation that was kept, finished or pruned.

A node is a hypothesis; its parent is the same hypothesis without the last token. At every step the
2k best continuations of the k kept nodes are considered: k are kept, those that end the sentence
are finished, and the others are pruned (`decoding/search/beam.py`). The n best translations are
marked as leaves.

    total = Σ log p     score = total / divisor(length)     finished hypotheses are ranked by score

Tested against: the paths from the root are the hypotheses, totals add up along them, a hand-worked
beam.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headwise.decoding.results import Hypothesis, SearchTrace
from headwise.text.tokenizer import EOS

Fate = Literal["kept", "pruned", "finished"]


@dataclass(frozen=True)
class SearchNode:
    """A hypothesis; the root (number 0, the empty one) is not listed."""

    number: int
    parent: int
    step: int
    """The number of its tokens, including the end."""
    token: int
    log_probability: float
    total: float
    score: float
    fate: Fate


@dataclass(frozen=True)
class SearchTree:
    nodes: tuple[SearchNode, ...]
    leaves: tuple[int, ...]
    """The node of each hypothesis of the search, best first."""


def build_tree(trace: SearchTrace, hypotheses: Sequence[Hypothesis]) -> SearchTree:
    """The tree, with its nodes in the order in which they were considered."""
    nodes: list[SearchNode] = []
    places: dict[int, int] = {0: 0}
    children: dict[tuple[int, int], int] = {}
    for step, candidates in enumerate(trace.steps, start=1):
        following: dict[int, int] = {}
        for one in candidates:
            number = len(nodes) + 1
            parent = places[one.parent]
            nodes.append(
                SearchNode(
                    number,
                    parent,
                    step,
                    one.token,
                    one.log_probability,
                    one.total,
                    one.score,
                    one.fate,
                )
            )
            children[parent, one.token] = number
            if one.slot is not None:
                following[one.slot] = number
        places = following
    return SearchTree(tuple(nodes), tuple(_find(children, hypothesis) for hypothesis in hypotheses))


def _find(children: dict[tuple[int, int], int], hypothesis: Hypothesis) -> int:
    number = 0
    for token in (*hypothesis.tokens, *((EOS,) if hypothesis.finished else ())):
        number = children[number, token]
    return number
