"""A translator of prime sizes, as a step to be watched."""

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.settings import check_settings
from headwise.tasks.planned_step import Subject
from headwise.tasks.translation.recipe import TranslationRecipe


def made_recipe(**training: object) -> TranslationRecipe:
    stack = {"layers": 2, "heads": 2}
    return check_settings(
        TranslationRecipe,
        {
            "data": {"source": "en", "target": "de", "train": "pocket:train", "row_tokens": 24},
            "text": {"size": 211},
            "model": {
                "dim": 22,
                "encoder": stack,
                "decoder": stack,
                "feed_forward": {"hidden": 37},
            },
            "training": {
                "batch_tokens": 5 * 24,
                "precision": "fp32",
                "compile": "off",
                "device": "cpu",
                **training,
            },
        },
    )


def made_subject(**training: object) -> Subject:
    return Subject.of(made_recipe(**training))


def with_content(
    subject: Subject, rows: int, watch: Callable[[Callable[[], Tensor], torch.nn.Module], None]
) -> None:
    """The same step on tensors with content."""
    with subject.step(rows, bf16=False)() as (module, loss):
        watch(loss, module)
