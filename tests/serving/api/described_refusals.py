"""A check for schemathesis: refusals that a description cannot express, told apart from invalid
requests.

A valid request may still ask for something impossible (the three best of a greedy search, a layer
that the model does not have). Such a refusal has a code of its own, or LibreTranslate's message.
The codes `bad_request`, `not_json` and `not_a_form` say that a request does not match the
description: no valid request may get them. SCHEMATHESIS_HOOKS names this module, so that `st run
--checks all` uses it as well.
"""

import json
from typing import Any

import schemathesis
from schemathesis import GenerationMode

UNFIT_CODES = frozenset({"bad_request", "not_json", "not_a_form"})
LIBRETRANSLATE_CANNOT = ("is not supported", "are translated; split it", "at most 512 sentences")


def is_called_unfit(status: int, content: bytes) -> bool:
    """Whether a reply says that the request does not fit the description."""
    if status not in (400, 422):
        return False
    error = json.loads(content)["error"]
    if isinstance(error, str):
        return not any(words in error for words in LIBRETRANSLATE_CANNOT)
    return error["code"] in UNFIT_CODES


@schemathesis.check
def what_fits_is_not_called_unfit(context: Any, response: Any, case: Any) -> None:
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if is_called_unfit(response.status_code, response.content):
        raise AssertionError(f"fits the description, but was refused: {response.text}")
