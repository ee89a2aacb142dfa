"""The neural n-gram against its formula, its gradient, and sentences one by one."""

import pytest
import torch
from torch import nn

from headwise.models.choices import build_language_model
from headwise.models.neural_ngram import NeuralNgram, NeuralNgramSettings
from headwise.randomness import torch_generator

VOCAB = 13


def _model(*, direct: bool) -> NeuralNgram:
    settings = NeuralNgramSettings(order=3, dim=5, hidden=7, direct=direct)
    model = build_language_model(settings, size=VOCAB, generator=torch_generator("nnlm"))
    assert isinstance(model, NeuralNgram)
    return model.double()


def test_the_formula_by_hand() -> None:
    """Two words before, vectors of one number: y = b + U tanh(d + H x) + W x."""
    model = NeuralNgram(NeuralNgramSettings(order=3, dim=1, hidden=1, direct=True), size=4)
    with torch.no_grad():
        model.table.weight.copy_(torch.tensor([[0.0], [0.5], [2.0], [-1.0]]))
        model.hidden.weight.copy_(torch.tensor([[0.3, -0.2]]))
        model.hidden.bias.fill_(0.1)
        model.output.weight.copy_(torch.tensor([[1.0, 0.5, 0.25]] * 4))
        model.output.bias.copy_(torch.arange(4.0))
    y = model.output(model(torch.tensor([[2, 3]])))
    inner = torch.tensor(
        [0.3 * 2 - 0.2 * 0.5 + 0.1, 0.3 * -1 - 0.2 * 2 + 0.1]
    ).tanh()  # before the first word: <s>, id 1
    links = torch.tensor([0.5 * 2 + 0.25 * 0.5, 0.5 * -1 + 0.25 * 2])
    torch.testing.assert_close(y[0, :, 0], inner + links)
    torch.testing.assert_close(y[0, :, 3], inner + links + 3)


@pytest.mark.parametrize("direct", [True, False])
def test_the_gradient_is_that_of_differences(direct: bool) -> None:
    model = _model(direct=direct)
    tokens, targets = torch.tensor([[1, 5, 7, 5]]), torch.tensor([5, 7, 5, 2])

    def loss(weight: torch.Tensor) -> torch.Tensor:
        hidden = torch.func.functional_call(model, {"hidden.weight": weight}, (tokens,))
        return nn.functional.cross_entropy(model.output(hidden)[0], targets)

    assert torch.autograd.gradcheck(loss, (model.hidden.weight.detach().clone().requires_grad_(),))


def test_packed_rows_are_sentences_one_by_one() -> None:
    model = _model(direct=True)
    first, second = [1, 4, 5, 6], [1, 7, 8]
    row = torch.tensor([[*first, *second, 0]])
    position = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 0]])
    packed = model(row, position=position)
    torch.testing.assert_close(packed[:, :4], model(torch.tensor([first])))
    torch.testing.assert_close(packed[:, 4:7], model(torch.tensor([second])))


def test_what_is_further_back_does_not_matter() -> None:
    model = _model(direct=False)
    one, other = (model(torch.tensor([[word, 5, 6, 7]])) for word in (3, 9))
    assert torch.equal(one[:, 2:], other[:, 2:])
    assert not torch.equal(one[:, 1], other[:, 1])
