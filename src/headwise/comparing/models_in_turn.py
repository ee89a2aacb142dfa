"""Loads the translators that a comparison is given one after the other, with the sentences on which
all are compared and a name that tells each from the others.

Only autoregressive translators of one direction, the same for all, are given out: `headwise
exposure` and `headwise compare learning` ask what a model does after its own words.

Tested through both commands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.comparing.compared_pairs import read_test_pairs
from headwise.comparing.parallel_decodings import is_autoregressive
from headwise.comparing.parallel_table import default_name
from headwise.data.pairs.parallel_files import Pair
from headwise.errors import UsageError
from headwise.tasks.translation.bundle import require_one_direction
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator

if TYPE_CHECKING:
    from headwise.comparing.exposure_request import ExposureRequest
    from headwise.comparing.learning_request import LearningRequest


@dataclass(frozen=True)
class ModelInTurn:
    """One of the models that are compared."""

    name: str
    path: Path
    translator: Translator
    recipe: TranslationRecipe
    """Of the first model: it says how all are scored."""
    pairs: Sequence[Pair]
    test: str
    """Where the sentences come from."""


def models_in_turn(request: "ExposureRequest | LearningRequest") -> Iterator[ModelInTurn]:
    """Each model when it is its turn; only one is held at a time."""
    first: TranslationRecipe | None = None
    pairs: list[Pair] = []
    test, names = "", set[str]()
    for path in request.models:
        translator = Translator.load(path, device=request.device, precision=request.precision)
        require_one_direction(translator.recipe.data, path)
        check_steps(translator, str(path))
        if first is None:
            first = translator.recipe
            pairs, test = read_test_pairs(
                request.source, request.reference, first=first, model=path
            )
        check_languages(first, translator.recipe, path)
        name = default_name(path)
        name = str(path) if name in names else name
        names.add(name)
        yield ModelInTurn(name, path, translator, first, pairs, test)


def check_languages(first: TranslationRecipe, other: TranslationRecipe, path: Path) -> None:
    """Refuse a model of other languages than the first."""
    wanted, given = first.data, other.data
    if (wanted.source, wanted.target) != (given.source, given.target):
        raise UsageError(
            f"{path} translates {given.source} → {given.target}, but the first model translates "
            f"{wanted.source} → {wanted.target}; compare models of the same two languages",
            f"{path} 翻译 {given.source} → {given.target}，而第一个模型翻译 "
            f"{wanted.source} → {wanted.target}；请比较语言方向相同的模型",
        )


def check_steps(translator: Translator, name: str) -> None:
    """Refuse a model that never reads what it wrote."""
    if not is_autoregressive(translator.recipe):
        raise UsageError(
            f"{name} writes all words at once (model.kind={translator.recipe.model.kind}): it "
            "never reads its own words, so a wrong one costs nothing; give translators with "
            "model.kind=encoder_decoder or recurrent",
            f"{name} 同时写出所有词（model.kind={translator.recipe.model.kind}）："
            "它从不读取自己写出的词，错词没有代价；请给出 model.kind=encoder_decoder 或 recurrent "
            "的翻译模型",
        )
