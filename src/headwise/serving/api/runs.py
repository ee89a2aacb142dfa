"""`GET /v1/runs`, `/v1/runs/log`: lists the runs below the directory `--runs` and sends their logs,
while they train.
"""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query

from headwise.explorer.data.run_logs import NoRunError, declared_tasks, list_runs, read_run
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.language import LogReply, RunReply, RunsReply, RunTaskReply
from headwise.serving.state import State

router = APIRouter(tags=["runs"], responses=REFUSALS)


@router.get("/v1/runs")
async def runs(state: State) -> RunsReply:
    """The runs, newest first, with their results."""
    return await state.call(None, answer_runs, require_runs(state.settings.runs))


@router.get("/v1/runs/log")
async def log(
    state: State,
    name: Annotated[str, Query(min_length=1, max_length=300)],
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> LogReply:
    """Lines of a log from byte `after` on; ask again with the `offset` of the reply."""
    return await state.call(None, answer_log, require_runs(state.settings.runs), name, after)


def require_runs(directory: Path | None) -> Path:
    if directory is None:
        raise Refusal(
            404,
            "no_runs",
            en="this server shows no runs; start it with --runs DIR",
            zh="该服务器不展示训练；请以 --runs 目录 启动",
        )
    return directory


def answer_runs(directory: Path) -> RunsReply:
    listed = list_runs(directory)
    return RunsReply(
        runs=[RunReply(**run.as_dict()) for run in listed],
        tasks={
            word: RunTaskReply.model_validate(declared)
            for word, declared in declared_tasks(listed).items()
        },
    )


def answer_log(directory: Path, name: str, after: int) -> LogReply:
    try:
        return LogReply(**read_run(directory, name, after=after).as_dict())
    except NoRunError as error:
        raise Refusal(404, "no_run", en=error.en, zh=error.zh) from None
