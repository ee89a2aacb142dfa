"""`POST /v1/trace`: one translated sentence with its search, alternatives and attention.
`POST /v1/occlude`: how much each source word matters.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.results import WrittenPass
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.decoding.rules.phrases import encode_prefix
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.length_penalty import AverageLength, WuLength
from headwise.explorer.data.next_token_choices import name_token
from headwise.explorer.data.occlusion import occlude
from headwise.explorer.data.search_tree import SearchNode, SearchTree
from headwise.explorer.data.trace_json import pack_map, pack_side
from headwise.explorer.data.translation_trace import TranslationTrace, check_prefix, trace_sentence
from headwise.explorer.data.word_grouping import group_pieces
from headwise.serving.api.decoding_options import choose_settings
from headwise.serving.api.record_reply import record_reply
from headwise.serving.api.text_trace import (
    answer_text_trace,
    find_attention_model,
    map_choice,
    refuse_too_many_values,
    step_reply,
)
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.limits import MAX_TOKENS
from headwise.serving.schemas.trace import (
    HypothesisReply,
    NodeReply,
    OccludeBody,
    OccludeReply,
    PassReply,
    PresentReply,
    ReadTokenReply,
    SideReply,
    TraceBody,
    TraceMaps,
    TraceReply,
    TreeReply,
    WrittenTokenReply,
)
from headwise.serving.schemas.translation import warning_reply
from headwise.serving.state import State
from headwise.serving.work.search import stop_if
from headwise.serving.work.translation_jobs import MIN_STEPS
from headwise.tasks.translation.translator import Translator
from headwise.text.phrase_matching import on_one_line
from headwise.text.sentence_splitting import split_text

MAX_OCCLUDED = 128
"""Tokens of a sentence, and of its translation, for leaving out words one by one."""

router = APIRouter(tags=["look inside"], responses=REFUSALS)


@router.post("/v1/trace")
async def trace(body: TraceBody, state: State) -> TraceReply:
    """Everything about the translation of one sentence; for a language model, about one text."""
    model = find_attention_model(state, body.model)
    if model.kind == "language_model":
        return await state.call_stoppable(
            model, lambda: len(body.text), answer_text_trace, body, model.language or ""
        )
    size = partial(count_steps, model.value, body.text, width=body.beam.size)
    return await state.call_stoppable(model, size, answer_trace, body)


@router.post("/v1/occlude")
async def occlude_words(body: OccludeBody, state: State) -> OccludeReply:
    """Leave out each source word in turn; the reply tells how much less probable the translation
    becomes.
    """
    model = state.find(body.model, kind="translator")
    return await state.call_stoppable(
        model, partial(count_occlusion, model.value, body), answer_occlusion, body
    )


def count_steps(translator: Translator, text: str, *, width: int = 1) -> int:
    """Tokens × hypotheses of a search."""
    return (check_length(translator, text) + MIN_STEPS) * width


def count_occlusion(translator: Translator, body: OccludeBody) -> int:
    """The translation is scored once for each word: tokens × words."""
    _refuse_many(check_length(translator, body.text))
    source = translator.tokenizers.source.encode(body.text)
    words = group_pieces(tuple(translator.tokenizers.source.pieces(source)))
    num_target = len(source) if body.tokens is None else len(body.tokens)
    return (len(words.text) + 1) * (num_target + MIN_STEPS)


def answer_trace(
    name: str, translator: Translator, body: TraceBody, *, is_over: Callable[[], bool]
) -> TraceReply:
    """The whole reply; runs on the model's worker."""
    prefix = body.prefix_tokens or encode_prefix(body.prefix.strip(), translator.tokenizers.target)
    settings = traced_settings(translator.recipe.decoding, body)
    with refuse_too_many_values():
        found = trace_sentence(
            translator,
            body.text,
            settings,
            prefix=prefix,
            maps=map_choice(body.maps),
            num_alternatives=body.top,
            before_step=stop_if(is_over),
        )
    return _reply(name, translator, body, found, num_forced=len(prefix))


def traced_settings(recipe: DecodingSettings, body: TraceBody) -> DecodingSettings:
    """The decoding that is asked for, or a beam search. A model that does not generate token by
    token has no beam; without a decoding it is traced with the settings that answer
    `/v1/translate`.
    """
    if body.decoding is not None or not recipe.over_steppers:
        return choose_settings(recipe, body.decoding, n_best=1)
    beam = body.beam
    penalty = {"average": AverageLength, "wu": WuLength}[beam.penalty](alpha=beam.alpha)
    return BeamSettings(
        size=beam.size,
        num_best=beam.size,
        length_penalty=penalty,
        max_length=LengthLimit(factor=2.0, extra=20, limit=MAX_TOKENS),
    )


