"""Measures a translator of several directions: each by itself, and the mean of those it learnt.

    results["test"]["bleu"]                          mean over the directions that are learnt
    results["test"]["directions"]["en-de"]["bleu"]   of one direction, with its interval
    runs/six/translations/en-de/test.de              its translations

Directions of `data.zero_shot` are measured like the others and stand beside the mean, not in it.
The mean of BLEU over languages with different tokens only says whether a training gets better; a
comparison is made direction by direction.

Tested with a small run: each number is that of the translator of this direction.
"""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from headwise.data.pairs.directions import languages_of
from headwise.data.splits import Part
from headwise.tasks.translation.translated_part import translate_part
from headwise.tasks.translation.translator import Translator

_SCORES = ("bleu", "chrf", "ter")


def each_direction(translator: Translator, part: Part) -> dict[str, Translator]:
    """The translator of each direction that has text in this part of its recipe's data."""
    found = {}
    for direction in translator.recipe.data.all_directions:
        source, target = languages_of(direction)
        one = translator.into(target, source)
        if one.recipe.data.corpora(part):
            found[direction] = one
    return found


def translate_directions(translator: Translator, part: Part, folder: Path) -> dict[str, Any]:
    """Translate a part in every direction; the translations are kept in folders of their own."""
    found: dict[str, Any] = {}
    for direction, one in each_direction(translator, part).items():
        translated = translate_part(one, one.recipe, part)
        folder.mkdir(exist_ok=True)
        translated.save(folder / direction, part)
        unseen = direction in translator.recipe.data.zero_shot
        found[direction] = {**translated.as_dict(), "zero_shot": unseen}
    learnt = [one for one in found.values() if not one["zero_shot"]]
    return _mean(learnt or list(found.values())) | {"directions": found}


def _mean(results: list[Mapping[str, Any]]) -> dict[str, Any]:
    mean: dict[str, Any] = {
        key: {
            "name": results[0][key]["name"],
            "value": fmean(one[key]["value"] for one in results),
            "signature": f"mean of {len(results)} directions",
        }
        for key in _SCORES
    }
    mean["exact_match"] = fmean(one["exact_match"] for one in results)
    mean["num_sentences"] = sum(one["num_sentences"] for one in results)
    mean["seconds"] = round(sum(one["seconds"] for one in results), 3)
    return mean
