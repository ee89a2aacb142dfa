"""ELMo: the LSTM's equations written out, no word seen from the wrong side, packed rows = sentences
one by one."""

import pytest
import torch
from torch import Tensor

from headwise.errors import SettingsError
from headwise.models.elmo import DirectedLayer, ElmoEncoder, build_bidirectional
from headwise.models.sentence_encoder import ElmoSettings
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from headwise.text.word_characters import BEGIN_WORD, END_WORD, letters_of
from tests.blocks.filled import fill

SETTINGS = ElmoSettings(dim=14, hidden=11, layers=2, letter_dim=3, filters=(2, 3, 5), highways=1)
SENTENCES = [["the", "bank", "of", "the", "river"], ["a", "bank", "lends"], ["bank"]]


def _encoder() -> ElmoEncoder:
    return fill(ElmoEncoder(SETTINGS).double(), "elmo", 0.4).eval()


def _read(encoder: ElmoEncoder, sentences: list[list[str]]) -> list[Tensor]:
    """Layers of padded sentences, each word spelled by itself."""
    width = max(map(len, sentences)) + 2
    spelled = [BEGIN_WORD, END_WORD]
    rows = torch.ones(len(sentences), width, dtype=torch.long)
    for row, sentence in enumerate(sentences):
        rows[row, 0] = 0
        for place, word in enumerate(sentence, start=1):
            spelled.append(letters_of(word))
            rows[row, place] = len(spelled) - 1
    lengths = torch.tensor([len(sentence) + 2 for sentence in sentences])
    return encoder.reader(torch.tensor(spelled), rows, lengths)


@pytest.mark.parametrize("hidden", [11, 7])
@torch.no_grad()
def test_a_layer_is_the_equations(hidden: int) -> None:
    """h' = P (o ⊙ tanh c'), which is fed back; without a projection P is nothing."""
    layer = fill(DirectedLayer(7, hidden, reverse=False, residual=True).double(), "layer")
    x = torch.randn(1, 5, 7, dtype=torch.float64, generator=torch_generator("x"))
    weights = layer.weights
    h, c = torch.zeros(7, dtype=torch.float64), torch.zeros(hidden, dtype=torch.float64)
    wanted = []
    for given in x[0]:
        gates = (
            weights.weight_ih_l0 @ given
            + weights.bias_ih_l0
            + weights.weight_hh_l0 @ h
            + weights.bias_hh_l0
        )
        i, f, g, o = gates.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        h = weights.weight_hr_l0 @ h if hidden > 7 else h
        wanted.append(h + given)
    torch.testing.assert_close(layer(x, torch.tensor([5]))[0], torch.stack(wanted))
    back = DirectedLayer(7, hidden, reverse=True, residual=True).double()
    back.load_state_dict(layer.state_dict())
    torch.testing.assert_close(back(x.flip(1), torch.tensor([5])).flip(1)[0], torch.stack(wanted))


@torch.no_grad()
def test_the_forward_half_is_an_independent_stack_of_lstms() -> None:
    encoder = _encoder()
    letters = torch.tensor([BEGIN_WORD, *map(letters_of, SENTENCES[0]), END_WORD])
    x = encoder.reader.characters(letters)[None]
    for number, layer in enumerate(encoder.reader.ahead):
        own = torch.nn.LSTM(7, 11, proj_size=7, batch_first=True).double()
        own.load_state_dict(layer.weights.state_dict())
        x = own(x)[0] + (x if number > 0 else 0)
    found = _read(encoder, SENTENCES)[-1][0, :, :7]
    torch.testing.assert_close(found, x[0])


