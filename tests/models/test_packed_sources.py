"""Sources in rows: every token once, at its place, and the encoder sees the same sentences."""

import numpy as np
import torch

from headwise.models.packed_sources import pack_sources
from headwise.text.tokenizer import EOS


def test_every_token_lies_once_in_its_row_and_is_sent_to_its_place(
    generator: torch.Generator,
) -> None:
    lengths = torch.randint(0, 40, (53,), generator=generator).tolist()
    sources = [torch.randint(4, 97, (length,), generator=generator).tolist() for length in lengths]
    packed = pack_sources(sources, limit=64)
    stride, nowhere = 47, 53 * 47
    tables, sizes = packed.lay_out(
        packed.num_rows + 2, num_sentences=61, stride=stride, nowhere=nowhere
    )
    tokens, segment, position, place = tables
    kept = np.full(nowhere + 1, -1)
    kept[place.ravel()] = tokens.ravel()
    for number, source in enumerate(sources):
        assert kept[number * stride : number * stride + len(source) + 1].tolist() == [*source, EOS]
        row, begin = packed.row[number], packed.begin[number]
        here = slice(begin, begin + len(source) + 1)
        assert tokens[row, here].tolist() == [*source, EOS]
        assert position[row, here].tolist() == list(range(len(source) + 1))
        assert set(segment[row, here].tolist()) == {packed.segment[number]}
    assert (segment > 0).sum() == sum(lengths) + 53
    assert sizes.tolist() == [length + 1 for length in lengths] + [1] * 8
    # No segment number occurs twice in a row.
    pairs = list(zip(packed.row.tolist(), packed.segment.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)


def test_rows_are_full_when_lengths_are_mixed(generator: torch.Generator) -> None:
    lengths = torch.randint(3, 60, (211,), generator=generator).tolist()
    packed = pack_sources([[5] * length for length in lengths], limit=64)
    assert (sum(lengths) + 211) / (packed.num_rows * packed.row_length) > 0.8


def test_a_row_is_no_longer_than_the_positions_there_are() -> None:
    assert pack_sources([[5] * 18], limit=19).row_length == 19
