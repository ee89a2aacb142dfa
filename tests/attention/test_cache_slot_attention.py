"""Attention through a table against the plain kernel over keys gathered by hand."""

import torch

from headwise.attention.cache_slot_attention import attend_through_table, attend_to_source
from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import Mask

HEADS, DIM, ROWS, ROOM = 3, 21, 5, 11


def split(x: torch.Tensor) -> torch.Tensor:
    """[time, dim] → [1, head, time, head_dim]"""
    return x.unflatten(-1, (HEADS, -1)).transpose(0, 1)[None]


def test_each_row_reads_the_slots_its_table_names_and_its_own_new_one(
    generator: torch.Generator,
) -> None:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    for time in (0, 4, ROOM - 1):
        keys, values = draw(ROOM, ROWS, DIM), draw(ROOM, ROWS, DIM)
        keys[time:], values[time:] = torch.nan, torch.nan  # what was never written must not matter
        q, k, v = draw(ROWS, DIM), draw(ROWS, DIM), draw(ROWS, DIM)
        table = torch.randint(0, ROWS, (ROOM, ROWS), generator=generator, dtype=torch.int32)
        found = attend_through_table(
            q, (k, v), keys, values, table=table, time=torch.tensor([time]), num_heads=HEADS
        )
        for row in range(ROWS):
            past = [(keys[t, table[t, row]], values[t, table[t, row]]) for t in range(time)] + [
                (k[row], v[row])
            ]
            seen_keys, seen_values = (torch.stack(column) for column in zip(*past, strict=True))
            expected = FullAttention()(
                split(q[row : row + 1]), split(seen_keys), split(seen_values), Mask()
            )
            torch.testing.assert_close(found[row], expected.flatten())
        assert torch.equal(keys[time], k)
        assert torch.equal(values[time], v)


def test_the_rows_of_a_sentence_read_its_source_and_no_further_than_it_goes(
    generator: torch.Generator,
) -> None:
    kept = torch.randn(4, 7, 2 * DIM, generator=generator)
    sentence, length, width = torch.tensor([3, 1]), torch.tensor([2, 7]), 3
    kept[3, 2:] = torch.nan
    q = torch.randn(2 * width, DIM, generator=generator)
    keys, values = kept.chunk(2, dim=-1)
    found = attend_to_source(q, keys, values, sentence=sentence, length=length, num_heads=HEADS)
    for row in range(2 * width):
        number, end = int(sentence[row // width]), int(length[row // width])
        expected = FullAttention()(
            split(q[row : row + 1]), split(keys[number, :end]), split(values[number, :end]), Mask()
        )
        torch.testing.assert_close(found[row], expected.flatten())
