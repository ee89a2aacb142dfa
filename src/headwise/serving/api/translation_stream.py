"""Streams a growing translation as server-sent events.

    event: piece         data: {"text": 0, "sentence": 1, "so_far": "Der Hund"}
    event: translation   data: {"text": 0, "translation": {"text": …, "n_best": […], …}}
    event: done          data: {"model": "demo"}
    event: error         data: {"error": {"code", "message", "message_zh"}}, instead of the rest

`so_far` is the best hypothesis at that step. Greedy search and sampling only append to it. In beam
search another hypothesis may become the best, so the whole text is sent each time. Each sentence is
computed alone and waits in the queue like any other, so a long stream does not delay the rest. The
request is admitted before the first byte is sent, so a full server still answers 503. It keeps its
place in the queue to the end. Tested: the last event equals the reply without `stream`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headwise.errors import HeadwiseError
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.translation import translation_reply
from headwise.serving.state import RequestState
from headwise.serving.work.admission import AdmittedWork
from headwise.serving.work.jobs import JobPart
from headwise.serving.work.translation_jobs import PreparedTexts, streamed_part
from headwise.tasks.translation.source_sentences import Candidate

STREAMED: dict[str, Any] = {
    "description": "all translations, or events if `stream` was asked for",
    "content": {
        "text/event-stream": {
            "schema": {
                "type": "object",
                "properties": {
                    "event": {"enum": ["piece", "translation", "done", "error"]},
                    "data": {"type": "string", "description": "JSON"},
                },
            }
        }
    },
}


class AdmittedStream(StreamingResponse):
    """A stream that gives back its place in the queue, whether it was read to the end or never
    started.
    """

    def __init__(self, events: AsyncIterator[str], admission: AsyncExitStack) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._admission.aclose()


async def start_stream(
    state: RequestState, model: str, prepare: Callable[[], PreparedTexts]
) -> AdmittedStream:
    """Admit the request and answer with a stream."""
    admission = AsyncExitStack()
    try:
        prepared, admitted = await admission.enter_async_context(
            state.admit(model, lambda: _as_streamed(prepare()))
        )
    except BaseException:
        await admission.aclose()
        raise
    return AdmittedStream(_events(state, model, prepared, admitted), admission)


def _as_streamed(prepared: PreparedTexts) -> PreparedTexts:
    """The parts as streams compute them, so that admission counts the right kind of work."""
    return replace(
        prepared, parts=tuple(streamed_part(part, lambda tokens: None) for part in prepared.parts)
    )


async def _events(
    state: RequestState, model: str, prepared: PreparedTexts, admitted: AdmittedWork
) -> AsyncIterator[str]:
    try:
        first = 0
        for number, split in enumerate(prepared.texts):
            last = first + len(split.sentences)
            found: list[tuple[Candidate, ...]] = []
            for index, part in enumerate(prepared.parts[first:last]):
                async for event in _grow(state, model, part, admitted):
                    if isinstance(event, str):
                        yield write_event(
                            "piece", {"text": number, "sentence": index, "so_far": event}
                        )
                    else:
                        found.append(event)
            first = last
            warning = await state.off_loop(partial(prepared.warn, number))
            whole = translation_reply(replace(prepared, texts=(split,)).assemble(found)[0], warning)
            yield write_event("translation", {"text": number, "translation": whole.model_dump()})
        yield write_event("done", {"model": model})
    except HeadwiseError as error:
        code = error.code if isinstance(error, Refusal) else "not_possible"
        yield write_event(
            "error", {"error": {"code": code, "message": error.en, "message_zh": error.zh}}
        )


async def _grow(
    state: RequestState, model: str, part: JobPart, admitted: AdmittedWork
) -> AsyncIterator[str | tuple[Candidate, ...]]:
    """The best hypothesis of one sentence at every step, then the result."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    write = part.run.translator.tokenizers.target.decode  # type: ignore[attr-defined]

    def watch(tokens: Sequence[int]) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, write(tokens))

    streamed = streamed_part(part, watch)
    answer = asyncio.ensure_future(state.submit(model, [streamed], admitted, watch_client=False))
    answer.add_done_callback(lambda _: queue.put_nowait(None))
    shown = ""
    try:
        while (so_far := await queue.get()) is not None:
            if so_far != shown:
                shown = so_far
                yield so_far
        yield (await answer)[0]
    finally:
        answer.cancel()


def write_event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
