"""`GET /healthz`: the process is alive. `GET /readyz`: the models are loaded and requests are
accepted.
"""

from fastapi import APIRouter, Response

from headwise.serving.schemas.models import StatusReply
from headwise.serving.state import State

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def is_alive() -> StatusReply:
    return StatusReply(status="alive")


@router.get(
    "/readyz", responses={503: {"model": StatusReply, "description": "starting or stopping"}}
)
async def is_ready(state: State, response: Response) -> StatusReply:
    if state.server.is_ready:
        return StatusReply(status="ready")
    response.status_code = 503
    if state.server.failure is not None:
        return StatusReply(status="broken")
    return StatusReply(status="stopping" if state.server.is_draining else "starting")
