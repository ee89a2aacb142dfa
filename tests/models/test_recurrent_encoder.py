"""The recurrent encoder: torch's layers on one sentence, sentences of packed rows apart, and what
only both sides together tell."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.blocks.recurrent_cells import FUSED, CellKind
from headwise.errors import SettingsError
from headwise.models.labeller import LabelModel, build_labeller
from headwise.models.sentence_encoder import (
    RecurrentEncoderSettings,
    SentenceEncoderSettings,
    WordEncoderSettings,
    build_sentence_encoder,
)
from headwise.models.unpacking import unpack_sentences
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from headwise.training.freezing import freeze, rate_scales

CELLS: tuple[CellKind, ...] = ("rnn", "lstm", "gru")
VOCAB, DIM = 23, 14


def _labeller(settings: SentenceEncoderSettings, num_classes: int = 4) -> LabelModel:
    generator = torch_generator("sentence reader")
    model = build_labeller(
        settings,
        vocabulary_size=VOCAB,
        num_classes=num_classes,
        pooling="none",
        generator=generator,
    )
    with torch.no_grad():  # biases start at zero, which would hide a bias that is forgotten
        for name, parameter in model.named_parameters():
            if "bias" in name:
                nn.init.normal_(parameter, std=0.3, generator=generator)
    return model.eval()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_on_one_sentence_it_is_torchs(cell: CellKind, bidirectional: bool) -> None:
    settings = RecurrentEncoderSettings(dim=DIM, layers=2, cell=cell, bidirectional=bidirectional)
    encoder = _labeller(settings).encoder
    width = DIM // 2 if bidirectional else DIM
    torchs = FUSED[cell](DIM, width, num_layers=2, bidirectional=bidirectional, batch_first=True)
    held = dict(encoder.named_parameters())
    with torch.no_grad():
        for name, parameter in torchs.named_parameters():
            side = "backwards" if name.endswith("_reverse") else "forwards"
            part, number = name.removesuffix("_reverse").rsplit("_l", 1)
            parameter.copy_(held[f"reader.layers.{side}.{number}.weights.{part}_l0"])
    tokens = torch.tensor([[7, 9, 5, 11, 9]])
    found = encoder(tokens, segment=torch.ones_like(tokens), position=torch.arange(5)[None])
    expected, _ = torchs(held["embedding.table.weight"][tokens] * DIM**0.5)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("cell", CELLS)
def test_packed_rows_are_sentences_one_by_one_and_so_are_their_gradients(cell: CellKind) -> None:
    model = _labeller(RecurrentEncoderSettings(dim=DIM, layers=2, cell=cell)).double()
    sentences = [(7, 9, 11, 5), (4, 13, 9), (6,), (8, 8, 10, 5, 4)]
    packed = torch.tensor([[7, 9, 11, 5, 4, 13, 9, 0], [6, 8, 8, 10, 5, 4, 0, 0], [0] * 8])
    segment = torch.tensor([[1] * 4 + [2] * 3 + [0], [1] + [2] * 5 + [0] * 2, [0] * 8])
    position = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 0], [0, 0, 1, 2, 3, 4, 0, 0], [0] * 8])
    together = model(packed, segment=segment, position=position)[segment > 0]
    alone = torch.cat([_read(model, torch.tensor([words]))[0] for words in sentences])
    torch.testing.assert_close(together, alone)
    weights = [weight for name, weight in model.named_parameters() if "reader" in name]
    for one, other in zip(
        *(torch.autograd.grad(x.square().sum(), weights) for x in (together, alone)), strict=True
    ):
        torch.testing.assert_close(one, other)


def _read(model: LabelModel, tokens: Tensor) -> Tensor:
    position = torch.arange(tokens.shape[1]).expand_as(tokens)
    return model(tokens, segment=torch.ones_like(tokens), position=position)


def test_filling_gives_zeros_and_says_nothing() -> None:
    encoder = _labeller(RecurrentEncoderSettings(dim=DIM)).encoder
    nothing = torch.zeros(2, 5, dtype=torch.long)
    assert not encoder(nothing, segment=nothing, position=nothing).any()
    tokens, segment = torch.tensor([[7, 9, 0, 0]]), torch.tensor([[1, 1, 0, 0]])
    position = torch.tensor([[0, 1, 0, 0]])
    found = encoder(tokens, segment=segment, position=position)
    assert not found[0, 2:].any()
    other = encoder(torch.tensor([[7, 9, 13, 17]]), segment=segment, position=position)
    torch.testing.assert_close(found, other)


def test_sentences_are_laid_out_and_found_again() -> None:
    segment = torch.tensor([[1, 1, 2, 0], [1, 1, 1, 1]])
    position = torch.tensor([[0, 1, 0, 0], [0, 1, 2, 3]])
    x = torch.arange(1.0, 9.0).view(2, 4, 1)
    sentences = unpack_sentences(segment, position)
    laid = sentences.lay(x)
    assert laid[..., 0].tolist() == [[1, 2, 0, 0], [3, 0, 0, 0], [5, 6, 7, 8]]
    assert sentences.length.tolist() == [2, 1, 4]
    torch.testing.assert_close(sentences.gather_back(laid), x * (segment > 0)[..., None])


def _both_ends(num_sentences: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Six words; the class of each of them is told by the first and the last together."""
    ends = torch.randint(2, (num_sentences, 2), generator=generator)
    tokens = torch.randint(8, VOCAB, (num_sentences, 6), generator=generator)
    tokens[:, 0], tokens[:, -1] = 4 + ends[:, 0], 6 + ends[:, 1]
    return tokens, (2 * ends[:, 0] + ends[:, 1])[:, None].expand(-1, 6)


