"""`POST /v1/memory`: which stored examples decided each token of a translation.

The numbers are those of `headwise translate --memory --json`. Stored sentences are told with the
word of the deciding token marked, and cut around it if they are long. Of a corpus only the name of
its file is told, not where it lies. Tested against that command; bounds and refusals.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fastapi import APIRouter

from headwise.decoding.choices import DecodingSettings
from headwise.explorer.data.memory_trace import MemoryPlace, mark_word, trace_memory
from headwise.explorer.data.trace_json import pack_side
from headwise.serving.api.decoding_options import choose_settings
from headwise.serving.api.memory_options import add_memory
from headwise.serving.api.trace import count_steps
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.limits import MAX_EXAMPLE_CHARACTERS
from headwise.serving.schemas.memory import (
    MemoryBody,
    MemoryPlaceReply,
    MemoryReply,
    StoredExampleReply,
)
from headwise.serving.schemas.trace import ChoiceReply, SideReply
from headwise.serving.schemas.translation import MemoryOptions, warning_reply
from headwise.serving.state import RequestState, State
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.search import stop_if
from headwise.tasks.translation.memory import ExampleVote
from headwise.tasks.translation.translator import Translator
from headwise.text.sentence_splitting import split_text

router = APIRouter(tags=["look inside"], responses=REFUSALS)


@router.post("/v1/memory")
async def tell_memory(body: MemoryBody, state: State) -> MemoryReply:
    """What the memory of a model said at every token of the translation of one sentence."""
    model = find_remembering(state, body.model)
    settings = choose_settings(model.value.recipe.decoding, body.decoding, n_best=1)
    settings = add_memory(settings, model, MemoryOptions(weight=body.weight))
    size = partial(count_steps, model.value, body.text, width=2 * settings.num_hypotheses)
    return await state.call_stoppable(model, size, answer_memory, body, settings)


def find_remembering(state: RequestState, name: str | None) -> LoadedModel:
    """A translator by name; without one the first that has a memory."""
    translators = [one for one in state.models.values() if one.kind == "translator"]
    with_one = next((one.name for one in translators if one.memory is not None), None)
    return state.find(name or with_one, kind="translator")


def answer_memory(
    name: str,
    translator: Translator,
    body: MemoryBody,
    settings: DecodingSettings,
    *,
    is_over: Callable[[], bool],
) -> MemoryReply:
    """The whole reply; runs on the model's worker."""
    found = trace_memory(
        translator, body.text, settings, num_examples=body.examples, before_step=stop_if(is_over)
    )
    return MemoryReply(
        model=name,
        decoding=settings.kind,
        source_text=body.text,
        sentences=list(split_text(body.text, language=translator.source_language).sentences),
        warning=warning_reply(translator.check_input(body.text, translator.encode(body.text))),
        target_text=found.text,
        text_alone=found.text_alone,
        neighbours=found.mixing.neighbours,
        temperature=found.mixing.temperature,
        target=SideReply(**pack_side(found.pieces, translator.target_language)),
        places=[_place(translator, one) for one in found.places],
    )


def _place(translator: Translator, place: MemoryPlace) -> MemoryPlaceReply:
    votes = place.votes
    best = place.model_best
    told = sum(one.share for one in votes.votes)
    return MemoryPlaceReply(
        token=place.token,
        piece=votes.piece,
        weight=round(votes.weight, 6),
        model_probability=round(votes.alone, 6),
        memory_probability=round(votes.remembered, 6),
        probability=round(votes.mixed, 6),
        model_best=ChoiceReply(
            token=best.token,
            piece=best.piece,
            log_probability=max(-1e9, round(best.log_probability, 6)),
        ),
        changed=place.is_changed,
        examples=[_example(translator, place.token, one) for one in votes.votes],
        left_out=place.num_neighbours - len(votes.votes),
        left_out_share=round(max(0.0, 1 - told), 6),
    )


def _example(translator: Translator, written: int, vote: ExampleVote) -> StoredExampleReply:
    entry, most = vote.entry, MAX_EXAMPLE_CHARACTERS
    marked = mark_word(
        translator.tokenizers.target, entry.target, position=entry.position, token=entry.token
    )
    return StoredExampleReply(
        piece=vote.piece,
        agrees=entry.token == written,
        share=round(vote.share, 6),
        distance=round(vote.distance, 6),
        corpus=Path(entry.corpus).name,
        line=entry.line,
        source=cut_end(entry.source, 2 * most),
        before=cut_begin(marked.before, most if marked.word else 2 * most),
        word=cut_end(marked.word, most),
        after=cut_end(marked.after, most),
    )


def cut_end(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_begin(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[1 - most :]}"
