"""Chooses which source tokens a parallel decoder reads in a search: each is copied as often as its
predicted fertility says.

    source        x₁ x₂ x₃ </s>
    fertility      2  0  1   1        the most likely ones, or a sample
    decoder       x₁ x₁ x₃ </s>

The end of the sentence is copied once. The words are copied as often as their fertilities say, at
least one of them; the number of copies keeps to the limits of the search. The first choice is the
most likely fertilities; others are drawn for each source token by itself (noisy parallel decoding).
Each sentence has a random generator of its own, so that its sample does not depend on its batch.

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation*, section 4.2. Tested against: the
most likely fertilities at a temperature near 0, limits, and a sentence alone = in a batch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.models.parallel.fertility import (
    copy_by_fertility,
    limit_sums,
    most_likely_fertilities,
    sample_fertilities,
)
from headwise.text.tokenizer import EOS


class SourceCopies(NamedTuple):
    """What the decoder reads, one candidate per row."""

    sentence: Int[Tensor, " candidate"]
    """The number of the source that each belongs to."""
    tokens: Int[Tensor, "candidate position"]
    """Source tokens, the end included, and padding."""
    log_probability: Float[Tensor, " candidate"]
    """Of the fertilities of all its source tokens."""
    fertility: Int[Tensor, "candidate source"]
    """How often each source token is copied."""
    fertility_log_probability: Float[Tensor, "candidate source"]
    """Of the fertility that was chosen, before the limits."""


class FertilityScores(NamedTuple):
    """Sources, one per row, and the logits of their fertilities."""

    logits: Float[Tensor, "sentence source fertility"]
    tokens: Int[Tensor, "sentence source"]
    segment: Int[Tensor, "sentence source"]

    @property
    def words(self) -> Int[Tensor, "sentence source"]:
        """The segments, with the end of the sentence counted as padding."""
        return torch.where(self.tokens == EOS, 0, self.segment)


def likely_copies(
    scores: FertilityScores,
    *,
    least: Int[Tensor, " sentence"],
    most: Int[Tensor, " sentence"],
) -> SourceCopies:
    """Copies by the most likely fertilities, from `least` to `most` of them with the end."""
    fertility = most_likely_fertilities(scores.logits, scores.words)
    sentence = torch.arange(len(fertility), device=fertility.device)
    return lay_copies(scores, sentence, fertility, least=least, most=most)


def sampled_copies(
    scores: FertilityScores,
    *,
    least: Int[Tensor, " sentence"],
    most: Int[Tensor, " sentence"],
    count: int,
    temperature: float,
    generators: Sequence[torch.Generator],
) -> SourceCopies:
    """For each sentence the most likely fertilities, and `count` - 1 samples after them."""
    words, logits = scores.words, scores.logits.cpu()
    rows = [most_likely_fertilities(scores.logits, words)[:, None]]
    if count > 1:
        drawn = torch.zeros(len(words), count - 1, words.shape[1], dtype=torch.int64)
        lengths = (words > 0).sum(1).tolist()
        for number, (length, generator) in enumerate(zip(lengths, generators, strict=True)):
            drawn[number, :, :length] = sample_fertilities(
                logits[number, None, :length],
                torch.ones(1, length, dtype=torch.int64),
                num_samples=count - 1,
                generator=generator,
                temperature=temperature,
            )[:, 0]
        rows.append(drawn.to(words.device))
    fertility = torch.cat(rows, dim=1).flatten(0, 1)
    sentence = torch.arange(len(words), device=words.device).repeat_interleave(count)
    return lay_copies(scores, sentence, fertility, least=least, most=most)


def lay_copies(
    scores: FertilityScores,
    sentence: Int[Tensor, " candidate"],
    fertility: Int[Tensor, "candidate source"],
    *,
    least: Int[Tensor, " sentence"],
    most: Int[Tensor, " sentence"],
) -> SourceCopies:
    """The copies of candidates whose words have these fertilities, within the limits."""
    words, is_end = scores.words[sentence], (scores.tokens == EOS)[sentence]
    table = scores.logits.float().log_softmax(-1)[sentence]
    chosen = table.gather(2, torch.where(is_end, 1, fertility)[..., None])[..., 0]
    limited = limit_sums(
        fertility,
        words,
        least=(least[sentence] - 1).minimum(most[sentence] - 1),
        most=most[sentence] - 1,
    )
    segment, copied = scores.segment[sentence], torch.where(is_end, 1, limited)
    copies = copy_by_fertility(copied, segment)
    chosen = chosen.masked_fill(segment == 0, 0)
    return SourceCopies(
        sentence,
        copies.copy_tokens(scores.tokens[sentence]),
        chosen.sum(1),
        copied.masked_fill(segment == 0, 0),
        chosen,
    )
