"""Names the fields and kinds that a request body may have at the place of a mistake.

A refusal repeats nothing that was sent, but it may list what is known, and say which known name is
most like the unknown one:

    a field that is not known here was given; did you mean 'require'? the fields are text, texts, …
    decoding needs a kind, one of greedy, beam, …

Tested: fields of the body and of a union member, nearest names, a missing kind, a very long name.
"""

import difflib
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel

from headwise.settings.problems import models_in

MAX_CHARACTERS = 40
"""Longer names are not compared: comparing takes time quadratic in the length."""

BodyType = type[BaseModel]


def types_at(body: BodyType | None, location: Sequence[Any]) -> list[BodyType]:
    """The types that may stand at a location of a validation error, whose first part is "body"."""
    types = [] if body is None else [body]
    for part in location[1:]:
        tagged = [one for one in types if part in kinds_of([one])]
        if tagged:
            types = tagged
        elif isinstance(part, str):
            fields = [one.model_fields[part] for one in types if part in one.model_fields]
            types = [model for field in fields for model in models_in(field.annotation)]
    return types


def kinds_of(types: Sequence[BodyType]) -> list[str]:
    """The values of `kind` that choose between the types."""
    fields = [one.model_fields["kind"] for one in types if "kind" in one.model_fields]
    return [str(kind) for field in fields for kind in get_args(field.annotation)]


def fields_of(types: Sequence[BodyType]) -> list[str]:
    """The names of all fields, as they are written in a request."""
    return list(
        dict.fromkeys(
            field.alias or name for one in types for name, field in one.model_fields.items()
        )
    )


def nearest(name: Any, known: Sequence[str]) -> str | None:
    """The known name most like a given one."""
    if not isinstance(name, str) or len(name) > MAX_CHARACTERS:
        return None
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)
