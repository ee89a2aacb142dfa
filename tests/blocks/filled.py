"""Modules whose every weight is drawn, so that nothing that starts at 0 hides a mistake."""

from typing import TypeVar

import torch
from torch import nn

from headwise.randomness import torch_generator

Module = TypeVar("Module", bound=nn.Module)


def fill(module: Module, key: str, deviation: float = 0.5) -> Module:
    generator = torch_generator(key)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, deviation, generator=generator)
    return module
