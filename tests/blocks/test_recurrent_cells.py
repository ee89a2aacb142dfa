"""Recurrent cells: the equations = torch's fused layers; padded = one by one; word by word = whole
sentence."""

import pytest
import torch
from torch import Tensor, nn

from headwise.blocks.recurrent_cells import (
    CELLS,
    FUSED,
    CellKind,
    RecurrentLayer,
    RecurrentStack,
    turn_around,
)

BATCH, TIME, INPUT, DIM = 3, 7, 5, 11
KINDS: tuple[CellKind, ...] = ("rnn", "lstm", "gru")


def _normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.empty(*shape, dtype=torch.float64).normal_(
        generator=torch.Generator().manual_seed(seed)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("written_out", [True, False])
def test_layers_equal_torchs_with_copied_weights(kind: CellKind, written_out: bool) -> None:
    """Outputs, last states and gradients of two layers."""
    peer = FUSED[kind](INPUT, DIM, num_layers=2, batch_first=True).double()
    stack = RecurrentStack(kind, INPUT, [DIM, DIM]).double()
    with torch.no_grad():
        for number, layer in enumerate(stack.layers):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(layer.weights, f"{name}_l0").copy_(getattr(peer, f"{name}_l{number}"))
    results = []
    for model in (peer, stack):
        x = _normal(BATCH, TIME, INPUT).requires_grad_()
        outputs, state = model(x) if model is peer else model(x, written_out=written_out)
        (outputs * _normal(BATCH, TIME, DIM, seed=1)).sum().backward()
        if model is peer:
            hidden = state[0] if kind == "lstm" else state
            states = list(hidden) + (list(state[1]) if kind == "lstm" else [])
            gradients = [
                getattr(peer, f"{name}_l{n}").grad
                for n in (0, 1)
                for name in ("weight_ih", "weight_hh")
            ]
        else:
            states = [part[0] for part in state] + (
                [part[1] for part in state] if kind == "lstm" else []
            )
            gradients = [
                getattr(stack.layers[n].weights, f"{name}_l0").grad
                for n in (0, 1)
                for name in ("weight_ih", "weight_hh")
            ]
        results.append([outputs, x.grad, *states, *gradients])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("written_out", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_padded_is_one_by_one(kind: CellKind, written_out: bool, reverse: bool) -> None:
    stack = RecurrentStack(kind, INPUT, [DIM, 13], reverse=reverse).double()
    x, lengths = _normal(BATCH, TIME, INPUT), torch.tensor([2, 7, 5])
    outputs, states = stack(x, lengths=lengths, written_out=written_out)
    for row, length in enumerate(lengths.tolist()):
        alone, last = stack(x[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0])
        assert not outputs[row, length:].any()
        for found, expected in zip(states, last, strict=True):
            for part, whole in zip(found, expected, strict=True):
                torch.testing.assert_close(part[row], whole[0])


@pytest.mark.parametrize("kind", KINDS)
def test_word_by_word_is_the_whole_sentence(kind: CellKind) -> None:
    """And a sentence cut in two, its state carried over, is the whole one."""
    stack = RecurrentStack(kind, INPUT, [DIM, 13]).double()
    x = _normal(BATCH, TIME, INPUT)
    whole, after = stack(x)
    states = stack.start(BATCH)
    for time in range(TIME):
        output, states = stack.step(x[:, time], states)
        torch.testing.assert_close(output, whole[:, time])
    first, carried = stack(x[:, :3])
    second, last = stack(x[:, 3:], carried)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(last, after)


def test_backwards_equals_torchs_second_direction() -> None:
    peer = nn.GRU(INPUT, DIM, batch_first=True, bidirectional=True).double()
    stack = RecurrentStack("gru", INPUT, [DIM], reverse=True).double()
    with torch.no_grad():
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            getattr(stack.layers[0].weights, name).copy_(getattr(peer, f"{name}_reverse"))
    x = _normal(BATCH, TIME, INPUT)
    torch.testing.assert_close(stack(x)[0], peer(x)[0][..., DIM:])


def test_gates_by_hand() -> None:
    """A closed input gate and an open forget gate keep the line as it is; zero weights of a GRU
    halve its state."""
    zeros = torch.zeros(4, 1)
    given = torch.tensor([[-1e4, 1e4, 3.0, 1e4]])
    h, c = CELLS["lstm"](given, (torch.zeros(1, 1), torch.tensor([[0.5]])), zeros, torch.zeros(4))
    assert c.item() == 0.5
    assert h.item() == pytest.approx(torch.tensor(0.5).tanh().item())
    (halved,) = CELLS["gru"](
        torch.zeros(1, 3), (torch.tensor([[0.8]]),), torch.zeros(3, 1), torch.zeros(3)
    )
    assert halved.item() == pytest.approx(0.4)
    (plain,) = CELLS["rnn"](
        torch.tensor([[0.3]]), (torch.tensor([[2.0]]),), torch.tensor([[0.5]]), torch.zeros(1)
    )
    assert plain.item() == pytest.approx(torch.tensor(1.3).tanh().item())


def test_dropped_recurrent_weight_takes_the_place_of_the_whole_one() -> None:
    layer = RecurrentLayer("lstm", INPUT, DIM).double()
    x, nothing = _normal(BATCH, TIME, INPUT), torch.zeros(4 * DIM, DIM, dtype=torch.float64)
    fused, _ = layer(x, recurrent_weight=nothing)
    written, _ = layer(x, recurrent_weight=nothing, written_out=True)
    torch.testing.assert_close(fused, written)
    assert not torch.allclose(fused, layer(x)[0])


def test_turning_around_twice_changes_nothing() -> None:
    x, lengths = _normal(BATCH, TIME, INPUT), torch.tensor([2, 7, 5])
    assert torch.equal(turn_around(turn_around(x, lengths), lengths), x)
    assert torch.equal(turn_around(x, lengths)[0, :2], x[0, :2].flip(0))
