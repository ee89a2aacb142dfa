"""`POST /v1/exposure`: how a translator goes on after a wrong beginning, beside the right one.

The numbers are those of `headwise exposure` for one sentence. A model that writes all words at once
never reads its own, and is refused. Memories take no part. Tested against that command's parts.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import APIRouter

from headwise.comparing.models_in_turn import check_steps
from headwise.decoding.rules.phrases import encode_prefix
from headwise.explorer.data.next_token_choices import TokenChoice
from headwise.explorer.data.trace_json import pack_side
from headwise.explorer.data.wrong_beginning import ForcedTranslation, WrongBeginning, continue_both
from headwise.serving.api.decoding_options import choose_settings
from headwise.serving.api.trace import check_length, count_steps
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.exposure import (
    DriftReply,
    ExposureBody,
    ExposureReply,
    ForcedReply,
    RankedTokenReply,
)
from headwise.serving.schemas.limits import MAX_BEGINNING_TOKENS
from headwise.serving.schemas.trace import ChoiceReply, SideReply
from headwise.serving.schemas.translation import warning_reply
from headwise.serving.state import State
from headwise.serving.work.search import stop_if
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.wrong_prefix import greedy_settings
from headwise.text.sentence_splitting import split_text

SEARCHES = 6
"""Three searches, and as many readings of what they wrote."""

router = APIRouter(tags=["look inside"], responses=REFUSALS)


@router.post("/v1/exposure")
async def expose(body: ExposureBody, state: State) -> ExposureReply:
    """One sentence continued after a right and after a wrong beginning."""
    model = state.find(body.model, kind="translator")
    check_steps(model.value, model.name)
    size = partial(count_steps, model.value, body.text, width=SEARCHES)
    return await state.call_stoppable(model, size, answer_exposure, body)


def answer_exposure(
    name: str, translator: Translator, body: ExposureBody, *, is_over: Callable[[], bool]
) -> ExposureReply:
    """The whole reply; runs on the model's worker."""
    if body.reference.strip():
        check_length(translator, body.reference)
    found = continue_both(
        translator,
        body.text,
        choose_settings(greedy_settings(translator), None, n_best=1),
        wrong=body.wrong_tokens or _encode(translator, body.wrong.strip()),
        reference=body.reference,
        num_likely=body.likely,
        before_step=stop_if(is_over),
    )
    language = translator.target_language
    return ExposureReply(
        model=name,
        source_text=body.text,
        sentences=list(split_text(body.text, language=translator.source_language).sentences),
        warning=warning_reply(translator.check_input(body.text, translator.encode(body.text))),
        target_text=found.own,
        likely=[ChoiceReply(**_choice(one)) for one in found.likely],
        right=_continuation(found.right, language),
        wrong=_continuation(found.wrong, language),
        same=found.num_same,
        positions=_positions(found),
    )


def _encode(translator: Translator, wrong: str) -> tuple[int, ...]:
    tokens = encode_prefix(wrong, translator.tokenizers.target)
    if len(tokens) > MAX_BEGINNING_TOKENS:
        raise Refusal(
            422,
            "too_long",
            en=(
                f"the wrong beginning has {len(tokens)} tokens, at most {MAX_BEGINNING_TOKENS} are "
                "forced; give one word"
            ),
            zh=(
                f"错误的开头有 {len(tokens)} 个词元，最多强制 {MAX_BEGINNING_TOKENS} 个；"
                "请只给出一个词"
            ),
        )
    return tokens


def _choice(one: TokenChoice) -> dict[str, Any]:
    value = max(-1e9, round(one.log_probability, 6))
    return {"token": one.token, "piece": one.piece, "log_probability": value}


def _continuation(one: ForcedTranslation, language: str) -> ForcedReply:
    tokens = [RankedTokenReply(**_choice(step.chosen), rank=step.rank) for step in one.steps]
    return ForcedReply(
        text=one.text,
        forced=one.num_forced,
        finished=one.finished,
        side=SideReply(**pack_side([token.piece for token in tokens], language)),
        tokens=tokens,
    )


def _positions(found: WrongBeginning) -> list[DriftReply] | None:
    if found.agreement is None:
        return None
    numbers = zip(
        found.agreement.agreement,
        found.agreement.total_variation,
        found.agreement.cosine,
        strict=True,
    )
    return [
        DriftReply(
            reference=reference,
            own=own,
            agreement=agreement > 0.5,
            total_variation=round(distance, 6),
            cosine=round(cosine, 6),
        )
        for (reference, own), (agreement, distance, cosine) in zip(found.read, numbers, strict=True)
    ]