def answer_occlusion(
    name: str, translator: Translator, body: OccludeBody, *, is_over: Callable[[], bool]
) -> OccludeReply:
    before_step = stop_if(is_over)
    source = translator.tokenizers.source.encode(body.text)
    tokens = body.tokens
    if tokens is None:
        tokens = list(
            trace_sentence(
                translator,
                body.text,
                traced_settings(translator.recipe.decoding, TraceBody(text=body.text)),
                before_step=before_step,
            ).tokens
        )
    check_prefix(translator, tokens)
    _refuse_many(len(tokens))
    found = occlude(translator, source, tokens, before_step=before_step)
    return OccludeReply(
        model=name,
        sentences=list(split_text(body.text, language=translator.source_language).sentences),
        words=list(found.words),
        pieces=list(found.pieces),
        log_probability=round(found.log_probability, 6),
        totals=found.totals.round(6).tolist(),
        changes=found.changes.round(6).tolist(),
    )


def _refuse_many(count: int) -> None:
    """The cost grows with the square of the length: each word needs the translation scored once
    more.
    """
    if count > MAX_OCCLUDED:
        raise Refusal(
            422,
            "too_long",
            en=(
                f"words are left out of sentences of at most {MAX_OCCLUDED} pieces, this one or "
                f"its translation has {count}; give a shorter one"
            ),
            zh=(
                f"只在最多 {MAX_OCCLUDED} 个词元的句子中逐词去除，该句或其译文有 {count} 个；"
                "请给出更短的句子"
            ),
        )


def check_length(translator: Translator, text: str) -> int:
    """The number of tokens; none or too many are refused."""
    count = len(translator.tokenizers.source.encode(text)) if text.strip() else 0
    if not count:
        raise Refusal(
            422, "empty", en="the sentence is empty; give some words", zh="句子为空；请给出一些词"
        )
    if count > MAX_TOKENS:
        raise Refusal(
            422,
            "too_long",
            en=(
                f"the sentence has {count:,} pieces, at most {MAX_TOKENS} are traced; give a "
                "shorter one"
            ),
            zh=f"句子有 {count:,} 个词元，最多跟踪 {MAX_TOKENS} 个；请给出更短的句子",
        )
    return count


def _reply(
    name: str, translator: Translator, body: TraceBody, found: TranslationTrace, *, num_forced: int
) -> TraceReply:
    source, target = translator.source_language, translator.target_language
    chosen = TraceMaps() if body.maps is None else body.maps
    heads = None if chosen.heads is None else list(dict.fromkeys(chosen.heads))
    return TraceReply(
        model=name,
        source_text=body.text,
        sentences=list(split_text(body.text, language=source).sentences),
        warning=warning_reply(translator.check_input(body.text, translator.encode(body.text))),
        decoding=found.decoding,
        target_text=on_one_line(found.texts[0]),
        source=SideReply(**pack_side(found.source_pieces, source)),
        target=SideReply(**pack_side(found.target_pieces, target)),
        target_input=SideReply(**pack_side(found.target_input_pieces, target)),
        prefix_length=num_forced,
        n_best=_hypotheses(translator, found),
        steps=[step_reply(decision) for decision in found.decisions],
        tree=_tree(translator, found.tree) if body.tree and found.tree is not None else None,
        passes=_passes(translator, found.passes) if body.passes and found.passes else None,
        record=(
            record_reply(found.record, translator.tokenizers.target)
            if body.passes and found.record is not None
            else None
        ),
        attention=[
            PresentReply(kind=kind, layer=layer, heads=heads)
            for kind, layer, heads in found.present
        ],
        maps=[pack_map(one, heads=heads, bits=chosen.bits) for one in found.maps],
    )


def _hypotheses(translator: Translator, found: TranslationTrace) -> list[HypothesisReply]:
    return [
        HypothesisReply(
            text=on_one_line(text),
            tokens=list(one.tokens),
            pieces=[
                *translator.tokenizers.target.pieces(one.tokens),
                *(["</s>"] if one.finished else []),
            ],
            score=round(one.score, 6),
            log_probability=round(one.log_probability, 6),
            token_log_probabilities=[round(value, 6) for value in one.token_log_probabilities],
            finished=one.finished,
        )
        for one, text in zip(found.hypotheses, found.texts, strict=True)
    ]


def _passes(translator: Translator, passes: Sequence[WrittenPass]) -> list[PassReply]:
    name = partial(name_token, translator.tokenizers.target)
    replies = []
    for one in passes:
        chances = one.deletion_probabilities or (None,) * len(one.before)
        before = [
            ReadTokenReply(
                token=token,
                piece=name(token),
                deleted=deleted,
                deletion_probability=None if chance is None else round(chance, 6),
            )
            for token, deleted, chance in zip(one.before, one.deleted, chances, strict=True)
        ]
        after = [
            WrittenTokenReply(
                token=token, piece=name(token), log_probability=round(value, 6), is_new=is_new
            )
            for token, value, is_new in zip(
                one.tokens, one.log_probabilities, one.is_new, strict=True
            )
        ]
        replies.append(PassReply(before=before, after=after))
    return replies


def _tree(translator: Translator, tree: SearchTree) -> TreeReply:
    def pack(node: SearchNode) -> dict[str, Any]:
        numbers = {
            key: round(getattr(node, key), 6) for key in ("log_probability", "total", "score")
        }
        return {
            **vars(node),
            **numbers,
            "piece": name_token(translator.tokenizers.target, node.token),
        }

    return TreeReply(
        nodes=[NodeReply(**pack(node)) for node in tree.nodes], leaves=list(tree.leaves)
    )
