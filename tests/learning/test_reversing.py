"""Reversing strings: what cannot be guessed must be looked up, or pass through one vector.
Attention learns it, one vector does not keep up."""

import pytest
import torch
import torch.nn.functional as F

from headwise.decoding.choices import decode
from headwise.decoding.search.greedy import GreedySettings
from headwise.models.choices import build_model
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.models.steppers import make_stepper
from headwise.models.translation_model import TranslationModel
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from tests.reference.sentences import BOS, EOS, padded_batch

NUM_SPECIAL, NUM_SYMBOLS = 4, 20


def draw(count: int, length: int, generator: torch.Generator) -> list[list[int]]:
    return torch.randint(
        NUM_SPECIAL, NUM_SPECIAL + NUM_SYMBOLS, (count, length), generator=generator
    ).tolist()


def make(attention: dict, *, dim: int, cell: str) -> TranslationModel:
    data = {
        "cell": cell,
        "dim": dim,
        "layers": 1,
        "attention": attention,
        "dropout": {"embedding": 0.0, "hidden": 0.0},
        "embedding": {"tied": "none"},
    }
    size = NUM_SPECIAL + NUM_SYMBOLS
    settings = check_settings(RecurrentTranslatorSettings, data)
    return build_model(
        settings,
        source_size=size,
        target_size=size,
        generator=torch_generator("reversing", str(data)),
    )


def reversed_share(model: TranslationModel, *, length: int, steps: int, rate: float) -> float:
    """Train on fresh strings at every step; the share of new strings reversed without a fault,
    writing freely."""
    generator = torch_generator("reversing", "strings", length)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / 50, 1 - step / steps)
        strings = draw(64, length, generator)
        batch = padded_batch([([*words, EOS], [BOS, *words[::-1]]) for words in strings])
        expected = torch.tensor([[*words[::-1], EOS] for words in strings])
        loss = F.cross_entropy(batch.logits(model).flatten(0, 1), expected.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    fresh = draw(300, length, torch_generator("reversing", "new strings"))
    found = decode(make_stepper(model), fresh, GreedySettings(max_length=length + 3))
    return sum(
        list(one.best.tokens) == words[::-1] for words, one in zip(fresh, found, strict=True)
    ) / len(fresh)


@pytest.mark.parametrize(
    ("kind", "cell"), [pytest.param("luong", "lstm", marks=pytest.mark.prove), ("bahdanau", "gru")]
)
def test_attention_learns_to_reverse_short_strings(kind: str, cell: str) -> None:
    model = make({"kind": kind}, dim=48, cell=cell)
    assert reversed_share(model, length=5, steps=150, rate=1e-2) >= 0.95


@pytest.mark.prove
def test_twenty_symbols_fit_through_attention_but_not_through_one_vector() -> None:
    shares = {
        kind: reversed_share(
            make({"kind": kind}, dim=128, cell="lstm"), length=20, steps=1500, rate=5e-3
        )
        for kind in ("none", "bahdanau", "luong")
    }
    assert shares["none"] < 0.60, shares
    assert shares["bahdanau"] > 0.98, shares
    assert shares["luong"] > 0.98, shares