def _learn(settings: SentenceEncoderSettings, steps: int) -> float:
    """Share of the inner words of new sentences that are named right."""
    model = _labeller(settings).train()
    generator = torch_generator("both ends")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        tokens, classes = _both_ends(64, generator)
        loss = nn.functional.cross_entropy(_read(model, tokens).flatten(0, 1), classes.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tokens, classes = _both_ends(200, generator)
    return float((_read(model.eval(), tokens).argmax(-1) == classes)[:, 1:-1].float().mean())


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_learns_what_both_sides_tell(cell: CellKind) -> None:
    quiet: Any = {"embedding": 0.0, "residual": 0.0, "hidden": 0.0}
    assert _learn(RecurrentEncoderSettings(dim=16, layers=1, cell=cell, dropout=quiet), 60) > 0.99


def test_one_word_or_one_side_does_not_tell() -> None:
    quiet: Any = {"embedding": 0.0, "residual": 0.0, "hidden": 0.0}
    assert _learn(WordEncoderSettings(dim=16, dropout=quiet), 60) < 0.4
    assert (
        _learn(RecurrentEncoderSettings(dim=16, layers=1, bidirectional=False, dropout=quiet), 60)
        < 0.7
    )


def test_layers_are_numbered_for_freezing_and_rates() -> None:
    model = _labeller(RecurrentEncoderSettings(dim=DIM, layers=3))
    frozen = freeze(model, ["layers 0-1"])
    assert {name.split(".weights.")[0] for name in frozen} == {
        f"encoder.reader.layers.{side}.{number}"
        for side in ("forwards", "backwards")
        for number in (0, 1)
    }
    scales = rate_scales(model, 0.5)
    assert scales["encoder.embedding.table.weight"] == 0.5**4
    assert scales["encoder.reader.layers.backwards.2.weights.weight_hh_l0"] == 0.5
    assert scales["output.weight"] == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cell": "transformer"}, r"cell.*'rnn', 'lstm' or 'gru'"),
        ({"layers": 0}, r"layers.*at least 1, not 0"),
        ({"dim": 15}, r"dim.*multiple of 2"),
        ({"heads": 4}, r"heads"),
    ],
)
def test_bad_settings(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        check_settings(RecurrentEncoderSettings, given)
    assert str(caught.value).count("\n") == 1, "one problem, one line"


def test_letters_pairs_and_hidden_words_are_those_of_the_other_rungs() -> None:
    encoder = build_sentence_encoder(
        RecurrentEncoderSettings(letters=7, pairs=5, dim=DIM), vocabulary_size=VOCAB
    )
    assert {name.split(".")[0] for name, _ in encoder.named_parameters()} == {
        "embedding",
        "letters",
        "pairs",
        "reader",
    }
