"""How translators are compared: BLEU and chrF of the test set, from the translations of each run.

The settings of `evaluation` decide what BLEU counts (tokens, case), so all variants share them.
Tested with real runs in tests/comparing.
"""

from functools import cache
from pathlib import Path
from typing import Any

from headwise.data.splits import Part
from headwise.errors import SettingsError
from headwise.evaluation.metric_statistics import SentenceStatistics
from headwise.evaluation.translation import build_metrics
from headwise.tasks.comparison_metrics import ComparisonMetrics, declared_metric
from headwise.tasks.text_input import read_text_lines
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translated_part import FOLDER

KEYS = ("bleu", "chrf")
PARTS: tuple[Part, ...] = ("valid", "test")


def translation_comparison_metrics(recipe: TranslationRecipe) -> ComparisonMetrics:
    """BLEU decides; a run keeps its translations and their references."""
    data, evaluation = recipe.data, recipe.evaluation
    if data.directions:
        raise SettingsError(
            "headwise compare needs translators of one direction, but the recipe has "
            f"data.directions ({data.in_arrows}); set data.directions=[] with data.source and "
            "data.target, or compare with headwise evaluate --to … --against",
            "headwise compare 需要单一方向的翻译模型，而配方有 data.directions"
            f"（{data.in_arrows}）；请设 data.directions=[] 并给出 data.source 与 data.target，"
            "或用 headwise evaluate --to … --against 比较",
        )

    @cache
    def metrics() -> dict[str, Any]:
        return build_metrics(
            data.target, pretokenized=evaluation.pretokenized, lowercase=evaluation.lowercase
        )

    def read(directory: Path) -> dict[str, SentenceStatistics]:
        folder = directory / FOLDER
        hypotheses = list(read_text_lines(folder / f"test.{data.target}"))
        references = list(read_text_lines(folder / f"test.ref.{data.target}"))
        return {
            key: SentenceStatistics.of(metrics()[key], hypotheses, [references]) for key in KEYS
        }

    return ComparisonMetrics(
        metrics=tuple(declared_metric(recipe, key) for key in KEYS),
        question={
            "data.test": data.test,
            "data.source": data.source,
            "data.target": data.target,
            "evaluation.pretokenized": evaluation.pretokenized,
            "evaluation.lowercase": evaluation.lowercase,
        },
        read=read,
        is_scored=bool(data.corpora("test")),
        results=tuple(part for part in PARTS if data.corpora(part)),
        unit="sentences",
        signature=lambda: str(metrics()["bleu"].get_signature()),
    )
