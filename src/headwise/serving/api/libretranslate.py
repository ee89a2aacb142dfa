"""LibreTranslate's API (`POST /translate`, `POST /detect`, `GET /languages`), for its clients.

Bodies are JSON or forms. Simplified Chinese is `zh-Hans` in replies and `zh`, `zh-Hans` or `zh-CN`
in requests; `zh-Hant` needs a model trained for it. `source: auto` detects the language of the text
(`language_detection`) and chooses a model that reads it; the confidence is 0 if nothing was
measured. A key may be sent as `api_key` in the body, because these clients cannot send it in a
header. Errors are `{"error": "…"}`; `format: html`, files and suggestions are refused. Tested with
LibreTranslate's own client and examples.
"""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from headwise.serving.api.decoding_options import choose_settings
from headwise.serving.api.memory_options import add_memory
from headwise.serving.http.errors import Refusal
from headwise.serving.http.forms import describe_body, read_body
from headwise.serving.schemas.base import Reply, TextOrTexts, Whole
from headwise.serving.schemas.limits import MAX_BEST
from headwise.serving.state import RequestState, State
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.translation_jobs import prepare_texts
from headwise.tasks.translation.built_in_detector import built_in_detector

Code = Annotated[str, Field(min_length=1, max_length=35)]
AUTO = "auto"
ALIASES = {
    "zh-hans": "zh",
    "zh-cn": "zh",
    "zh-sg": "zh",
    "zt": "zh-hant",
    "zh-tw": "zh-hant",
    "zh-hk": "zh-hant",
}
"""Language codes that clients send, in lower case, and the code that recipes use."""
PUBLISHED = {"zh": "zh-Hans", "zh-hant": "zh-Hant"}
"""Codes of recipes that LibreTranslate's clients call otherwise."""
NAMES = {
    "en": "English",
    "de": "German",
    "zh": "Chinese",
    "fr": "French",
    "es": "Spanish",
    "ja": "Japanese",
    "zh-hant": "Chinese (traditional)",
}


class LibreError(Reply):
    error: str


class LibreBody(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"q": "The dog is old.", "source": "en", "target": "de", "format": "text"}]
        },
    )

    q: TextOrTexts
    source: Code
    target: Code
    format: Literal["text", "html"] = "text"
    alternatives: Whole = Field(default=0, ge=0, le=MAX_BEST - 1)
    api_key: str | None = Field(default=None, max_length=200)


class DetectBody(BaseModel):
    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"examples": [{"q": "Der Hund ist alt."}]}
    )

    q: TextOrTexts
    api_key: str | None = Field(default=None, max_length=200)


class DetectedReply(Reply):
    confidence: float = Field(ge=0, le=100, description="in percent; 0: nothing was measured")
    language: str


class LibreReply(Reply):
    translatedText: str | list[str]  # noqa: N815 - their name
    alternatives: list[Any] | None = None
    detectedLanguage: DetectedReply | list[DetectedReply] | None = None  # noqa: N815


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
    """Every source language of the translators, with its target languages."""
    pairs = language_pairs(state)
    return [
        LibreLanguage(
            code=publish(code),
            name=NAMES.get(code, code),
            targets=list(
                dict.fromkeys(publish(target) for source, target in pairs if source == code)
            ),
        )
        for code in known_languages(state)
    ]


@router.post("/detect", response_model=list[DetectedReply], openapi_extra=describe_body(DetectBody))
async def detect(state: State, request: Request) -> list[DetectedReply]:
    """The languages that a text may be in, the most probable first; the first may be one that no
    model of this server reads, the others are languages of its models.

    Several texts are treated as one.
    """
    body = await read_body(request, DetectBody)
    state.server.access.check(request.scope, key_in_body=body.api_key)
    text = body.q if isinstance(body.q, str) else "\n".join(body.q)
    languages = known_languages(state)
    (found,) = await state.call(None, detect_all, [text], size=len(text))
    likely = sorted(found, key=lambda code: -found[code])
    fitting = [(code, found[code]) for code in likely if code in languages or code == likely[0]]
    return [
        as_detected(code, confidence)
        for code, confidence in fitting or [(code, 0.0) for code in languages[:1]]
    ]


