"""`POST /translate`, `GET /languages` as LibreTranslate has them, so that its JSON clients work with their address changed.

Differences, each refused with a sentence: forms (JSON only) and `format: html`. `source: auto` takes the only source language
there is for the target, or tells Chinese from the others by its script; the confidence is 0 where nothing was measured. A key may
stand in `api_key` here, because these clients know no other place. Errors are `{"error": "…"}`. Tested with their own examples.
"""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from headwise.serving.admission import admit
from headwise.serving.faults import Refusal
from headwise.serving.limits import MAX_BEST
from headwise.serving.loaded import LoadedModel
from headwise.serving.schemas import Reply, TextOrTexts
from headwise.serving.sentences import prepare
from headwise.serving.state import ServerState, State
from headwise.serving.wishes import choose_settings

Code = Annotated[str, Field(min_length=1, max_length=35)]
NAMES = {"en": "English", "de": "German", "zh": "Chinese", "fr": "French", "es": "Spanish", "ja": "Japanese"}


class LibreError(Reply):
    error: str


class LibreBody(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"examples": [{"q": "The dog is old.", "source": "en", "target": "de", "format": "text"}]},
    )

    q: TextOrTexts
    source: Code
    target: Code
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(default=0, ge=0, le=MAX_BEST - 1)
    api_key: str | None = Field(default=None, max_length=200)


class LibreReply(Reply):
    translatedText: str | list[str]  # noqa: N815 - their name
    alternatives: list[Any] | None = None
    detectedLanguage: Any = None  # noqa: N815


class LibreLanguage(Reply):
    code: str
    name: str
    targets: list[str]


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": LibreError} for status in (400, 401, 403, 408, 413, 415, 422, 429, 503, 504)
}

router = APIRouter(tags=["libretranslate"], responses=REFUSALS)


@router.get("/languages")
async def list_languages(state: State) -> list[LibreLanguage]:
    """Every language of the translators here, with those it can be translated into."""
    pairs = [model.languages for model in state.models.values() if model.languages is not None]
    codes = list(dict.fromkeys(code for pair in pairs for code in pair))
    return [
        LibreLanguage(
            code=code,
            name=NAMES.get(code, code),
            targets=list(dict.fromkeys(target for source, target in pairs if source == code)),
        )
        for code in codes
    ]


@router.post("/translate", response_model=LibreReply, response_model_exclude_none=True)
async def translate(body: LibreBody, state: State, request: Request) -> Any:
    """A text or a list of texts."""
    admit(state.server, request, key=body.api_key)
    if body.format == "html":
        raise Refusal(400, "no_html", en="html format is not supported; send text", zh="不支持 html；请发送 text")
    texts = [body.q] if isinstance(body.q, str) else body.q
    model, is_measured = choose_pair(state, body.source, body.target, texts)
    n_best = body.alternatives + 1
    settings = choose_settings(model.value.recipe.decoding, None, n_best=n_best)
    prepared, answers = await state.answer(model.name, partial(prepare, model.value, texts, settings))
    found = prepared.assemble(answers)
    is_single = isinstance(body.q, str)
    reply: dict[str, Any] = {"translatedText": _one_or_all([one[0].text for one in found], is_single=is_single)}
    if body.alternatives:
        others = [list(dict.fromkeys(candidate.text for candidate in one[1:])) for one in found]
        reply["alternatives"] = _one_or_all(others, is_single=is_single)
    if body.source == "auto":
        language = {"confidence": 90.0 if is_measured else 0.0, "language": model.value.source_language}
        reply["detectedLanguage"] = _one_or_all([language] * len(texts), is_single=is_single)
    return JSONResponse(reply)


def _one_or_all(values: list[Any], *, is_single: bool) -> Any:
    return values[0] if is_single else values


def choose_pair(state: ServerState, source: str, target: str, texts: list[str]) -> tuple[LoadedModel, bool]:
    """The first translator of a pair, and whether the text itself decided it."""
    into = [model for model in state.models.values() if model.languages is not None and model.languages[1] == target]
    if not into:
        raise Refusal(
            400,
            "no_language",
            en="the target language is not supported; see /languages",
            zh="不支持该目标语言；参见 /languages",
        )
    if source == "auto":
        is_chinese = any("\u4e00" <= letter <= "\u9fff" for text in texts for letter in text)
        fitting = [one for one in into if (one.value.source_language == "zh") == is_chinese]
        return (fitting or into)[0], bool(fitting) and len(into) > 1
    for model in into:
        if model.value.source_language == source:
            return model, False
    raise Refusal(
        400,
        "no_language",
        en="the source language is not supported for this target; see /languages",
        zh="该目标语言不支持此源语言；参见 /languages",
    )
