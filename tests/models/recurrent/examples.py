"""Recurrent translators small enough to be computed by hand, in double precision where asked."""

from typing import Any

import torch
from torch import nn

from headwise.models.choices import build_model
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.settings import check_settings

VOCAB, DIM = 17, 14

ATTENTIONS: dict[str, dict[str, Any]] = {
    "none": {"kind": "none"},
    "bahdanau": {"kind": "bahdanau", "score": {"kind": "additive", "hidden": 5}},
    "bahdanau_local": {
        "kind": "bahdanau",
        "score": {"kind": "dot"},
        "window": {"kind": "local_m", "half_width": 1},
    },
    "luong": {"kind": "luong"},
    "luong_unfed": {
        "kind": "luong",
        "input_feeding": False,
        "window": {"kind": "local_m", "half_width": 1},
    },
    "luong_predictive": {
        "kind": "luong",
        "score": {"kind": "location"},
        "window": {"kind": "local_p", "half_width": 2},
    },
}


def make(
    generator: torch.Generator,
    attention: str | dict[str, Any] = "luong",
    *,
    vocab: int = VOCAB,
    **changes: Any,
) -> RecurrentTranslator:
    data = {
        "dim": DIM,
        "layers": 2,
        "attention": ATTENTIONS[attention] if isinstance(attention, str) else attention,
        **changes,
    }
    settings = check_settings(RecurrentTranslatorSettings, data)
    model = build_model(settings, source_size=vocab, target_size=vocab, generator=generator)
    assert isinstance(model, RecurrentTranslator)
    with torch.no_grad():  # biases start at zero, which would hide a bias that is forgotten
        for name, parameter in model.named_parameters():
            if "bias" in name:
                nn.init.normal_(parameter, std=0.3, generator=generator)
    return model.eval()
