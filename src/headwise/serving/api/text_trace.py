"""`POST /v1/trace` for a language model: the attention and predictions of one text.

The reply has the form of a translation's trace, with the text in place of the translation. There is
no source, no search and no tree; a request for them is refused. `/v1/row` uses parts of this file.
Tested against: explorer/data/language_model_trace.py.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headwise.explorer.data.language_model_trace import LanguageModelTrace, trace_text
from headwise.explorer.data.next_token_choices import Decision, TokenChoice
from headwise.explorer.data.trace_json import pack_map, pack_side
from headwise.explorer.data.translation_trace import MapChoice, TooManyValuesError
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.trace import (
    ChoiceReply,
    HypothesisReply,
    PresentReply,
    SideReply,
    StepReply,
    TraceBody,
    TraceMaps,
    TraceReply,
)
from headwise.serving.state import RequestState
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.language.language_model import LanguageModel

TRANSLATION_FIELDS = ("prefix", "prefix_tokens", "beam", "decoding", "tree", "passes")


def find_attention_model(state: RequestState, model: str | None) -> LoadedModel:
    """A translator or language model by name; without a name the first translator, or the first
    language model where there is no translator.
    """
    return state.find(model, kind=("translator", "language_model"))


def answer_text_trace(
    name: str, model: LanguageModel, body: TraceBody, language: str, *, is_over: Callable[[], bool]
) -> TraceReply:
    """The whole reply; runs on the model's worker. The text is read in one pass, so it never stops
    early.
    """
    for field in TRANSLATION_FIELDS:
        if getattr(body, field) != TraceBody.model_fields[field].get_default():
            raise Refusal(
                422,
                "not_possible",
                en=(
                    f"{field} belongs to translations, and a language model reads the text as it "
                    "is; leave it out"
                ),
                zh=f"{field} 用于翻译，而语言模型按原样阅读文本；请去掉它",
            )
    with refuse_too_many_values():
        found = trace_text(model, body.text, maps=map_choice(body.maps), num_alternatives=body.top)
    return _reply(name, body, found, language)


def _reply(name: str, body: TraceBody, found: LanguageModelTrace, language: str) -> TraceReply:
    chosen = TraceMaps() if body.maps is None else body.maps
    heads = None if chosen.heads is None else list(dict.fromkeys(chosen.heads))
    total = round(sum(found.log_probabilities), 6)
    read = HypothesisReply(
        text=body.text,
        tokens=list(found.tokens),
        pieces=list(found.predicted_pieces),
        score=round(total / len(found.log_probabilities), 6),
        log_probability=total,
        token_log_probabilities=[round(value, 6) for value in found.log_probabilities],
        finished=True,
    )
    return TraceReply(
        model=name,
        source_text=body.text,
        sentences=[body.text],
        warning=None,
        decoding=None,
        target_text=body.text,
        source=SideReply(**pack_side((), language)),
        target=SideReply(**pack_side(found.predicted_pieces, language)),
        target_input=SideReply(**pack_side(found.read_pieces, language)),
        prefix_length=len(found.tokens),
        n_best=[read],
        steps=[step_reply(decision) for decision in found.decisions],
        tree=None,
        passes=None,
        record=None,
        attention=[
            PresentReply(kind=kind, layer=layer, heads=heads)
            for kind, layer, heads in found.present
        ],
        maps=[pack_map(one, heads=heads, bits=chosen.bits) for one in found.maps],
    )


def map_choice(maps: TraceMaps | None) -> MapChoice | None:
    """The attention maps that the request asks for, each once."""
    if maps is None:
        return None
    return MapChoice(
        tuple(maps.kinds),
        None if maps.layers is None else tuple(maps.layers),
        None if maps.heads is None else tuple(dict.fromkeys(maps.heads)),
    )


@contextmanager
def refuse_too_many_values() -> Iterator[None]:
    """Refuse more weights than fit into a reply, with a code by which the page asks for fewer."""
    try:
        yield
    except TooManyValuesError as error:
        raise Refusal(422, "too_many_values", en=error.en, zh=error.zh) from None


def step_reply(decision: Decision) -> StepReply:
    def pack(choice: TokenChoice) -> ChoiceReply:
        return ChoiceReply(
            token=choice.token,
            piece=choice.piece,
            log_probability=max(-1e9, round(choice.log_probability, 6)),
        )

    return StepReply(
        chosen=pack(decision.chosen),
        rank=decision.rank,
        entropy=round(decision.entropy, 6),
        best=[pack(choice) for choice in decision.best],
    )
