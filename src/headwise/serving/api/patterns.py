"""`POST /v1/patterns`: the attention pattern of each kernel. `GET /v1/costs`: measured time and
memory of the kernels.
"""

from pathlib import Path

from fastapi import APIRouter

from headwise.explorer.data.attention_patterns import resize_example, show_pattern
from headwise.explorer.data.kernel_costs import find_costs, shipped_costs
from headwise.serving.schemas.attention import CostReply, CostsReply, PatternReply, PatternsBody
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.state import State

router = APIRouter(tags=["attention"], responses=REFUSALS)


@router.post("/v1/patterns")
async def patterns(body: PatternsBody, state: State) -> PatternReply:
    """The kernel's own weights on a short random example."""
    return await state.call(None, answer_pattern, body)


@router.get("/v1/costs")
async def costs(state: State) -> CostsReply:
    """Time and memory by length: measured on an H200, and in every `attention.json` under the
    directory of runs.
    """
    return await state.call(None, answer_costs, state.settings.runs)


def answer_pattern(body: PatternsBody) -> PatternReply:
    pattern = show_pattern(
        resize_example(body.kind, body.size),
        length=body.length,
        is_causal=body.causal,
        seed=body.seed,
    )
    return PatternReply(**pattern.as_dict())


def answer_costs(runs: Path | None) -> CostsReply:
    found = [shipped_costs(), *([] if runs is None else find_costs(runs))]
    return CostsReply(costs=[CostReply(**one) for one in found])
