"""A translation while it grows, as server-sent events.

    event: piece         data: {"text": 0, "sentence": 1, "so_far": "Der Hund"}       the best hypothesis as it stands
    event: translation   data: {"text": 0, "translation": {"text": …, "truncated": …, "n_best": […]}}
    event: done          data: {"model": "demo"}
    event: error         data: {"error": {"code", "message", "message_zh"}}           instead of the rest

Greedy search and sampling only append; in a beam the best hypothesis may change its mind, so the
whole of it is sent each time. A sentence is computed alone and waits in the queue like any other,
so a long stream does not hold up the rest. A place is taken before the first byte (a full server
still answers 503) and given back with the last. Tested: = the plain answer.
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
from headwise.serving.api.translation_replies import as_reply
from headwise.serving.http.errors import Refusal
from headwise.serving.state import ServerState
from headwise.serving.work.admission import Accepted
from headwise.serving.work.jobs import Part
from headwise.serving.work.search import Search, Watch
from headwise.serving.work.translation_jobs import Prepared
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


class HeldResponse(StreamingResponse):
    """A stream that gives back what it holds, whether it was read to the end or never begun."""

    def __init__(self, events: AsyncIterator[str], held: AsyncExitStack) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._held.aclose()


async def begin_stream(state: ServerState, model: str, cut: Callable[[], Prepared]) -> HeldResponse:
    """Take a place, cut the texts, and answer with a stream."""
    held = AsyncExitStack()
    try:
        prepared, accepted = await held.enter_async_context(
            state.admitted(model, lambda: _watched(cut()))
        )
    except BaseException:
        await held.aclose()
        raise
    return HeldResponse(_tell(state, model, prepared, accepted), held)


def _watched(prepared: Prepared) -> Prepared:
    """To be counted as what it is going to be."""
    return replace(
        prepared, parts=tuple(watch_part(part, lambda tokens: None) for part in prepared.parts)
    )


async def _tell(
    state: ServerState, model: str, prepared: Prepared, accepted: Accepted
) -> AsyncIterator[str]:
    try:
        first = 0
        for number, split in enumerate(prepared.texts):
            last = first + len(split.sentences)
            found: list[tuple[Candidate, ...]] = []
            for place, part in enumerate(prepared.parts[first:last]):
                async for event in _grow(state, model, part, accepted):
                    if isinstance(event, str):
                        yield write_event(
                            "piece", {"text": number, "sentence": place, "so_far": event}
                        )
                    else:
                        found.append(event)
            first = last
            warning = await state.beside(partial(prepared.warn, number))
            whole = as_reply(replace(prepared, texts=(split,)).assemble(found)[0], warning)
            yield write_event("translation", {"text": number, "translation": whole.model_dump()})
        yield write_event("done", {"model": model})
    except HeadwiseError as error:
        code = error.code if isinstance(error, Refusal) else "not_possible"
        yield write_event(
            "error", {"error": {"code": code, "message": error.en, "message_zh": error.zh}}
        )


async def _grow(
    state: ServerState, model: str, part: Part, accepted: Accepted
) -> AsyncIterator[str | tuple[Candidate, ...]]:
    """The best hypothesis of one sentence at every step, then what was found."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    write = part.run.translator.tokenizers.target.decode  # type: ignore[attr-defined]

    def watch(tokens: Sequence[int]) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, write(tokens))

    alone = watch_part(part, watch)
    answer = asyncio.ensure_future(state.deliver(model, [alone], accepted, watch_client=False))
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


def watch_part(part: Part, watch: Watch) -> Part:
    """A sentence that is computed alone and shows itself as it grows."""
    search: Search = part.run  # type: ignore[assignment]
    kind = f"{search.settings.kind}, streamed"
    return replace(part, run=replace(search, watch=watch), flow=None, key=None, kind=kind)


def write_event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
