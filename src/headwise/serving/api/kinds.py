"""`GET /v1/kinds`: every attention kernel, score, position encoding, norm and feed-forward network
that recipes can name.
"""

from fastapi import APIRouter

from headwise.attention.choices import attention_kinds
from headwise.attention.score_choices import NORMALIZERS, score_kinds
from headwise.blocks.choices import FEED_FORWARDS, norm_kinds
from headwise.explorer.data.attention_calculation import EXAMPLES
from headwise.positions.choices import position_kinds
from headwise.serving.schemas.attention import KindsReply
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.state import State

router = APIRouter(tags=["attention"], responses=REFUSALS)


@router.get("/v1/kinds")
async def kinds(state: State) -> KindsReply:
    """What each kind declares about itself; the page has no list of its own."""
    return await state.call(None, answer_kinds)


def answer_kinds() -> KindsReply:
    choices = {
        "attention": attention_kinds().values(),
        "scores": dict.fromkeys(score_kinds().values()),
        "weights": NORMALIZERS,
        "positions": position_kinds().values(),
        "norms": norm_kinds().values(),
        "feed_forwards": FEED_FORWARDS,
    }
    declared = {name: [kind.declare() for kind in found] for name, found in choices.items()}
    examples = {name: example.score for name, example in EXAMPLES.items()}
    return KindsReply.model_validate({**declared, "examples": examples})
