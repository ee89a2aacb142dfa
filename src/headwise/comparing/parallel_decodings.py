"""Chooses the decodings that `headwise compare parallel` measures for each model, and finds out
whether the model was trained on distilled data.

    autoregressive   greedy search, and the recipe's own search (beam search if that is greedy)
    parallel         one pass, and the recipe's own decoding
    --decoding       one more for each model that it fits, such as `ctc_beam size=8`

A model was trained on distilled data if its recipe names a corpus that `headwise distil` wrote
(data/pairs/sealed_corpus.py). If the corpus is gone, the answer is "unknown".

Tested with recipes of both kinds and with a distilled corpus, also after it has gone.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from headwise.comparing.parallel_table import TrainedOn
from headwise.data.pairs.choices import FilesCorpus
from headwise.data.pairs.sealed_corpus import DESCRIPTION, PREFIX
from headwise.decoding.choices import DecodingSettings, check_output_form, default_decoding
from headwise.errors import SettingsError, UsageError
from headwise.models.parallel.choices import output_form
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator

STEPS = "steps"
"""The output form of an autoregressive model."""


def is_autoregressive(recipe: TranslationRecipe) -> bool:
    """Whether the model writes one token after the other."""
    return output_form(recipe.model) == STEPS


def decodings_of(
    translator: Translator, more: Sequence[str] = ()
) -> list[tuple[str, DecodingSettings]]:
    """Names and settings, the fastest search first, without repetitions."""
    form = output_form(translator.recipe.model)
    usual = f"kind={getattr(default_decoding(form), 'kind', None)}"
    own = translator.recipe.decoding
    fast = translator.settings(["kind=greedy"] if form == STEPS else [usual])
    other = translator.settings([usual]) if own == fast else own
    found = [(_name(fast), fast)]
    if other != fast:
        found.append((_name(other), other))
    for words in more:
        settings = translator.settings(read_decoding(words))
        if _fits(settings, form) and all(settings != known for _, known in found):
            found.append((words, settings))
    return found


def read_decoding(words: str) -> list[str]:
    """`ctc_beam size=8` as overrides; the first word may leave out `kind=`."""
    try:
        first, *rest = shlex.split(words)
    except ValueError as error:
        raise UsageError(
            f"--decoding {words!r} names no decoding; write its kind and what differs from the "
            "recipe: --decoding 'beam size=8'",
            f"--decoding {words!r} 没有给出解码方式；请写种类和与配方不同的值："
            "--decoding 'beam size=8'",
        ) from error
    return [first if "=" in first else f"kind={first}", *rest]


def check_used(more: Sequence[str], translators: Sequence[Translator]) -> None:
    """Refuse a decoding that fits none of the models, and say what fits the first one."""
    for words in more:
        failures = []
        for translator in translators:
            settings = translator.settings(read_decoding(words))
            try:
                check_output_form(settings, output_form(translator.recipe.model))
            except SettingsError as error:
                failures.append(error)
        if len(failures) == len(translators):
            raise failures[0]


def _fits(settings: DecodingSettings, form: str) -> bool:
    try:
        check_output_form(settings, form)
    except SettingsError:
        return False
    return True


def _name(settings: DecodingSettings) -> str:
    """The kind, and how many passes it makes, or else how many hypotheses it keeps, if several."""
    passes = getattr(settings, "passes", None)
    if passes is not None:
        return f"{settings.kind} passes={passes}"
    count = settings.num_hypotheses
    return settings.kind if count == 1 else f"{settings.kind} {count}"


def trained_on(recipe: TranslationRecipe) -> TrainedOn:
    """Whether the training corpora were written by `headwise distil`."""
    found = {
        _kind_of(corpus.path, recipe) if isinstance(corpus, FilesCorpus) else "raw"
        for corpus in recipe.data.train
    }
    if "unknown" in found:
        return "unknown"
    if len(found) > 1:
        return "both"
    return "distilled" if found == {"distilled"} else "raw"


def _kind_of(prefix: Path, recipe: TranslationRecipe) -> str:
    if prefix.name == PREFIX and (prefix.parent / DESCRIPTION).is_file():
        return "distilled"
    sides = (f"{prefix.name}.{side}" for side in (recipe.data.source, recipe.data.target))
    exists = all(any(prefix.parent.glob(f"{side}*")) for side in sides)
    return "raw" if exists else "unknown"
