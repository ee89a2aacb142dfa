"""Why not: every refusal as JSON, `{"error": {"code", "message", "message_zh"}}`, in one place.

    400 not JSON · 401 no key · 403 wrong key, a form of another site · 404, 405 no such address · 413 body too large · 415 not JSON by its header
    422 a field out of bounds, or a wish that cannot be granted · 429 too fast · 503 full or stopping · 504 too long

A message tells numbers that were sent (a layer, a length), the name of a field that does not exist,
and no text: texts are the sender's own, and screens are others'. One address is the exception:
`/v1/vectors` names the word it does not know, at most 100 letters, to whoever asked about it. The
log holds neither. Errors of the library (`headwise.errors`) keep the two sentences they were raised
with. LibreTranslate's addresses speak its form, `{"error": "…"}`. Tested: every status, both
languages, no input in any reply.
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
from headwise.serving.schemas.base import EXACTLY_ONE, UNION_FIELDS
from headwise.settings.problems import REQUIREMENTS

LIBRETRANSLATE = frozenset({"/translate", "/detect", "/languages", "/translate_file", "/suggest"})
"""Addresses of LibreTranslate, whose clients read `{"error": "…"}`."""


logger = logging.getLogger(__name__)


class Refusal(HeadwiseError):  # noqa: N818 - often the right answer
    """A request that is not answered: the status, a word for programs, two sentences for people."""

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
        "this address knows other methods; see /openapi.json",
        "该地址不接受此方法；参见 /openapi.json",
    ),
}


def add_faults(app: FastAPI) -> None:
    """Every exception of every address becomes a reply here."""
    app.add_exception_handler(HeadwiseError, explain)
    app.add_exception_handler(RequestValidationError, _explain_fields)
    app.add_exception_handler(HTTPException, _explain_status)


def reply(
    path: str, status: int, code: str, *, en: str, zh: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The one form of a refusal, and LibreTranslate's where its clients read it."""
    body: Any = {"code": code, "message": en, "message_zh": zh}
    return JSONResponse(
        {"error": en if path in LIBRETRANSLATE else body},
        status_code=status,
        headers=dict(headers or {}),
    )


def reply_to(path: str, refusal: Refusal) -> JSONResponse:
    headers = {**refusal.headers}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return reply(path, refusal.status, refusal.code, en=refusal.en, zh=refusal.zh, headers=headers)


async def explain(request: Request, error: Exception) -> JSONResponse:
    """An error of the library as a reply."""
    assert isinstance(error, HeadwiseError)
    path = request.scope["path"]
    if isinstance(error, Refusal):
        return reply_to(path, error)
    return reply(path, 422, "not_possible", en=error.en, zh=error.zh)


async def _explain_fields(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    path = request.scope["path"]
    status = 400 if path in LIBRETRANSLATE else 422
    if any(problem["type"] == "json_invalid" for problem in found):
        code, en, zh = _STATUSES[400]
        return reply(path, 400, code, en=en, zh=zh)
    # Values that are each allowed, but not together: a schema cannot say so, and the code tells it
    # from a fault of form.
    is_form = any(problem["type"] != "value_error" for problem in found)
    code = "bad_request" if is_form else "not_possible"
    told = list(dict.fromkeys(describe_field(problem) for problem in found[:8]))
    return reply(
        path, status, code, en="; ".join(en for en, _ in told), zh="；".join(zh for _, zh in told)
    )


def describe_field(problem: Any) -> tuple[str, str]:
    """Where and what is required, in both languages; nothing of what was given."""
    where, where_zh = _place(problem["loc"])
    context = problem.get("ctx", {})
    match problem["type"]:
        case "missing":
            return f"{where} is required", f"必须给出 {where_zh}"
        case kind if kind == EXACTLY_ONE:
            return (
                f"{where}: give exactly one of text and texts",
                f"{where_zh}：text 与 texts 必须给出一个，且只能给出一个",
            )
        case "extra_forbidden":  # its name may be a text of the sender's, and does not come back
            return (
                "a field that is not known here was given; see /openapi.json",
                "给出了未知的字段；参见 /openapi.json",
            )
        case "value_error" if isinstance(context.get("error"), HeadwiseError):
            return f"{where}: {context['error'].en}", f"{where_zh}：{context['error'].zh}"
        case kind if kind in REQUIREMENTS:
            en, zh = REQUIREMENTS[kind]
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
                f"{where} {en.format(**context)}{measured}",
                f"{where_zh} {zh.format(**context)}{measured_zh}",
            )
        case _:
            return (
                f"{where} is not what is needed; see /openapi.json",
                f"{where_zh} 不符合要求；参见 /openapi.json",
            )


def _place(location: Sequence[Any]) -> tuple[str, str]:
    """`text.3`, without the names of the members of a union; a fault of no field is one of the
    body.
    """
    parts = [str(part) for before, part in pairwise(location) if before not in UNION_FIELDS]
    path = ".".join(parts[:4])[:80]
    return (path, path) if path else ("the body", "请求体")


async def _explain_status(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code, en, zh = _STATUSES.get(error.status_code, ("refused", "this is not possible", "无法处理"))
    return reply(
        request.scope["path"], error.status_code, code, en=en, zh=zh, headers=error.headers
    )


class CaughtBugs:
    """A mistake of ours ends here: the client is told that it was one, the log its kind and the
    address, nobody its text.

    Left to itself it would travel on to uvicorn, which writes the whole of it, and with it what was
    sent, into the log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def watch(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            logger.error(
                "%s at %s",
                type(error).__name__,
                getattr(scope.get("route"), "path", "an unknown address"),
            )
            if not has_begun:
                en, zh = (
                    "the server made a mistake; the operator's log names it",
                    "服务器出错；详见运维日志",
                )
                await reply(scope["path"], 500, "bug", en=en, zh=zh)(scope, receive, send)
