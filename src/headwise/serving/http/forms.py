"""Reads a request body as JSON or as a form (`q=…&source=en`), depending on its Content-Type.

    body = await read_body(request, LibreBody)

JSON is validated strictly; the values of a form are all text. A field that is given several times
becomes a list. Values are UTF-8, percent-encoded or raw (`curl -d q=我们` sends them raw). Both
types report errors in the same way. Tested: both types give the same result; bytes that are not
UTF-8, too many fields, wrong values.
"""

from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from headwise.serving.http.errors import Refusal
from headwise.serving.http.route_table import JSON

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 256

AnyBody = TypeVar("AnyBody", bound=BaseModel)


async def read_body(request: Request, kind: type[AnyBody]) -> AnyBody:
    """Read and validate the body of a request."""
    raw = await request.body()
    is_form = request.headers.get("content-type", "").split(";")[0].strip().lower() == FORM
    try:
        if is_form:
            return kind.model_validate(_read_form(raw))
        return kind.model_validate_json(raw, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise RequestValidationError(
            [{**one, "loc": ("body", *one["loc"])} for one in found]
        ) from None


def describe_body(kind: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI description of such a body: `openapi_extra=describe_body(LibreBody)`."""
    schema = kind.model_json_schema()
    content = {media_type: {"schema": schema} for media_type in (JSON, FORM)}
    return {"requestBody": {"required": True, "content": content}}


def _read_form(raw: bytes) -> dict[str, Any]:
    try:
        fields = parse_qs(
            raw.decode(),
            keep_blank_values=True,
            strict_parsing=bool(raw),
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise Refusal(
            400,
            "not_a_form",
            en=(
                "the body is not a form; send name=value&name=value, in UTF-8, at most "
                f"{MAX_FIELDS} fields"
            ),
            zh=(
                f"请求体不是表单；请发送 name=value&name=value，采用 UTF-8，最多 {MAX_FIELDS} "
                "个字段"
            ),
        ) from None
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
