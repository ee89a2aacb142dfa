"""The most probable tokens at every step of a translation, and the probability of the written one.

A finished translation y of x is read once more from left to right. Before each token the model has
the distribution

    p(w | y_<t, x)     log-probability and rank of the written token, the k best tokens, and the
                       entropy −Σ p log p in nats: 0 if the model is certain, log |V| if it has
                       no preference

The probabilities are the model's own. Constraints of a search, such as a forced prefix, change what
is written and not these probabilities.

Tested against: the log-probabilities that the search itself reports, and a hand-made distribution.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, Tokenizer


@dataclass(frozen=True)
class TokenChoice:
    """A token that may be written next, with its log-probability."""

    token: int
    piece: str
    log_probability: float


@dataclass(frozen=True)
class Decision:
    """One step: the token that was written, and the most probable ones."""

    chosen: TokenChoice
    rank: int
    """The rank of the written token by probability; 1 is the most probable."""
    entropy: float
    best: tuple[TokenChoice, ...]


def describe_steps(
    translator: Translator,
    source: Sequence[int],
    target: Sequence[int],
    *,
    num_best: int,
    finished: bool,
    before_step: Callable[[], None] | None = None,
) -> tuple[Decision, ...]:
    """A decision for every token of the target and, if the target is `finished`, for its end.

    `before_step` is called before every step and may stop the work by raising an exception.
    """
    generator = translator.generator(translator.recipe.decoding)
    written = [*target, EOS] if finished else list(target)
    found = []
    read = generator.read([source], target, before_step=before_step)
    for scores, token in zip(read, written, strict=False):
        found.append(
            describe_step(translator.tokenizers.target, scores[0], token, num_best=num_best)
        )
    return tuple(found)


def describe_step(
    tokenizer: Tokenizer, scores: Float[Tensor, "vocab"], token: int, *, num_best: int
) -> Decision:
    """One distribution and the token that was written."""
    offered = scores.clone()
    offered[[PAD, BOS]] = float("-inf")  # a search never writes these
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


def name_token(tokenizer: Tokenizer, token: int) -> str:
    """The piece of a token; special tokens by their names."""
    return SPECIAL_PIECES[token] if token < len(SPECIAL_PIECES) else tokenizer.pieces([token])[0]


def _choice(tokenizer: Tokenizer, token: int, log_probability: float) -> TokenChoice:
    return TokenChoice(token, name_token(tokenizer, token), log_probability)
