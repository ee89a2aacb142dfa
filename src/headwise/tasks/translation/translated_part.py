"""Translates one split of a recipe's data (valid or test) and saves scores, time and translations.

    runs/mine/translations/test.de        the translations of the model
    runs/mine/translations/test.ref.de    the references

The translations are kept because a significance test of two systems compares them sentence by
sentence (evaluation/significance.py); their scores alone do not suffice.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.data.pairs.parallel_files import Pair
from headwise.data.pairs.preparation import read_part
from headwise.data.splits import Part
from headwise.decoding.choices import DecodingSettings
from headwise.evaluation.translation import TranslationScores, score_translations
from headwise.storage import write_text
from headwise.tasks.translation.line_translation import Line, TellUnlike, translate_lines
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator

FOLDER = "translations"


@dataclass(frozen=True)
class TranslatedPart:
    """A part of the data, translated and scored."""

    language: str
    hypotheses: tuple[str, ...]
    references: tuple[str, ...]
    scores: TranslationScores
    seconds: float
    """Of translating, reading and scoring aside."""

    def as_dict(self) -> dict[str, Any]:
        return {**self.scores.as_dict(), "seconds": round(self.seconds, 3)}

    def save(self, folder: Path, part: Part) -> None:
        folder.mkdir(exist_ok=True)
        write_text(
            folder / f"{part}.{self.language}", "".join(f"{line}\n" for line in self.hypotheses)
        )
        write_text(
            folder / f"{part}.ref.{self.language}", "".join(f"{line}\n" for line in self.references)
        )


def translate_part(translator: Translator, recipe: TranslationRecipe, part: Part) -> TranslatedPart:
    """Translate a part of the recipe's data as the recipe says, and score it with intervals."""
    return translate_pairs(translator, recipe, list(read_part(recipe.data, part)))


def translate_pairs(
    translator: Translator,
    recipe: TranslationRecipe,
    pairs: Sequence[Pair],
    *,
    decoding: DecodingSettings | None = None,
    num_resamples: int = 1000,
    unlike: TellUnlike = "counted",
) -> TranslatedPart:
    """Translate the sources of pairs and score against their targets."""
    began = time.perf_counter()
    lines = (Line(pair.source, pair.file, pair.line) for pair in pairs)
    hypotheses = [line.text for line in translate_lines(translator, lines, decoding, unlike=unlike)]
    seconds = time.perf_counter() - began
    return score_pairs(hypotheses, recipe, pairs, seconds=seconds, num_resamples=num_resamples)


def score_pairs(
    hypotheses: Sequence[str],
    recipe: TranslationRecipe,
    pairs: Sequence[Pair],
    *,
    seconds: float,
    num_resamples: int = 1000,
) -> TranslatedPart:
    """Score translations of the sources of pairs against their targets."""
    references = [pair.target for pair in pairs]
    scores = score_translations(
        hypotheses,
        references,
        language=recipe.data.target,
        pretokenized=recipe.evaluation.pretokenized,
        lowercase=recipe.evaluation.lowercase,
        num_resamples=num_resamples,
    )
    return TranslatedPart(recipe.data.target, tuple(hypotheses), tuple(references), scores, seconds)
