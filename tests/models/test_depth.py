"""What depth does to the gradient at the very beginning (Xiong et al. 2020): nothing with the norm
after, less and less with it before."""

import pytest
import torch
import torch.nn.functional as F

from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.randomness import torch_generator
from headwise.settings import check_settings

VOCAB, ROWS, TIME, SEEDS = 1009, 8, 32, 5


def last_gradient(place: str, num_layers: int, key: int) -> float:
    """Of the last layer's second feed-forward matrix, random words to be guessed."""
    generator = torch_generator("depth", str(key))
    data = {
        "dim": 128,
        "encoder": {"layers": num_layers, "heads": 8},
        "decoder": {"layers": 1, "heads": 8},
        "embedding": {"tied": "none", "scaled": False},
        "norm": {"kind": "layer", "place": place},
        "dropout": {"residual": 0.0, "embedding": 0.0},
    }
    settings = check_settings(EncoderDecoderSettings, data)
    model = build_model(settings, source_size=VOCAB, target_size=VOCAB, generator=generator)
    words, answers = torch.randint(0, VOCAB, (2, ROWS, TIME), generator=generator)
    position = torch.arange(TIME).expand(ROWS, TIME)
    hidden = model.encode(words, segment=torch.ones_like(words), position=position)
    F.cross_entropy(model.logits(hidden).flatten(0, 1), answers.flatten()).backward()
    return model.encoder[-1].feed_forward.narrow.weight.grad.norm().item()


@pytest.mark.parametrize(("place", "least", "most"), [("after", 0.8, 1.2), ("before", 1.7, 3.0)])
def test_two_layers_against_twelve(place: str, least: float, most: float) -> None:
    shallow, deep = (
        sum(last_gradient(place, depth, key) for key in range(SEEDS)) for depth in (2, 12)
    )
    assert least <= shallow / deep <= most
