"""Every step of a translation with what else might have been written there.

Reading a finished translation y once more from left to right gives, before each token, the model's own distribution

    p(w | y_<t, x)     the chosen token's log-probability and rank, the k best, and the entropy −Σ p log p in nats:
                       0 when the model is certain, log |V| when it knows nothing

The numbers are the model's: constraints of a search (a forced prefix, say) change what is chosen, not what is weighed.
Tested against: the log-probabilities that the search itself reports, and a hand-made distribution.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.decoding.stepper import Stepper
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, Tokenizer


@dataclass(frozen=True)
class Choice:
    """A token that might be written next."""

    token: int
    piece: str
    log_probability: float


@dataclass(frozen=True)
class Decision:
    """One step: what was written, and what else might have been."""

    chosen: Choice
    rank: int
    """1: nothing was more probable."""
    entropy: float
    best: tuple[Choice, ...]


def read_along(
    stepper: Stepper[Any], sources: Sequence[Sequence[int]], target: Sequence[int]
) -> Iterator[Float[Tensor, "source vocab"]]:
    """Log-probabilities of the token after each beginning of the target, the empty one first, for every source."""
    state = stepper.start(sources, width=1, max_length=len(target) + 1)
    for token in (BOS, *target):
        scores, state = stepper.step(
            state, torch.full((len(sources),), token, device=stepper.device)
        )
        yield scores


def weigh_steps(
    translator: Translator,
    source: Sequence[int],
    target: Sequence[int],
    *,
    num_best: int,
    finished: bool,
    stepper: Stepper[Any] | None = None,
) -> tuple[Decision, ...]:
    """A decision for every token of the target and, if it was `finished`, for its end; `stepper`: one that can be stopped."""
    stepper = translator.stepper(attending=False) if stepper is None else stepper
    written = [*target, EOS] if finished else list(target)
    found = []
    for scores, token in zip(read_along(stepper, [source], target), written, strict=False):
        found.append(decide(translator.tokenizers.target, scores[0], token, num_best=num_best))
    return tuple(found)


def decide(
    tokenizer: Tokenizer, scores: Float[Tensor, "vocab"], token: int, *, num_best: int
) -> Decision:
    """One distribution and the token that was taken from it."""
    offered = scores.clone()
    offered[[PAD, BOS]] = float("-inf")  # no search may write these
    values, tokens = offered.topk(min(num_best, len(offered) - 2))
    best = [
        _choice(tokenizer, *pair) for pair in zip(tokens.tolist(), values.tolist(), strict=True)
    ]
    entropy = -(scores.exp() * scores).nansum()
    return Decision(
        _choice(tokenizer, token, float(scores[token])),
        rank=1 + int((offered > scores[token]).sum()),
        entropy=max(0.0, float(entropy)),
        best=tuple(best),
    )


def spell(tokenizer: Tokenizer, token: int) -> str:
    """The piece of a token, special ones by their marks."""
    return SPECIAL_PIECES[token] if token < len(SPECIAL_PIECES) else tokenizer.pieces([token])[0]


def _choice(tokenizer: Tokenizer, token: int, log_probability: float) -> Choice:
    return Choice(token, spell(tokenizer, token), log_probability)
