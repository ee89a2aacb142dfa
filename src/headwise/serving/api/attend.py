"""`POST /v1/attend`: computes attention for small numbers in the request, step by step.
`POST /v1/row`: one row of a loaded model's attention, step by step.
"""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter

from headwise.attention.score_choices import DEFAULT_SCORE, score_kinds
from headwise.errors import UsageError
from headwise.explorer.data.attention_calculation import (
    EXAMPLES,
    AttentionCalculation,
    calculate_attention,
    choose_settings,
    output_curve,
)
from headwise.explorer.data.attention_row import calculate_row, count_layers
from headwise.explorer.data.calculation_tables import describe_score
from headwise.explorer.data.language_model_trace import calculate_text_row, require_reader
from headwise.explorer.data.number_input import NumberTable, Rows, arrange
from headwise.serving.api.text_trace import find_attention_model
from headwise.serving.schemas.attention import (
    AttendBody,
    AttendReply,
    CurveReply,
    RowBody,
    RowReply,
)
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.state import State
from headwise.serving.work.search import stop_if
from headwise.serving.work.translation_jobs import MIN_STEPS
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.translation.translator import Translator
from headwise.text.sentence_splitting import split_text

router = APIRouter(tags=["attention"], responses=REFUSALS)


@router.post("/v1/attend")
async def attend(body: AttendBody, state: State) -> AttendReply:
    """The three steps, by the code of `headwise attend`."""
    return await state.call(None, answer_attend, body)


@router.post("/v1/row")
async def open_up(body: RowBody, state: State) -> RowReply:
    """q·k, scaling, mask, softmax and weighted sum for one query of a model."""
    model = find_attention_model(state, body.model)
    if model.kind == "language_model":
        return await state.call(
            model.name, answer_text_row, model.name, model.value, body, size=len(body.text)
        )
    size = lambda: len(model.value.tokenizers.source.encode(body.text)) + MIN_STEPS  # noqa: E731
    return await state.call_stoppable(model, size, answer_row, body)


def answer_text_row(name: str, model: LanguageModel, body: RowBody) -> RowReply:
    """A row of a language model, which reads the text as it is."""
    if "target" in body.model_fields_set or (
        "kind" in body.model_fields_set and body.kind != "decoder_self"
    ):
        raise UsageError(
            "a language model has no source and no translation; leave target out, and give kind: "
            "decoder_self",
            "语言模型没有原文与译文；请去掉 target，并令 kind 为 decoder_self",
        )
    row = calculate_text_row(model, body.text, layer=body.layer, head=body.head, query=body.query)
    layers = list(require_reader(model)[1].attention_layers().values())
    number = len(layers) - 1 if body.layer == -1 else body.layer
    return RowReply(
        model=name,
        sentences=[body.text],
        kind="decoder_self",
        layer=number,
        head=body.head,
        num_layers=len(layers),
        num_heads=layers[number].num_heads,
        **row.as_dict(),
    )


def answer_attend(body: AttendBody) -> AttendReply:
    worked = _work(body)
    curve = None
    if body.curve:
        curve = _curve(worked, body.curve)
    return AttendReply(**worked.as_dict(), formula=describe_score(worked), curve=curve)


def _work(body: AttendBody) -> AttentionCalculation:
    example = None if body.example is None else EXAMPLES[body.example]
    tables = {}
    for name in ("keys", "values", "queries"):
        given = getattr(body, name)
        if given is None and example is None:
            raise UsageError(
                f"{name} are missing; give keys, values and queries, or an example",
                f"缺少 {name}；请给出 keys、values 与 queries，或一个 example",
            )
        tables[name] = (
            NumberTable(_rows(given, name)) if given is not None else getattr(example, name)
        )
    keys, values, queries = arrange(tables["keys"], tables["values"], tables["queries"])
    score = body.score or (example.score if example else DEFAULT_SCORE.kind)
    parameters = dict(example.parameters.get(score, {})) if example else {}
    given_parameters = body.parameters.model_dump(exclude_none=True)
    parameters |= {name: NumberTable(_rows(rows, name)) for name, rows in given_parameters.items()}
    kind = score_kinds().get(score)  # None: choose_settings below says why it cannot be used
    number = None if kind is None else kind.number
    overrides = [
        f"score.{name}={value!r}"
        for name, value in (("width", body.width), ("scale", body.scale))
        if value is not None and name == number
    ]
    settings = choose_settings(
        score, body.weights, overrides, num_keys=len(keys), parameters=parameters
    )
    return calculate_attention(
        keys, values, queries, settings=settings, parameters=parameters, seed=body.seed
    )


def _rows(rows: list[list[float]], name: str) -> Rows:
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise UsageError(
            f"the rows of {name} have {min(widths)} to {max(widths)} numbers; all need the same "
            "length",
            f"{name} 的各行有 {min(widths)} 到 {max(widths)} 个数；各行长度须相同",
        )
    return tuple(map(tuple, rows))


def _curve(worked: AttentionCalculation, num_points: int) -> CurveReply | None:
    """The outputs for queries between the keys and a little beyond them."""
    if not worked.keys.shape[1] == worked.values.shape[1] == worked.queries.shape[1] == 1:
        return None
    low, high = float(worked.keys.min()), float(worked.keys.max())
    margin = max(0.6 * (high - low), 0.5)
    step = (high - low + 2 * margin) / max(num_points - 1, 1)
    queries = [low - margin + step * index for index in range(num_points)]
    return CurveReply(queries=queries, outputs=output_curve(worked, queries))


def answer_row(
    name: str, translator: Translator, body: RowBody, *, is_over: Callable[[], bool]
) -> RowReply:
    row = calculate_row(
        translator,
        body.text,
        kind=body.kind,
        layer=body.layer,
        head=body.head,
        query=body.query,
        target=body.target,
        before_step=stop_if(is_over),
    )
    counts = count_layers(translator)
    layers = counts[body.kind]
    facts: dict[str, Any] = row.as_dict()
    return RowReply(
        model=name,
        sentences=list(split_text(body.text, language=translator.source_language).sentences),
        kind=body.kind,
        layer=layers - 1 if body.layer == -1 else body.layer,
        head=body.head,
        num_layers=layers,
        num_heads=counts["heads"],
        **facts,
    )
