"""`/metrics`: for Prometheus."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from headwise.serving.state import State

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse)
async def write_metrics(state: State) -> PlainTextResponse:
    """Counts, times, queues, memory."""
    text = state.server.metrics.write(state.server)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")
