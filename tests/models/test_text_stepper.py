"""One token at a time = the whole text at once, for every network; reordering; writing on."""

from typing import Any

import pytest
import torch

from headwise.models.choices import DecoderOnlySettings, LanguageNetwork, build_language_model
from headwise.models.neural_ngram import NeuralNgramSettings
from headwise.models.recurrent.language_model import RecurrentLanguageModel, RecurrentSettings
from headwise.models.text_stepper import TextStepper
from headwise.randomness import torch_generator

VOCAB = 23
NETWORKS = {
    "neural_ngram": NeuralNgramSettings(order=4, dim=5, hidden=7),
    "recurrent": RecurrentSettings(dim=5, hidden=7),
    "gpt": DecoderOnlySettings(dim=8, layers=2, heads=2),
}


def _network(kind: str) -> LanguageNetwork:
    return build_language_model(NETWORKS[kind], size=VOCAB, generator=torch_generator(kind)).eval()


def _whole(network: LanguageNetwork, tokens: list[list[int]]) -> torch.Tensor:
    found: Any = network(torch.tensor(tokens))
    hidden = found[0] if isinstance(network, RecurrentLanguageModel) else found
    possible = network.output(hidden)[..., 2:].log_softmax(-1)  # <pad> and <s> are never predicted
    return torch.nn.functional.pad(possible, (2, 0), value=-torch.inf)


@pytest.mark.parametrize("kind", NETWORKS)
def test_cached_is_uncached(kind: str) -> None:
    network = _network(kind)
    stepper = TextStepper(network)
    beginnings, rest = [[1, 5, 6], [1, 8, 9]], [[7, 11, 4], [13, 5, 21]]
    whole = _whole(network, [one + more for one, more in zip(beginnings, rest, strict=True)])
    state = stepper.start(beginnings, width=1, max_length=4)
    # The search's own beginning is not read.
    scores, state = stepper.step(state, torch.tensor([1, 1]))
    torch.testing.assert_close(scores, whole[:, 2])
    for place in range(3):
        scores, state = stepper.step(state, torch.tensor([row[place] for row in rest]))
        torch.testing.assert_close(scores, whole[:, 3 + place])


@pytest.mark.parametrize("kind", NETWORKS)
def test_rows_follow_the_search(kind: str) -> None:
    network = _network(kind)
    stepper = TextStepper(network)
    state = stepper.start([[1, 5], [1, 6]], width=2, max_length=3)
    _, state = stepper.step(state, torch.ones(4, dtype=torch.long))
    _, state = stepper.step(state, torch.tensor([7, 8, 9, 10]))
    state = stepper.reorder(state, torch.tensor([3, 2]))
    scores, _ = stepper.step(state, torch.tensor([11, 12]))
    torch.testing.assert_close(scores, _whole(network, [[1, 6, 10, 11], [1, 6, 9, 12]])[:, -1])
