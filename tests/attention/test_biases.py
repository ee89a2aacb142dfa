"""A bias said by distance is the table it stands for."""

import torch

from headwise.attention.biases import DistanceBias, dense_bias


def test_distances_worked_by_hand() -> None:
    bias = DistanceBias(torch.tensor([[10.0, 20.0, 30.0]]), first=-1)  # one back, itself, one ahead
    assert bias.dense(3, 3)[0, 0].tolist() == [[20, 30, 30], [10, 20, 30], [10, 10, 20]]
    assert DistanceBias(bias.table, first=-1, offset=2).dense(1, 3)[0, 0].tolist() == [[10, 10, 20]]


def test_single_pairs_are_those_of_the_table() -> None:
    bias = DistanceBias(torch.arange(15.0).view(3, 5), first=-2, offset=1)
    batch, head, query, key = (
        torch.tensor(0),
        torch.arange(3)[:, None, None],
        torch.arange(7)[:, None],
        torch.arange(5),
    )
    assert bias.at(batch, head, query, key).equal(bias.dense(7, 5)[0])


def test_a_table_is_itself() -> None:
    table = torch.ones(1, 1, 2, 3)
    assert dense_bias(table, 2, 3) is table
