"""The tables of the recipe chapter are written by hand; here they are held against the settings
themselves."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, get_args

import pydantic
import pytest

from headwise.settings import Settings, read_yaml
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.pretraining.elmo_recipe import ElmoRecipe
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.translation.recipe import TranslationRecipe
from tests.docs.pages import GUIDE, read_page

ATTENTIONS = ("attention", "cross_attention")
RECIPES = (TranslationRecipe, LanguageRecipe, LabelRecipe, MaskedRecipe, ElmoRecipe)
REQUIRED = {"en": "required", "zh": "必填"}


def _settings_in(annotation: Any) -> list[type[Settings]]:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return [annotation]  # type: ignore[list-item]
    return [found for argument in get_args(annotation) for found in _settings_in(argument)]


def _fields(kind: type[pydantic.BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of a recipe with each of its defaults; the keys of a corpus are named as they stand
    in a corpus, and those of attention once for the three places where it stands."""
    for name, field in kind.model_fields.items():
        path = f"{prefix}{name}"
        if not isinstance(field.default, Settings) and not (field.is_required() and name == "data"):
            yield path, field
        if path in ("data.valid", "data.test"):
            continue
        if path == "model.decoder.attention" or name == "cross_attention":
            continue
        for child in _settings_in(field.annotation):
            yield from _fields(
                child,
                "" if path == "data.train" else f"{name}." if name in ATTENTIONS else f"{path}.",
            )


def _rows(language: str) -> dict[str, tuple[str, str]]:
    rows = {}
    for _, line in read_page(GUIDE / language / "04-recipes.md").prose:
        if cells := re.fullmatch(r"\| `([a-z_.]+)` \| (.+?) \| (.+) \|", line):
            assert cells[1] not in rows, f"{cells[1]} has two rows"
            rows[cells[1]] = (cells[2], cells[3])
    return rows


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_key_stands_in_a_table_with_its_default(language: str) -> None:
    rows = _rows(language)
    problems = []
    seen = set()
    for path, field in chain(*map(_fields, RECIPES)):
        seen.add(path)
        if path not in rows:
            problems.append(f"{path} is missing")
            continue
        default, meaning = rows[path]
        shown = [read_yaml(text) for text in re.findall(r"`([^`]*)`", default)]
        wanted = _plain(field.default)
        if path.endswith("kind") or path == "task":
            if wanted not in re.findall(r"`([^`]*)`", default + meaning):
                problems.append(f"{path}: {wanted!r} is not named")
        elif field.is_required():
            if REQUIRED[language] not in default:
                problems.append(f"{path} is required, the table says {default}")
        elif not any(type(value) is type(wanted) and value == wanted for value in shown):
            problems.append(f"{path}: the default is {wanted!r}, the table says {default}")
    assert problems == []
    assert rows.keys() - seen == set()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_default_kinds_are_right(language: str) -> None:
    rows = _rows(language)
    recipe = TranslationRecipe.model_validate(
        {"data": {"source": "en", "target": "de", "train": "corpus/train"}}
    )
    for path in (
        "text",
        "model.norm",
        "model.position",
        "model.feed_forward",
        "training.schedule",
        "decoding",
    ):
        value: Any = recipe
        for part in path.split("."):
            value = getattr(value, part)
        assert rows[f"{path}.kind"][0] == f"`{value.kind}`"
