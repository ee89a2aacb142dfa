"""Turns every error into a reply: `{"error": {"code", "message", "message_zh"}}`.

    400 not JSON · 401 no key · 403 wrong key, form of another site · 404, 405 no such route
    413 body too large · 415 wrong content type · 422 field out of bounds, request not possible
    429 too many requests · 500 bug · 503 queue full, stopping · 504 deadline exceeded

Messages may contain numbers of the request (a layer, a length) and names of fields, but never its
text, which is private to the sender. One route is the exception: `/v1/vectors` names the unknown
word, at most 100 letters. The log holds no text of a request at all. Errors of the library
(`headwise.errors`) keep their two messages. LibreTranslate's routes use its form,
`{"error": "…"}`. Tested: every status, both languages, no input in any reply.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwise.errors import HeadwiseError
from headwise.serving.http.known_fields import (
    BodyType,
    fields_of,
    kinds_of,
    nearest,
    types_at,
)
from headwise.serving.schemas.base import EXACTLY_ONE, UNION_FIELDS
from headwise.settings.problems import models_in, requirement

LIBRETRANSLATE = frozenset({"/translate", "/detect", "/languages", "/translate_file", "/suggest"})
"""Routes of LibreTranslate, whose clients expect `{"error": "…"}`."""


logger = logging.getLogger(__name__)


class Refusal(HeadwiseError):  # noqa: N818 - an expected outcome
    """A request that is refused: the status, a code for programs, a message in both languages."""

    def __init__(
        self,
        status: int,
        code: str,
        *,
        en: str,
        zh: str,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(en, zh)
        self.status, self.code, self.retry_after = status, code, retry_after
        self.headers = dict(headers or {})


_STATUSES: Mapping[int, tuple[str, str, str]] = {
    400: (
        "not_json",
        "the body is not JSON; send an object such as {…}",
        "请求体不是 JSON；请发送 {…} 这样的对象",
    ),
    404: (
        "no_address",
        "there is nothing at this address; see /openapi.json",
        "该地址不存在；参见 /openapi.json",
    ),
    405: (
        "no_method",
        "this address takes other methods; see /openapi.json",
        "该地址不接受此方法；参见 /openapi.json",
    ),
}


def add_error_handlers(app: FastAPI) -> None:
    """Turn the exceptions of all routes into replies."""
    app.add_exception_handler(HeadwiseError, _reply_to_library_error)
    app.add_exception_handler(RequestValidationError, _reply_to_invalid_body)
    app.add_exception_handler(HTTPException, _reply_to_http_exception)


def error_reply(
    path: str, status: int, code: str, *, en: str, zh: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The form of every error, and LibreTranslate's form on its routes."""
    body: Any = {"code": code, "message": en, "message_zh": zh}
    return JSONResponse(
        {"error": en if path in LIBRETRANSLATE else body},
        status_code=status,
        headers=dict(headers or {}),
    )


def refusal_reply(path: str, refusal: Refusal) -> JSONResponse:
    headers = {**refusal.headers}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return error_reply(
        path, refusal.status, refusal.code, en=refusal.en, zh=refusal.zh, headers=headers
    )


async def _reply_to_library_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HeadwiseError)
    path = request.scope["path"]
    if isinstance(error, Refusal):
        return refusal_reply(path, error)
    return error_reply(path, 422, "not_possible", en=error.en, zh=error.zh)