@pytest.mark.parametrize("layer", [1, 2])
@torch.no_grad()
def test_no_half_sees_the_words_it_must_predict(layer: int) -> None:
    """A later word changes no forward state before it, an earlier one no backward state after it;
    and both do change theirs."""
    encoder = _encoder()
    before = _read(encoder, [["the", "bank", "of", "the", "river"]])[layer][0]
    for place, changed in (
        (3, ["the", "bank", "of", "a", "river"]),
        (1, ["the", "side", "of", "the", "river"]),
    ):
        after = _read(encoder, [changed])[layer][0]
        at = place + 1  # <s> stands first
        assert torch.equal(before[:at, :7], after[:at, :7])
        assert torch.equal(before[at + 1 :, 7:], after[at + 1 :, 7:])
        assert (before[at:, :7] != after[at:, :7]).any(1).all()
        assert (before[: at + 1, 7:] != after[: at + 1, 7:]).any(1).all()


@torch.no_grad()
def test_the_first_layer_does_not_know_the_sentence_and_the_others_do() -> None:
    layers = _read(_encoder(), SENTENCES)
    assert torch.equal(layers[0][0, 2], layers[0][1, 2])
    for layer in layers[1:]:
        assert not torch.allclose(layer[0, 2], layer[1, 2], atol=1e-3)


@pytest.mark.parametrize("begun", [False, True])
@torch.no_grad()
def test_packed_rows_are_sentences_one_by_one(begun: bool) -> None:
    """Whether a row has <s> itself or not, a sentence is read between <s> and </s>."""
    encoder = _encoder()
    segment = torch.zeros(2, 13, dtype=torch.long)
    position, tokens = torch.zeros_like(segment), torch.zeros_like(segment)
    letters = torch.zeros(2, 13, len(BEGIN_WORD), dtype=torch.long)
    homes = []
    for row, numbers in enumerate(([0, 1], [2])):
        at = 1
        for segment_number, number in enumerate(numbers, start=1):
            spelled = [*([BEGIN_WORD] if begun else []), *map(letters_of, SENTENCES[number])]
            here = slice(at, at + len(spelled))
            segment[row, here], letters[row, here] = segment_number, torch.tensor(spelled)
            position[row, here] = torch.arange(len(spelled))
            tokens[row, here] = 9
            if begun:
                tokens[row, at] = 1
            homes.append((row, here))
            at += len(spelled)
    found = encoder(tokens, segment=segment, position=position, affixes=letters)
    for (row, here), sentence in zip(homes, SENTENCES, strict=True):
        alone = encoder.mixture([layer[0] for layer in _read(encoder, [sentence])])
        torch.testing.assert_close(found[row, here], alone[0 if begun else 1 : -1])
    assert (found[segment == 0] == 0).all()
    nothing = encoder(
        tokens,
        segment=torch.zeros_like(segment),
        position=torch.zeros_like(segment),
        affixes=torch.zeros_like(letters),
    )
    assert (nothing == 0).all()


def test_both_directions_share_letters_and_softmax_and_nothing_else() -> None:
    model = build_bidirectional(SETTINGS, vocabulary_size=17, generator=torch_generator("model"))
    letters, words = (
        torch.tensor([BEGIN_WORD, letters_of("cat"), END_WORD]),
        torch.tensor([[0, 1, 2]]),
    )
    ahead, back = model(letters, words, torch.tensor([3]))
    for half, own, other in ((ahead, "ahead", "back"), (back, "back", "ahead")):
        model.zero_grad()
        model.output(half).square().sum().backward(retain_graph=True)
        moved = {
            name
            for name, weight in model.named_parameters()
            if weight.grad is not None and weight.grad.any()
        }
        assert "output.weight" in moved
        assert "encoder.reader.characters.table.weight" in moved
        assert f"encoder.reader.{own}.0.weights.weight_ih_l0" in moved
        assert not any(f".{other}." in name for name in moved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 63}, "narrower than dim/2=64"),
        ({"letters": 9}, "letters is set"),
        ({"word_dropout": 0.1}, "word_dropout is set"),
    ],
)
def test_what_does_not_fit_together(change: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_settings(ElmoSettings, change)
