"""One path per row: the loop that greedy search and sampling share.

At each step every row takes exactly one token, y_t = choose(log p(· | y_<t, x)), until it takes the end of the sentence or
reaches its length limit. Rows never meet, so nothing is reordered except to drop finished sentences (compaction).
Tested through greedy search and sampling.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from headwise.decoding.constraints import Constraints, Phrases, SearchSettings
from headwise.decoding.length import limit_for
from headwise.decoding.results import Hypothesis, SearchResult, Tell
from headwise.decoding.stepping import (
    BOS,
    EOS,
    State,
    Stepper,
    pays_to_compact,
    steps_between_checks,
)
from headwise.errors import UsageError

Choose = Callable[[Tensor, int, Tensor], Tensor]
"""(log-probabilities [row, vocab], step, numbers of the sentences still alive) -> the token of each row."""


@dataclass(frozen=True)
class _Step:
    sentences: Tensor
    tokens: Tensor
    log_probabilities: Tensor


def follow_paths(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    choose: Choose,
    *,
    settings: SearchSettings,
    phrases: Sequence[Phrases],
    width: int,
    tell: Tell | None = None,
) -> list[list[Hypothesis]]:
    """`width` hypotheses for each (non-empty) source."""
    _refuse_required(phrases)
    device = stepper.device
    limits = [limit_for(settings.max_length, len(source)) for source in sources]
    constraints = Constraints(settings, phrases, limits=limits, width=width, device=device)
    state = stepper.start(sources, width=width, max_length=max(limits))
    alive = torch.arange(len(sources), device=device)
    tokens = torch.full((len(sources) * width,), BOS, dtype=torch.long, device=device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    steps: list[_Step] = []
    for step in range(max(limits)):
        scores, state = stepper.step(state, tokens)
        scores = constraints.mask(scores)
        tokens = choose(scores, step, alive)
        chosen = scores.gather(1, tokens[:, None])[:, 0]
        steps.append(_Step(alive, tokens, chosen))
        ended = ended | (tokens == EOS) | (constraints.limits == step + 1).repeat_interleave(width)
        index = None
        if step % steps_between_checks(device) == 0 or step + 1 == max(limits):
            done = ended.view(-1, width).all(-1)
            num_done = int(done.sum())
            if num_done == len(alive):
                break
            if num_done and pays_to_compact(num_done, len(alive)):
                kept = torch.nonzero(~done)[:, 0]
                if tell is not None:
                    _tell_of(alive[done], steps, tell, limits=limits, width=width)
                index = (kept[:, None] * width + torch.arange(width, device=device)).reshape(-1)
                alive, tokens, ended = alive[kept], tokens[index], ended[index]
                constraints.keep(kept)
                state = stepper.reorder(state, index)
        constraints.advance(tokens, index=index)
    return read_paths(*_read_steps(steps, num_sentences=len(limits), width=width), limits=limits)


def _tell_of(
    sentences: Tensor, steps: Sequence[_Step], tell: Tell, *, limits: Sequence[int], width: int
) -> None:
    """Those that leave are done, whatever the others still write."""
    numbers = sentences.tolist()
    tokens, values = _read_steps(steps, num_sentences=len(limits), width=width)
    found = read_paths(
        tokens[:, numbers], values[:, numbers], limits=[limits[number] for number in numbers]
    )
    for number, hypotheses in zip(numbers, found, strict=True):
        tell(number, SearchResult(tuple(hypotheses)))


def _refuse_required(phrases: Sequence[Phrases]) -> None:
    if any(wishes.rules is not None and wishes.rules.required for wishes in phrases):
        raise UsageError(
            "required phrases were given to a search that follows one path and cannot plan for them; use kind=beam",
            "该搜索只沿一条路径前进，无法保证必需短语出现；请使用 kind=beam",
        )


def _read_steps(
    steps: Sequence[_Step], *, num_sentences: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and log-probabilities by [step, sentence, row]."""
    shape = (len(steps), num_sentences, width)
    tokens, values = np.full(shape, EOS, dtype=np.int64), np.zeros(shape)
    first = 0
    # Steps with the same sentences are read in one go: every read from a device waits for it.
    for _, same in groupby(steps, key=lambda step: id(step.sentences)):
        group = list(same)
        sentences, here = group[0].sentences.cpu().numpy(), slice(first, first + len(group))
        tokens[here, sentences] = (
            torch.stack([step.tokens.view(-1, width) for step in group]).cpu().numpy()
        )
        chosen = torch.stack([step.log_probabilities.view(-1, width) for step in group])
        values[here, sentences] = chosen.double().cpu().numpy()
        first += len(group)
    return tokens, values


def read_paths(
    tokens: np.ndarray, values: np.ndarray, *, limits: Sequence[int]
) -> list[list[Hypothesis]]:
    """The hypotheses in tables [step, sentence, row]: each goes to its first end of sentence, or to its limit."""
    num_steps = np.minimum(len(tokens), np.array(limits))[:, None]
    ends = (tokens == EOS) & (np.arange(len(tokens))[:, None, None] < num_steps)
    finished = ends.any(axis=0)
    lengths = np.where(finished, ends.argmax(axis=0) + 1, num_steps)
    totals = np.where(np.arange(len(tokens))[:, None, None] < lengths, values, 0.0).sum(axis=0)
    by_row = tokens.transpose(1, 2, 0).tolist(), values.transpose(1, 2, 0).tolist()
    columns = (*by_row, lengths.tolist(), finished.tolist(), totals.tolist())
    return [
        [_hypothesis(*row) for row in zip(*rows, strict=True)]
        for rows in zip(*columns, strict=True)
    ]


def _hypothesis(
    tokens: list[int], values: list[float], length: int, finished: bool, total: float
) -> Hypothesis:
    return Hypothesis(
        tokens=tuple(tokens[: length - finished]),
        log_probability=total,
        score=total / length,
        token_log_probabilities=tuple(values[:length]),
        finished=finished,
    )
