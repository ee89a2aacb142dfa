"""Agreement of a decoder along two targets: by hand, step by step, and where both are equal."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.models.choices import build_model
from headwise.models.steppers import make_stepper
from headwise.models.translation_model import TranslationModel
from headwise.settings import check_settings
from headwise.tasks.translation import forced_states
from headwise.tasks.translation.forced_states import (
    DecoderAgreement,
    compare_states,
    measure_agreement,
)
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import BOS

VOCAB = 19
SOURCES = [(4, 5, 6), (7,), (8, 9, 10, 4, 5)]
REFERENCES = [(7, 8, 9), (4, 4, 11, 12), (6,)]
WRITTEN = [(7, 8, 12, 9), (5,), (6, 13)]
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "kind": "encoder_decoder",
        "dim": 12,
        "encoder": {"layers": 1, "heads": 2},
        "decoder": {"layers": 1, "heads": 2},
    },
    "recurrent": {"kind": "recurrent", "dim": 14, "layers": 1},
}


@pytest.fixture(name="model", params=MODELS)
def _model(request: pytest.FixtureRequest) -> TranslationModel:
    data = {"source": "en", "target": "de", "train": "nowhere"}
    recipe = check_settings(TranslationRecipe, {"data": data, "model": MODELS[request.param]})
    generator = torch.Generator().manual_seed(5)
    model = build_model(recipe.model, source_size=VOCAB, target_size=VOCAB, generator=generator)
    return model.double().eval()


class TwoWords(nn.Module):
    """Logits are the states."""

    output = nn.Linear(3, 3)

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden


def test_distances_by_hand() -> None:
    right = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]]).log()
    own = torch.tensor([[0.2, 0.3, 0.5], [0.5, 0.4, 0.1]]).log()
    model: Any = TwoWords()
    agreement, distance, cosine = compare_states(model, right, own)
    assert agreement.tolist() == [0.0, 1.0]
    assert distance.tolist() == pytest.approx([0.3, 0.1])
    expected = (right[0] @ own[0] / right[0].norm() / own[0].norm()).item()
    assert cosine[0] == pytest.approx(expected)


def scores_along(model: TranslationModel, source: Any, target: Any) -> Tensor:
    stepper = make_stepper(model)
    state = stepper.start([source], width=1, max_length=20)
    found = []
    for token in (BOS, *target):
        scores, state = stepper.step(state, torch.tensor([token]))
        found.append(scores[0].clone())
    return torch.stack(found).exp()


def test_positions_equal_single_sentences_step_by_step(
    model: TranslationModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forced_states, "ROWS", 2)
    monkeypatch.setattr(forced_states, "MAX_LOGITS", 2 * VOCAB)
    found = measure_agreement(model, SOURCES, REFERENCES, WRITTEN, num_positions=3)
    assert found.num_sentences == (3, 3, 1)
    agreement: list[list[float]] = [[], [], []]
    distance: list[list[float]] = [[], [], []]
    for source, right, own in zip(SOURCES, REFERENCES, WRITTEN, strict=True):
        p, q = (scores_along(model, source, target) for target in (right, own))
        for place in range(min(len(p), len(q), 3)):
            agreement[place].append(float(p[place].argmax() == q[place].argmax()))
            distance[place].append((p[place] - q[place]).abs().sum().item() / 2)
    means = [sum(values) / len(values) for values in agreement]
    assert found.agreement == pytest.approx(means)
    means = [sum(values) / len(values) for values in distance]
    assert found.total_variation == pytest.approx(means, abs=1e-6)
    assert found.total_variation[0] == 0
    assert found.cosine[0] == pytest.approx(1)
    assert found.total_variation[1] > 0


def test_what_was_written_right_agrees_everywhere(model: TranslationModel) -> None:
    found = measure_agreement(model, SOURCES, REFERENCES, REFERENCES, num_positions=9)
    assert found.num_sentences == (3, 3, 2, 2, 1)
    assert found.agreement == (1.0,) * 5
    assert found.overall == pytest.approx((1, 0, 1))


def test_the_mean_of_all_positions_weighs_them_by_sentences() -> None:
    found = DecoderAgreement((3, 1), (1.0, 0.0), (0.0, 0.8), (1.0, 0.6))
    assert found.overall == pytest.approx((0.75, 0.2, 0.9))
    assert found.as_dict()["by_position"] == [
        {
            "position": 1,
            "sentences": 3,
            "agreement": 1.0,
            "total_variation": 0.0,
            "cosine": 1.0,
        },
        {
            "position": 2,
            "sentences": 1,
            "agreement": 0.0,
            "total_variation": 0.8,
            "cosine": 0.6,
        },
    ]
