"""Which models can be exported, by the name of the output; this file does not load torch."""

from dataclasses import replace
from pathlib import Path

from headwise.models.ngram.arpa import is_arpa
from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.language.form import LANGUAGE_MODELS
from headwise.tasks.translation.form import TRANSLATORS

INTO_DIRECTORIES = replace(
    TRANSLATORS,
    why_others=(
        "a directory is for CTranslate2; n-grams go to model.arpa",
        "目录用于 CTranslate2；n 元语法请写成 model.arpa",
    ),
)


def exported_models(output: Path) -> AcceptedModels:
    """Language models for an ARPA file (n-grams alone can be written), translators otherwise."""
    return LANGUAGE_MODELS if is_arpa(output) else INTO_DIRECTORIES