@router.post(
    "/translate",
    response_model=LibreReply,
    response_model_exclude_none=True,
    openapi_extra=describe_body(LibreBody),
)
async def translate(state: State, request: Request) -> Any:
    """A text or a list of texts."""
    body = await read_body(request, LibreBody)
    state.server.access.check(request.scope, key_in_body=body.api_key)
    if body.format == "html":
        raise Refusal(
            400,
            "no_html",
            en="html format is not supported; send text",
            zh="不支持 html；请发送 text",
        )
    texts = [body.q] if isinstance(body.q, str) else body.q
    size = sum(map(len, texts))
    found = await state.call(None, detect_all, texts, size=size) if body.source == AUTO else None
    model = choose_model(state, body.source, body.target, found)
    n_best = body.alternatives + 1
    settings = choose_settings(model.value.recipe.decoding, None, n_best=n_best)
    settings = add_memory(settings, model, None)
    prepared, answers = await state.run(
        model.name, partial(prepare_texts, model.value, texts, settings)
    )
    translated = prepared.assemble(answers)
    is_single = isinstance(body.q, str)
    reply: dict[str, Any] = {
        "translatedText": _one_or_all([one[0].text for one in translated], is_single=is_single)
    }
    if body.alternatives:
        others = [
            list(dict.fromkeys(candidate.text for candidate in one[1:])) for one in translated
        ]
        reply["alternatives"] = _one_or_all(others, is_single=is_single)
    if found is not None:
        code = canonical(model.value.source_language)
        languages = [as_detected(code, one.get(code, 0.0)).model_dump() for one in found]
        reply["detectedLanguage"] = _one_or_all(languages, is_single=is_single)
    return JSONResponse(reply)


def _one_or_all(values: list[Any], *, is_single: bool) -> Any:
    return values[0] if is_single else values


def canonical(code: str) -> str:
    """A language code as recipes write it."""
    lower = code.lower().replace("_", "-")
    return ALIASES.get(lower, lower)


def publish(code: str) -> str:
    """A language code as LibreTranslate's clients write it."""
    return PUBLISHED.get(code, code)


def as_detected(code: str, confidence: float) -> DetectedReply:
    return DetectedReply(confidence=round(100 * confidence, 1), language=publish(code))


def language_pairs(state: RequestState) -> list[tuple[str, str]]:
    pairs = [model.languages for model in state.models.values() if model.languages is not None]
    return [(canonical(source), canonical(target)) for source, target in pairs]


def known_languages(state: RequestState) -> list[str]:
    return list(dict.fromkeys(code for pair in language_pairs(state) for code in pair))


def detect_all(texts: list[str]) -> list[dict[str, float]]:
    """The confidences by language for each text. Runs on a worker, because the first call builds
    the detector.
    """
    return [
        {one.language: one.confidence for one in built_in_detector().detect(text)} for text in texts
    ]


def choose_model(
    state: RequestState, source: str, target: str, found: list[dict[str, float]] | None
) -> LoadedModel:
    """The first translator of a language pair; with `auto` the one whose source language is most
    probable.
    """
    wanted = canonical(target)
    into = [
        (canonical(model.languages[0]), model)
        for model in state.models.values()
        if model.languages is not None and canonical(model.languages[1]) == wanted
    ]
    if not into:
        raise Refusal(
            400,
            "no_language",
            en="the target language is not supported; see /languages",
            zh="不支持该目标语言；参见 /languages",
        )
    if found is not None:
        return max(
            into, key=lambda one: sum(confidences.get(one[0], 0.0) for confidences in found)
        )[1]
    for code, model in into:
        if code == canonical(source):
            return model
    raise Refusal(
        400,
        "no_language",
        en="the source language is not supported for this target; see /languages",
        zh="该目标语言不支持此源语言；参见 /languages",
    )
