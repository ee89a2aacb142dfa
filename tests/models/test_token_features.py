"""What is added to a word's vector: the formulas, and that it ends with the sentence."""

import math

import pytest
import torch

from headwise.models.labeller import build_labeller
from headwise.models.sentence_encoder import TransformerEncoderSettings, WordEncoderSettings
from headwise.models.token_features import HalfEmbedding, LetterEmbedding, PairEmbedding
from headwise.randomness import torch_generator


def filled(rows: int, dim: int) -> PairEmbedding:
    pairs = PairEmbedding(rows, dim)
    torch.nn.init.normal_(pairs.together.weight, generator=torch_generator("pairs"))
    return pairs


def test_a_pair_has_the_row_of_both_words_and_their_order() -> None:
    pairs = filled(997, 5)
    tokens = torch.tensor([[7, 8, 7, 8, 8, 9]])
    position = torch.tensor([[0, 1, 2, 3, 0, 1]])
    found = pairs(tokens, position)[0]
    previous = [0, 7, 8, 7, 0, 8]
    for place, (before, word) in enumerate(zip(previous, tokens[0].tolist(), strict=True)):
        row = (before * 1_000_003 + word * 7_919) % 997
        torch.testing.assert_close(found[place], pairs.together.weight[row] * math.sqrt(5))
    assert torch.equal(found[1], found[3])
    assert not torch.equal(found[1], found[2])


@pytest.mark.parametrize(
    "settings",
    [
        WordEncoderSettings(dim=12, pairs=97),
        TransformerEncoderSettings(dim=12, heads=3, layers=1, pairs=97),
    ],
)
def test_packed_rows_with_pairs_are_sentences_one_by_one(
    settings: WordEncoderSettings | TransformerEncoderSettings,
) -> None:
    generator = torch_generator("labeller")
    model = build_labeller(
        settings, vocabulary_size=23, num_classes=5, pooling="mean", generator=generator
    ).eval()
    torch.nn.init.normal_(model.encoder.pairs.together.weight, generator=generator)
    packed = model(
        torch.tensor([[7, 9, 11, 5, 4, 13, 9, 0]]),
        segment=torch.tensor([[1] * 4 + [2] * 3 + [0]]),
        position=torch.tensor([[0, 1, 2, 3, 0, 1, 2, 0]]),
    )
    alone = model(
        torch.tensor([[4, 13, 9]]),
        segment=torch.ones(1, 3, dtype=torch.long),
        position=torch.arange(3)[None],
    )
    torch.testing.assert_close(packed[:, 4:7], alone, rtol=1e-5, atol=1e-6)


def test_letters_are_left_out_of_a_share_of_the_words_while_training() -> None:
    letters = LetterEmbedding(7, 5, 0.9)
    torch.nn.init.ones_(letters.endings.weight)
    affixes = torch.ones(3, 61, 2, dtype=torch.long)
    assert (letters(affixes)[..., 0] != 0).float().mean() < 0.3
    assert (letters.eval()(affixes) != 0).all()


def test_a_hidden_word_takes_its_pair_along() -> None:
    settings = WordEncoderSettings(
        dim=12, pairs=97, word_dropout=0.9, dropout={"embedding": 0.0, "residual": 0.0}
    )  # type: ignore[arg-type]
    model = build_labeller(
        settings,
        vocabulary_size=23,
        num_classes=5,
        pooling="none",
        generator=torch_generator("labeller"),
    )
    torch.nn.init.normal_(model.encoder.pairs.together.weight, generator=torch_generator("pairs"))
    tokens, length = torch.arange(4, 22)[None], 18
    rows = {
        "segment": torch.ones(1, length, dtype=torch.long),
        "position": torch.arange(length)[None],
    }
    unknown = model.output(model.encoder.embedding.table.weight[3] * math.sqrt(12))
    hidden = (model.train()(tokens, **rows)[0] - unknown).abs().amax(-1).lt(1e-6).sum()
    assert 8 < hidden < length


def test_the_second_sentence_of_a_pair_begins_at_an_inner_start() -> None:
    halves = HalfEmbedding(5)
    tokens = torch.tensor([[1, 7, 8, 1, 9, 1, 7, 1, 8, 0]])
    position = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3, 0]])
    found = halves(tokens, position)[0]
    second = [3, 4, 7, 8]
    for place in range(10):
        assert torch.equal(found[place], halves.halves.weight[int(place in second)])
