"""The trace of one translation: its search tree or passes, choices at every step, and attention.

The explorer's page asks for it. Only the parts that the page asks for are computed, and a reply has
at most MAX_VALUES weights, because attention of long sentences is large (6 layers × 8 heads × 512²
× 3 kinds = 38 million numbers). For more, the page asks for a few layers or heads at a time.

Tested against: the parts it is made of, and its limit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.records import Record
from headwise.decoding.results import Hypothesis, WrittenPass
from headwise.decoding.rules.phrases import encode_phrases
from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import MAP_KINDS, AttentionMap, MapKind
from headwise.explorer.data.next_token_choices import Decision, describe_steps
from headwise.explorer.data.search_tree import SearchTree, build_tree
from headwise.explorer.data.translation_maps import maps_of
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.tasks.translation.translator import Translator

MAX_VALUES = 4_000_000


@dataclass(frozen=True)
class MapChoice:
    """Which weights are wanted; None means all."""

    kinds: tuple[MapKind, ...] = MAP_KINDS
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TranslationTrace:
    """The trace of one sentence."""

    text: str
    decoding: str
    """The kind of decoding that was traced."""
    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]
    target_input_pieces: tuple[str, ...]
    tokens: tuple[int, ...]
    hypotheses: tuple[Hypothesis, ...]
    texts: tuple[str, ...]
    """The texts of the hypotheses."""
    tree: SearchTree | None
    """None if the decoding records no tree (`GenerationSettings.can_trace`)."""
    passes: tuple[WrittenPass, ...]
    """What each pass wrote; empty if the decoding has no passes (`records_passes`)."""
    record: Record | None
    """What was considered beside it; None if the decoding keeps no record (`keeps_record`)."""
    decisions: tuple[Decision, ...]
    maps: tuple[AttentionMap, ...]
    present: tuple[tuple[MapKind, int, int], ...]
    """The maps that the model has: kind, layer, number of heads. Empty if no maps were wanted."""


def trace_sentence(
    translator: Translator,
    text: str,
    settings: DecodingSettings,
    *,
    prefix: Sequence[int] = (),
    maps: MapChoice | None = None,
    num_alternatives: int = 0,
    before_step: Callable[[], None] | None = None,
) -> TranslationTrace:
    """Translate one sentence, beginning with `prefix` (token ids), and return what was asked for.

    `before_step` is called before every step and may stop the work by raising an exception.
    """
    source = translator.tokenizers.source.encode(text) if text.strip() else []
    if not source:
        raise UsageError("the sentence is empty; give some words", "句子为空；请给出一些词")
    check_prefix(translator, prefix)
    settings = translator.within_positions(settings)
    phrases = replace(encode_phrases(settings, translator.tokenizers.target), prefix=tuple(prefix))
    (result,) = translator.generator(settings).generate(
        [source],
        settings,
        phrases,
        traced=settings.is_traceable,
        watcher=Watcher(before_step),
    )
    best, decoder = result.best, translator.tokenizers.target
    decisions: tuple[Decision, ...] = ()
    if num_alternatives:
        decisions = describe_steps(
            translator,
            source,
            best.tokens,
            num_best=num_alternatives,
            finished=best.finished,
            before_step=before_step,
        )
    every = () if maps is None else all_maps(translator, source, best.tokens)
    return TranslationTrace(
        text=text,
        decoding=settings.kind,
        source_pieces=(*translator.tokenizers.source.pieces(source), "</s>"),
        target_pieces=(*decoder.pieces(best.tokens), "</s>"),
        target_input_pieces=translator.decoder_pieces(best.tokens),
        tokens=best.tokens,
        hypotheses=result.hypotheses,
        texts=tuple(decoder.decode(hypothesis.tokens) for hypothesis in result.hypotheses),
        tree=None if result.trace is None else build_tree(result.trace, result.hypotheses),
        passes=result.passes,
        record=result.record,
        decisions=decisions,
        maps=() if maps is None else choose_maps(every, maps),
        present=tuple((one.kind, one.layer, len(one.weights)) for one in every),
    )


def all_maps(
    translator: Translator, source: Sequence[int], target: Sequence[int]
) -> tuple[AttentionMap, ...]:
    """Every map of the model; a model without attention has none."""
    model = translator.recipe.model
    if isinstance(model, RecurrentTranslatorSettings) and model.attention.kind == "none":
        return ()
    return maps_of(translator.trace(source, target))


def choose_maps(every: Sequence[AttentionMap], choice: MapChoice) -> tuple[AttentionMap, ...]:
    """The maps that were asked for; refused if they hold too many weights."""
    found = [one for one in every if one.kind in choice.kinds]
    num_layers = max((one.layer + 1 for one in found), default=0)
    absent = [layer for layer in choice.layers or () if found and layer >= num_layers]
    if absent:
        raise UsageError(
            f"there is no layer {absent[0]}; there are {num_layers}, counted from 0",
            f"没有第 {absent[0]} 层；共有 {num_layers} 层，从 0 开始编号",
        )
    found = [one for one in found if choice.layers is None or one.layer in choice.layers]
    missing = [
        head
        for head in choice.heads or ()
        if found and head >= min(len(one.weights) for one in found)
    ]
    if missing:
        raise UsageError(
            f"there is no head {missing[0]}; heads count from 0",
            f"没有注意力头 {missing[0]}；头从 0 开始编号",
        )
    count = sum(
        one.weights[0].size * (len(one.weights) if choice.heads is None else len(choice.heads))
        for one in found
    )
    if count > MAX_VALUES:
        raise TooManyValuesError(
            f"this asks for {count:,} attention weights, at most {MAX_VALUES:,} are sent; ask for "
            "fewer kinds, layers or heads",
            f"这需要 {count:,} 个注意力权重，最多发送 {MAX_VALUES:,} 个；请减少种类、层或头",
        )
    return tuple(found)


class TooManyValuesError(UsageError):
    """More weights than one reply holds; the page may ask for fewer."""


def check_prefix(translator: Translator, prefix: Sequence[int]) -> None:
    """Refuse token ids outside the vocabulary."""
    size = translator.tokenizers.target.size
    if any(not 0 <= token < size for token in prefix):
        raise UsageError(
            f"the prefix holds a token outside the vocabulary; tokens are 0 to {size - 1}",
            f"前缀含有词表之外的词元；词元编号为 0 到 {size - 1}",
        )