async def _reply_to_invalid_body(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    path = request.scope["path"]
    status = 400 if path in LIBRETRANSLATE else 422
    if any(problem["type"] == "json_invalid" for problem in found):
        code, en, zh = _STATUSES[400]
        return error_reply(path, 400, code, en=en, zh=zh)
    # A "value_error" means: each value is valid, but not their combination. A schema cannot express
    # that, so these errors get another code.
    is_malformed = any(problem["type"] != "value_error" for problem in found)
    code = "bad_request" if is_malformed else "not_possible"
    body = _body_type(request)
    messages = list(dict.fromkeys(describe_field(problem, body) for problem in found[:8]))
    return error_reply(
        path,
        status,
        code,
        en="; ".join(en for en, _ in messages),
        zh="；".join(zh for _, zh in messages),
    )


async def _reply_to_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code, en, zh = _STATUSES.get(error.status_code, ("refused", "this is not possible", "无法处理"))
    return error_reply(
        request.scope["path"], error.status_code, code, en=en, zh=zh, headers=error.headers
    )


def _body_type(request: Request) -> BodyType | None:
    field = getattr(request.scope.get("route"), "body_field", None)
    found = models_in(field.field_info.annotation) if field is not None else []
    return found[0] if found else None


def describe_field(problem: Any, body: BodyType | None = None) -> tuple[str, str]:
    """Which field of the body is wrong and what it must be, in both languages, without the value
    sent.
    """
    where, where_zh = _location(problem["loc"])
    context = problem.get("ctx", {})
    match problem["type"]:
        case "missing":
            return f"{where} is required", f"必须给出 {where_zh}"
        case kind if kind == EXACTLY_ONE:
            return (
                f"{where}: give exactly one of text and texts",
                f"{where_zh}：text 与 texts 必须给出一个，且只能给出一个",
            )
        case "extra_forbidden":  # the unknown name may be private text, so it is not repeated
            return _describe_unknown(problem["loc"], body)
        case "union_tag_not_found" | "union_tag_invalid" if kinds := kinds_of(
            types_at(body, problem["loc"])
        ):
            return (
                f"{where} needs a kind, one of {', '.join(kinds)}",
                f"{where_zh} 需要 kind，可选：{'、'.join(kinds)}",
            )
        case "value_error" if isinstance(context.get("error"), HeadwiseError):
            return f"{where}: {context['error'].en}", f"{where_zh}：{context['error'].zh}"
        case kind if (required := requirement(kind, context)) is not None:
            en, zh = required
            given = problem.get("input")
            length = (
                len(given)
                if kind.endswith(("too_long", "too_short")) and isinstance(given, str | list)
                else None
            )
            measured, measured_zh = (
                ("", "") if length is None else (f", not {length:,}", f"，而不是 {length:,}")
            )
            return (
                f"{where} {en}{measured}",
                f"{where_zh} {zh}{measured_zh}",
            )
        case _:
            return (
                f"{where} is not what is needed; see /openapi.json",
                f"{where_zh} 不符合要求；参见 /openapi.json",
            )


def _describe_unknown(location: Sequence[Any], body: BodyType | None) -> tuple[str, str]:
    known = fields_of(types_at(body, location[:-1]))
    inside, _ = _location(location[:-1]) if len(location) > 2 else ("", "")
    en, zh = (f"in {inside}, ", f"{inside} 中") if inside else ("", "")
    near = nearest(location[-1], known)
    meant, meant_zh = (f"did you mean {near!r}? ", f"是否想写 {near!r}？") if near else ("", "")
    known_en, known_zh = (
        (f"the fields are {', '.join(known)}", f"可用的字段：{'、'.join(known)}")
        if known
        else ("see /openapi.json", "参见 /openapi.json")
    )
    return (
        f"{en}a field that is not known here was given; {meant}{known_en}",
        f"{zh}给出了未知的字段；{meant_zh}{known_zh}",
    )


def _location(location: Sequence[Any]) -> tuple[str, str]:
    """`text.3`, without the tags of unions; an error of no single field is one of the body."""
    parts = [str(part) for before, part in pairwise(location) if before not in UNION_FIELDS]
    path = ".".join(parts[:4])[:80]
    return (path, path) if path else ("the body", "请求体")


class InternalErrors:
    """Middleware: an unexpected exception becomes 500. The log gets its type and the route.

    Otherwise uvicorn would log the whole exception, and with it the text that was sent.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_started = False

        async def watch(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            logger.error(
                "%s at %s",
                type(error).__name__,
                getattr(scope.get("route"), "path", "an unknown address"),
            )
            if not has_started:
                en, zh = (
                    "the server has a bug; the operator's log names it",
                    "服务器出错；详见运维日志",
                )
                await error_reply(scope["path"], 500, "bug", en=en, zh=zh)(scope, receive, send)
