"""`RequestOption`: declares a number among the settings of a search that a request to the server
may set, with its bounds.

Each kind of settings declares its own (`GenerationSettings.request_options`). The server builds the
body of `/v1/translate` from these declarations, so a new kind needs no line there. The bounds are
narrower than those of a recipe: a server is shared.
Tested: the OpenAPI description of every kind.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestOption:
    """One number; an int default makes it a whole number."""

    default: int | float
    low: int | float
    high: int | float
    description: str | None = None
    output_forms: tuple[str, ...] = ()
    """The models for which it changes anything (`choices.OUTPUT_FORMS`). Empty: all."""
