"""Warns when the user replaces `data.train` of a recipe but keeps its `data.valid` or `data.test`.

`headwise train pocket data.train=my/train` learns from the user's text, but would report how well
the model translates the pocket corpus. The warning depends on the changes to a recipe, not on the
resulting recipe, because training on one corpus and testing on another may be intended. What counts
is the corpus before and after: `data.valid.count=5` leaves the pocket corpus in place.

Tested: every way to write a corpus; splits that are replaced, shortened, emptied or of the same
collection; all commands that train.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.data.pairs.sealed_corpus import corpora_behind
from headwise.language import say
from headwise.settings import read_settings_file
from headwise.settings.overrides import apply_overrides
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.recipe_files import find_recipe

PARTS = ("valid", "test")


def note_on_measuring(recipe: AnyRecipe | str | Path, overrides: Sequence[str]) -> str | None:
    """The warning, shown before training and beside the results; None if data.train is the
    recipe's own or if data.valid and data.test were replaced too.
    """
    if not any(one.strip().startswith("data") for one in overrides):
        return None
    data = (
        recipe.model_dump(mode="json")
        if isinstance(recipe, AnyRecipe)
        else read_settings_file(find_recipe(recipe))
    )
    before, after = _corpora(data), _corpora(apply_overrides(data, overrides))
    if not after["train"] or _collections(before["train"]) & _collections(after["train"]):
        return None
    left = [
        part
        for part in PARTS
        if after[part]
        and set(map(_identity, after[part])) <= set(map(_identity, before[part]))
        and not _collections(after[part]) & _collections(after["train"])
    ]
    return _describe(after, left) if left else None


def _describe(corpora: Mapping[str, list[Any]], left: Sequence[str]) -> str:
    own = ", ".join(dict.fromkeys(map(_name, corpora["train"])))
    parts = [f"data.{part}" for part in left]
    foreign = ", ".join(dict.fromkeys(_name(one) for part in left for one in corpora[part]))
    give = " ".join(f"{part}=…" for part in parts)
    return say(
        f"data.train is {own}, but {' and '.join(parts)} {'is' if len(left) == 1 else 'are'} "
        f"still the recipe's own ({foreign}): the scores are those of that text, not of yours; "
        f"give {give}, or null for none",
        f"data.train 是 {own}，而 {'、'.join(parts)} 仍是配方自带的（{foreign}）："
        f"得分反映的是后者，不是您的文本；请给出 {give}，或设为 null 表示没有",
    )


def _corpora(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    given = data.get("data")
    if not isinstance(given, Mapping):
        given = {}
    found = {part: given.get(part) for part in ("train", *PARTS)}
    return {
        part: one if isinstance(one, list) else [] if one is None else [one]
        for part, one in found.items()
    }


def _name(corpus: Any) -> str:
    """As a person would call it."""
    if isinstance(corpus, Mapping):
        return str(corpus.get("path") or corpus.get("name") or corpus.get("kind"))
    return str(corpus)


def _identity(corpus: Any) -> str:
    """The same for every way to write one corpus, however many of its sentences are taken."""
    name = _name(corpus).removeprefix("known:")
    return "pocket" if name.startswith("pocket:") else name


def _collections(corpora: Sequence[Any]) -> set[str]:
    """What the corpora are parts of: a known collection has its training and test sets under one
    name, and a distilled corpus belongs to what it was distilled from.
    """
    names = set()
    for corpus in corpora:
        is_known = isinstance(corpus, Mapping) and "name" in corpus
        name = _name(corpus)
        known = _identity(corpus)
        names |= _collections(corpora_behind(Path(name)))
        names.add(known.partition("/")[0] if is_known or known != name else name)
    return names
