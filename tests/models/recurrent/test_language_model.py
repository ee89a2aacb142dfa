"""The recurrent language model: carried windows = the whole text, step = whole, ties, dropout where
it was published."""

import pytest
import torch
from pydantic import ValidationError

from headwise.blocks.dropout import drop
from headwise.blocks.recurrent_cells import CellKind
from headwise.models.choices import build_language_model
from headwise.models.recurrent.language_model import (
    Carrying,
    RecurrentDropout,
    RecurrentLanguageModel,
    RecurrentPenalty,
    RecurrentSettings,
)
from headwise.randomness import torch_generator

VOCAB, ROWS, TIME = 17, 3, 11


def _model(
    cell: CellKind = "lstm", *, tied: bool = False, dropout: RecurrentDropout | None = None
) -> RecurrentLanguageModel:
    settings = RecurrentSettings(
        cell=cell, dim=5, hidden=7, tied=tied, dropout=dropout or RecurrentDropout()
    )
    model = build_language_model(settings, size=VOCAB, generator=torch_generator("recurrent"))
    assert isinstance(model, RecurrentLanguageModel)
    return model.double()


@pytest.fixture
def tokens(generator: torch.Generator) -> torch.Tensor:
    return torch.randint(VOCAB, (ROWS, TIME), generator=generator)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_windows_and_steps_are_the_whole_text(cell: CellKind, tokens: torch.Tensor) -> None:
    model = _model(cell).eval()
    whole, _ = model(tokens)
    carrying = Carrying(model, ROWS).double()
    fresh = torch.ones(ROWS, dtype=torch.bool)
    windows = [carrying(tokens[:, :4], fresh), carrying(tokens[:, 4:], ~fresh)]
    torch.testing.assert_close(torch.cat(windows, dim=1), whole)
    torch.testing.assert_close(carrying(tokens, fresh), whole)  # a fresh row has forgotten
    states = model.start(ROWS)
    for time in range(TIME):
        hidden, states = model.step(tokens[:, time], states)
        torch.testing.assert_close(hidden, whole[:, time])


def test_gradients_stop_at_the_carried_state(tokens: torch.Tensor) -> None:
    carrying = Carrying(_model(), ROWS).double()
    fresh = torch.ones(ROWS, dtype=torch.bool)
    for flags in (fresh, ~fresh, ~fresh):
        carrying(
            tokens, flags
        ).sum().backward()  # a graph over two windows would be freed and refused
    assert not any(buffer.requires_grad for buffer in carrying.buffers())


def test_tied_weights_are_one(tokens: torch.Tensor) -> None:
    model = _model(tied=True)
    assert model.output.weight is model.table.weight
    assert model(tokens)[0].shape == (ROWS, TIME, 5)


@pytest.mark.parametrize("place", ["word", "embedding", "layer", "output", "recurrent"])
def test_dropout_is_for_training_only(place: str, tokens: torch.Tensor) -> None:
    model = _model(dropout=RecurrentDropout(**{place: 0.5}, locked=True))
    assert not torch.equal(model(tokens)[0], model(tokens)[0])
    model.eval()
    assert torch.equal(model(tokens)[0], model(tokens)[0])


def test_locked_dropout_keeps_its_places() -> None:
    dropped = drop(torch.ones(ROWS, TIME, 64), 0.5, training=True, shared=1)
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert 0 < (dropped == 0).sum() < dropped.numel()


def test_penalties_are_means_over_real_words() -> None:
    hidden = torch.tensor(
        [[[1.0, 3.0], [2.0, 0.0], [9.0, 9.0]], [[0.0, 2.0], [4.0, 2.0], [4.0, 4.0]]]
    )
    real = torch.tensor([[True, True, False], [True, True, True]])
    # Squares by word: 5, 2, 2, 10, 16. Squares of changes: 5 (by 1 and −3), then 8 and 2.
    assert RecurrentPenalty(size=2.0).of(hidden, real) == pytest.approx(2 * 35 / 5)
    assert RecurrentPenalty(change=3.0).of(hidden, real) == pytest.approx(3 * 15 / 3)
    assert RecurrentPenalty(size=1.0, change=1.0).of(hidden[:, :1], ~real[:, :1]) == 0


def test_a_penalty_of_changes_counts_no_dropout() -> None:
    dropout = RecurrentDropout(output=0.1)
    with pytest.raises(
        ValidationError, match="dropout that is drawn anew at every word is a change"
    ):
        RecurrentSettings(penalty=RecurrentPenalty(change=1.0), dropout=dropout)
    RecurrentSettings(
        penalty=RecurrentPenalty(change=1.0), dropout=dropout.model_copy(update={"locked": True})
    )
