"""Generation under CTC through the generator: collapse, limits, rules, and reading a target."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.decoding.choices import make_generator
from headwise.decoding.parallel.ctc import collapse
from headwise.decoding.parallel.ctc_search import CtcBeamSettings, CtcSearch, PrefixSums
from headwise.decoding.parallel.one_pass import OnePassSettings
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import SettingsError, UsageError
from headwise.text.tokenizer import EOS, PAD, UNKNOWN

VOCAB = 17


class Doubler:
    """Writes each source token at the first of two positions and a blank at the second."""

    output_form = "alignment"
    device = torch.device("cpu")

    def read_sources(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        return [list(source) for source in sources]

    def predict_upsampled(self, memory: list[list[int]]) -> tuple[Tensor, Tensor]:
        longest = 2 * max(map(len, memory))
        scores = torch.full((len(memory), longest, VOCAB), 0.1 / VOCAB)
        for row, source in enumerate(memory):
            for place, token in enumerate(source):
                scores[row, 2 * place, token] = 0.9
                scores[row, 2 * place + 1, PAD] = 0.9
        count = torch.tensor([2 * len(source) for source in memory])
        return (scores / scores.sum(-1, keepdim=True)).log(), count


SOURCES = [[5, 6, 6, 7], [8], [], [9, 10, 11, 12, 13]]


@pytest.mark.parametrize("settings", [OnePassSettings(), CtcBeamSettings(size=3)])
def test_it_spells_with_repeated_tokens(settings: Any) -> None:
    found = make_generator(settings, Doubler()).generate(SOURCES, settings)
    assert [list(one.best.tokens) for one in found] == SOURCES
    for one in found:
        assert one.best.finished
        assert len(one.best.token_log_probabilities) == len(one.best.tokens) + (
            one.best.log_probability != 0
        )


def test_a_sentence_alone_equals_the_sentence_in_a_batch() -> None:
    for settings in (OnePassSettings(), CtcBeamSettings(size=3, num_best=2)):
        search = CtcSearch(Doubler())
        together = search.generate(SOURCES, settings)
        for source, found in zip(SOURCES, together, strict=True):
            (alone,) = search.generate([source], settings)
            assert alone.best.tokens == found.best.tokens
            assert alone.best.log_probability == pytest.approx(found.best.log_probability)


def test_a_limit_cuts_and_unknown_tokens_can_be_excluded() -> None:
    search = CtcSearch(Doubler())
    (cut,) = search.generate([[5, 6, 7, 8]], OnePassSettings(max_length=3))
    assert cut.best.tokens == (5, 6)
    assert not cut.best.finished
    (known,) = search.generate([[UNKNOWN, 5]], OnePassSettings(allow_unknown=False))
    assert UNKNOWN not in known.best.tokens


def test_reading_gives_the_sums_over_all_alignments() -> None:
    """Every sentence of a small case: the product of the conditionals is its exact share."""
    generator = torch.Generator().manual_seed(4)
    vocab, num_positions = 5, 4
    table = torch.rand(1, num_positions, vocab, generator=generator, dtype=torch.float64)
    table[..., [1, EOS]] = 0
    table = table / table.sum(-1, keepdim=True)
    exact: dict[tuple[int, ...], float] = {}
    for alignment in product(range(vocab), repeat=num_positions):
        share = float(torch.stack([table[0, i, w] for i, w in enumerate(alignment)]).prod())
        text = collapse(alignment)
        exact[text] = exact.get(text, 0.0) + share
    assert sum(exact.values()) == pytest.approx(1)
    for text, share in exact.items():
        if share == 0:
            continue
        prefix, total = PrefixSums(table, torch.tensor([num_positions])), 1.0
        for token in (*text, EOS):
            total *= float(prefix.following()[0, token])
            if token != EOS:
                prefix.append(token)
        assert total == pytest.approx(share, rel=1e-9)


def test_reading_a_batch_ignores_positions_past_the_end() -> None:
    search = CtcSearch(Doubler())
    together = torch.stack(list(search.read([[5, 6], [7, 8, 9]], [5, 6])), dim=1)
    alone = torch.stack(list(search.read([[5, 6]], [5, 6])), dim=1)
    torch.testing.assert_close(together[0], alone[0])
    assert [int(row.argmax()) for row in alone[0]] == [5, 6, EOS]


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"use decoding\.kind=one_pass or ctc_beam"):
        make_generator(BeamSettings(), Doubler())
    with pytest.raises(UsageError, match="does not follow the rule prefix"):
        CtcSearch(Doubler()).generate(SOURCES, OnePassSettings(prefix="x"))
