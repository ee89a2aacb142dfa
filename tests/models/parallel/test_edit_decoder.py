"""The decoder of a model that edits: the model itself, placeholders, and what each head sees."""

import pytest
import torch
from torch import Tensor

from headwise.errors import SettingsError
from headwise.models.parallel.edit_decoder import EditDecoder
from headwise.models.parallel.inference import ParallelInference
from headwise.models.parallel.translator import ParallelTranslator
from headwise.text.tokenizer import BOS, EOS, PAD, UNKNOWN
from tests.models.parallel.test_translator import VOCAB, build

SOURCES = [[5, 6, 7], [8, 9, 10, 11, 12], [13]]
ROWS = [[BOS, 4, 5, EOS], [BOS, EOS], [BOS, 9, 4, 7, 6, EOS], [BOS, 21, EOS]]
SENTENCES = torch.tensor([2, 0, 1, 1])


def edited(**changes: object) -> ParallelTranslator:
    return build(length={"kind": "edited", "insertions": 6}, **changes)


def read(model: ParallelTranslator) -> EditDecoder:
    inference = ParallelInference(model)
    return inference.policies(inference.read_sources(SOURCES))


def padded(rows: list[list[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])


def states_alone(model: ParallelTranslator, source: list[int], row: list[int]) -> Tensor:
    """The model's own pass over one pair without padding; PAD where a token is not known."""
    tokens, target = torch.tensor([[*source, EOS]]), torch.tensor([row])
    hidden: Tensor = model(
        tokens,
        target,
        source_segment=torch.ones_like(tokens),
        target_segment=torch.ones_like(target),
        source_position=torch.arange(tokens.shape[1])[None],
        target_position=torch.arange(target.shape[1])[None],
    )
    return hidden[0]


def test_rows_of_a_batch_are_the_models_own_passes() -> None:
    model = edited()
    tokens, decoder = padded(ROWS), read(model)
    known = torch.ones_like(tokens).bool()
    known[2, [2, 3]] = False
    hidden = decoder.of(SENTENCES).states(tokens.masked_fill(~known, UNKNOWN), known)
    fill = decoder.fill(tokens.masked_fill(~known, UNKNOWN), known, SENTENCES)
    for number, row in enumerate(ROWS):
        shown = [t if known[number, i] else PAD for i, t in enumerate(row)]
        alone = states_alone(model, SOURCES[int(SENTENCES[number])], shown)
        torch.testing.assert_close(hidden[number, : len(row)], alone, rtol=1e-9, atol=1e-9)
        expected = model.logits(alone).float().log_softmax(-1)
        torch.testing.assert_close(fill[number, : len(row)], expected)
    assert fill.shape == (4, 6, VOCAB)


def test_decisions_are_probabilities_of_what_may_be_done() -> None:
    decoder, tokens = read(edited()), padded(ROWS)
    deletions = decoder.delete(tokens, SENTENCES)
    assert deletions.exp().sum(-1).allclose(torch.ones(tokens.shape))
    assert deletions[..., 1].isneginf().equal(tokens <= EOS), "ends and padding stay"
    insertions = decoder.insert(tokens, SENTENCES)
    assert insertions.shape == (4, 5, 7)
    assert insertions.exp().sum(-1).allclose(torch.ones(4, 5))


def test_maps_are_those_of_words_and_the_end() -> None:
    model = edited().float()
    source, target = torch.tensor([[5, 6, 7, EOS]]), torch.tensor([[BOS, 8, 9]])
    maps = model.attention_maps(source, target)
    assert maps["encoder.0.self"].shape == (1, 2, 4, 4)
    assert maps["decoder.0.self"].shape == (1, 2, 3, 3)
    assert maps["decoder.1.cross"].shape == (1, 2, 3, 4)
    assert maps["decoder.1.cross"].sum(-1).allclose(torch.ones(1, 2, 3))


@pytest.mark.parametrize("structure", ["ctc", "graph"])
def test_other_structures_are_refused(structure: str) -> None:
    with pytest.raises(
        SettingsError, match=r"kind=edited cannot .* set structure\.kind to indepen"
    ):
        edited(structure={"kind": structure})


def test_a_copy_of_the_source_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"inserts words anywhere; set input\.kind=mask"):
        edited(input={"kind": "copy"})
