"""Compares translators that learnt in different ways on the same test sentences, for `headwise
compare learning`: teacher forcing, scheduled sampling, minimum risk, REINFORCE, several views of
the encoder, back-translation, and so on.

    greedy, own search   BLEU by greedy search and by the search of the recipe
    difference, p        greedy BLEU minus that of the first model, by a paired randomization test
    after a wrong word   BLEU of the continuation, the same wrong first word for all
    updates, time        what it cost, without the model that it started from

Sequence-level training should be judged by greedy search, which is what it improves; a beam
recovers a part of the same mistakes. A wrong first word shows exposure bias
(tasks/translation/wrong_prefix.py).

Tested with tiny models: rows, the significance of equal models, messages, JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.comparing.exposure import encode_pairs
from headwise.comparing.learning_request import LearningRequest
from headwise.comparing.learning_table import LearningComparison, LearningRow
from headwise.comparing.models_in_turn import models_in_turn
from headwise.comparing.parallel_table import default_name
from headwise.data.pairs.parallel_files import Pair
from headwise.evaluation.significance import compare_systems
from headwise.evaluation.translation import build_metrics
from headwise.language import say
from headwise.tasks.events import Events, Silence
from headwise.tasks.machine import describe_machine
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translated_part import TranslatedPart, translate_pairs
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.wrong_prefix import (
    choose_wrong,
    measure_after_prefixes,
)

SEED = 1
"""Of the wrong words."""


@dataclass(frozen=True)
class _Measured:
    """One model, before it is compared with the first."""

    name: str
    translator: Translator
    greedy: TranslatedPart
    own: TranslatedPart
    after_wrong: float


def compare_learning(
    request: LearningRequest, *, events: Events | None = None
) -> LearningComparison:
    """Load the models one after the other, translate with each, and compare all with the first."""
    request.check()
    watcher = events or Silence()
    found: list[_Measured] = []
    for number, model in enumerate(models_in_turn(request)):
        name, count = model.name, len(request.models)
        watcher.count(say(f"{name}; translated", f"{name}；已翻译"), number, count)
        found.append(_measure(name, model.translator, model.recipe, model.pairs))
    watcher.count(say("translated", "已翻译"), len(found), len(found))
    return LearningComparison(
        machine=describe_machine(request.device),
        test=model.test,
        num_sentences=len(model.pairs),
        rows=tuple(
            _row(one, found[0], path) for one, path in zip(found, request.models, strict=True)
        ),
    )


def _measure(
    name: str, translator: Translator, recipe: TranslationRecipe, pairs: Sequence[Pair]
) -> _Measured:
    fast = translator.settings(["kind=greedy"])
    greedy = translate_pairs(translator, recipe, pairs, decoding=fast)
    own = greedy
    if translator.recipe.decoding != fast:
        own = translate_pairs(translator, recipe, pairs, decoding=translator.recipe.decoding)
    known = encode_pairs(translator, pairs, longer_than=1)
    wrong = choose_wrong(translator, known, rule="frequent", count=1, seed=SEED)
    after = measure_after_prefixes(translator, known, wrong)
    return _Measured(name, translator, greedy, own, after.wrong.bleu.value)


def _row(one: _Measured, first: _Measured, path: Path) -> LearningRow:
    recipe = first.translator.recipe
    test = None
    if one is not first:
        test = compare_systems(
            list(first.greedy.hypotheses),
            list(one.greedy.hypotheses),
            list(one.greedy.references),
            metrics=build_metrics(
                recipe.data.target,
                pretokenized=recipe.evaluation.pretokenized,
                lowercase=recipe.evaluation.lowercase,
            ),
        )
    results: Mapping[str, Any] = one.translator.bundle.results
    return LearningRow(
        model=one.name,
        path=str(path),
        objective=describe_learning(one.translator.recipe),
        greedy=one.greedy.scores.bleu,
        own=one.own.scores.bleu,
        own_search=one.translator.recipe.decoding.kind,
        difference=test,
        after_wrong=one.after_wrong,
        updates=results.get("steps"),
        seconds=results.get("training_seconds"),
    )


def describe_learning(recipe: TranslationRecipe) -> str:
    """The objective in the words of the recipe, and what else it learns from."""
    objective = recipe.training.objective
    words: list[str] = [objective.kind]
    for key in ("baseline", "reward", "mixing"):
        value = getattr(objective, key, None)
        if value is not None:
            words.append(f"{key} {getattr(value, 'kind', value)}")
    decoder = getattr(recipe.model, "decoder", None)
    views = getattr(decoder, "views", "top")
    if views != "top":
        words.append(f"views {views}")
    start = getattr(recipe.model, "start_from", None)
    if start is not None:
        words.append(f"from {default_name(Path(start))}")
    return ", ".join(words)
