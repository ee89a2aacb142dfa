"""One row of a model's attention with all its numbers, from the query to the output.

    products_j = q · k_j
    scores_j   = products_j / √head_dim (+ bias_j)      masked keys are left out
    weights_j  = exp(scores_j − max) / Σ …
    output     = Σ_j weights_j v_j

q is the query, k_j and v_j are the key and value at position j. One pass over the finished
translation captures the queries, keys, values and mask that the layer of the loaded model receives.
The weights and the output are the layer's own; the steps between are recomputed and must give the
same weights. If a kernel is no softmax of such scores (linear, Linformer …), `is_softmax` is false,
and only its products and weights are shown.

Tested against: the map of the same row (attention/taps.py), the layer's own output, softmax by
hand.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.attention.biases import Bias, VectorBias, dense_bias
from headwise.attention.masks import Mask
from headwise.attention.multi_head import MultiHeadAttention
from headwise.decoding.generator import Watcher
from headwise.decoding.rules.length_limit import cap_limit
from headwise.decoding.rules.phrases import encode_phrases
from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import MapKind
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.parallel.translator import ParallelTranslator
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import BOS, EOS

MAX_PIECES = 512
"""The most tokens of a text and of its translation: as many as a server translates."""
MAX_KEYS = MAX_PIECES + 1
"""The most keys: the tokens and the special token at the beginning or the end."""
MAX_NUMBERS = 8192
"""The most numbers of keys and of values in a reply; longer rows show their first dimensions."""
TOLERANCE = 1e-4
NAMES: dict[MapKind, str] = {
    "encoder_self": "encoder.{}.self",
    "decoder_self": "decoder.{}.self",
    "cross": "decoder.{}.cross",
}


@dataclass(frozen=True)
class LayerInputs:
    """What a layer received, as its kernel sees it: [1, head, …, head_dim]."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Mask
    bias: Bias | None
    weights: Tensor
    output: Tensor


@dataclass(frozen=True)
class AttentionRow:
    """All numbers of one query in one head; the lists run over the keys."""

    query_pieces: tuple[str, ...]
    key_pieces: tuple[str, ...]
    query: int
    head_dim: int
    q: list[float]
    keys: list[list[float]]
    values: list[list[float]]
    products: list[float]
    bias: list[float] | None
    scores: list[float]
    visible: list[bool]
    exponentials: list[float] | None
    weights: list[float]
    output: list[float]
    is_softmax: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "query_pieces": list(self.query_pieces),
            "key_pieces": list(self.key_pieces),
        }


def count_layers(translator: Translator) -> dict[str, int]:
    """The number of layers of each kind and of heads: what may be chosen."""
    model = require_attention(translator)
    heads = max(layer.num_heads for layer in model.attention_layers().values())
    return {
        "encoder_self": len(model.encoder),
        "decoder_self": len(model.decoder),
        "cross": len(model.decoder),
        "heads": heads,
    }


def require_attention(translator: Translator) -> EncoderDecoder:
    model = translator.model
    if not isinstance(model, EncoderDecoder):
        raise UsageError(
            "rows are opened up in a Transformer, and this model is "
            f"{translator.recipe.model.kind!r}; choose another model",
            f"只有 Transformer 的注意力行可以展开，而该模型是 {translator.recipe.model.kind!r}；"
            "请换一个模型",
        )
    return model


def refuse_other_positions(model: EncoderDecoder) -> None:
    """Refuse a decoder whose positions are not those of the pieces."""
    if isinstance(model, ParallelTranslator) and model.factor:
        raise UsageError(
            f"the decoder of this model has {model.factor} positions for each source token, not "
            "one for each piece of the translation; ask for kind=encoder_self",
            f"该模型的解码器对每个源词元有 {model.factor} 个位置，与译文的子词并不一一对应；"
            "请使用 kind=encoder_self",
        )


def calculate_row(
    translator: Translator,
    text: str,
    *,
    kind: MapKind = "cross",
    layer: int = -1,
    head: int = 0,
    query: int = 0,
    target: str | None = None,
    before_step: Callable[[], None] | None = None,
) -> AttentionRow:
    """The row of piece number `query`. Without a target, the model's own translation is used. Layer
    -1 is the highest.

    Arguments are checked before the model does any work. `before_step` is called before every step
    of the search and may stop the work by raising an exception.
    """
    model = require_attention(translator)
    if kind != "encoder_self":
        refuse_other_positions(model)
    source_ids = translator.tokenizers.source.encode(text)
    if not source_ids:
        raise UsageError("the text is empty; give a sentence", "文本为空；请给出一个句子")
    check_within(
        "tokens", "词元数", len(source_ids) + 1, 1, min(MAX_KEYS, translator.longest_source.tokens)
    )
    layers = len(model.encoder) if kind == "encoder_self" else len(model.decoder)
    number = layers - 1 if layer == -1 else layer
    check_within("layer", "层", number, 0, layers - 1)
    attention = model.attention_layers()[NAMES[kind].format(number)]
    check_within("head", "头", head, 0, attention.num_heads - 1)
    if kind == "encoder_self":
        check_within("query", "查询", query, 0, len(source_ids))
    if target is None:
        target_ids = translate(translator, source_ids, before_step=before_step)
    else:
        target_ids = translator.tokenizers.target.encode(target)
    check_within("tokens", "词元数", len(target_ids) + 1, 1, MAX_KEYS)
    source, target_tokenizer = translator.tokenizers.source, translator.tokenizers.target
    source_pieces = (*source.pieces(source_ids), "</s>")
    written = (*target_tokenizer.pieces(target_ids), "</s>")
    query_pieces = source_pieces if kind == "encoder_self" else written
    check_within("query", "查询", query, 0, len(query_pieces) - 1)
    device = model.output.weight.device
    source_row, target_row = (
        torch.tensor([[*source_ids, EOS]], device=device),
        torch.tensor([[BOS, *target_ids]], device=device),
    )
    caught = capture_layer_inputs(attention, lambda: model.attention_maps(source_row, target_row))
    own = translator.decoder_pieces(target_ids)
    key_pieces = own if kind == "decoder_self" else source_pieces
    if kind != "encoder_self" and isinstance(model, ParallelTranslator) and model.edits is not None:
        # A decoder that edits also reads the beginning of the sentence, at the first position.
        query, query_pieces = query + 1, ("<s>", *query_pieces)
        key_pieces = ("<s>", *own) if kind == "decoder_self" else source_pieces
    return calculate_steps(
        caught, head=head, query=query, query_pieces=query_pieces, key_pieces=key_pieces
    )


def translate(
    translator: Translator, source: Sequence[int], *, before_step: Callable[[], None] | None
) -> list[int]:
    """The tokens of the best translation, with the search of the recipe."""
    settings = translator.within_positions(translator.recipe.decoding)
    settings = settings.model_copy(
        update={"max_length": cap_limit(settings.max_length, MAX_PIECES)}
    )
    phrases = encode_phrases(settings, translator.tokenizers.target)
    (result,) = translator.generator(settings).generate(
        [source], settings, phrases, watcher=Watcher(before_step)
    )
    return list(result.best.tokens)


def check_within(name: str, zh: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(
            f"{name} {value} was asked for; choose {low} to {high}",
            f"{zh}为 {value}；请选择 {low} 到 {high}",
        )


@torch.inference_mode()
def capture_layer_inputs(layer: MultiHeadAttention, read: Callable[[], object]) -> LayerInputs:
    """Run one forward pass and return what the given layer received in it."""
    found: list[LayerInputs] = []

    def look(_: Any, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        x, memory, mask = inputs
        bias: Bias | None = None
        if memory is x:
            q, k, v = layer.queries_keys_values(x, named.get("position"), length=x.shape[1])
            if layer.relation is not None:
                bias = layer.relation.bias(q, num_keys=k.shape[2], offset=0)
        else:
            q = layer.queries(x)
            k, v = layer.keys_values(memory)
        weights = layer.weights(x, memory, mask, **named)
        found.append(
            LayerInputs(q, k, v, mask, bias, weights, layer.kernel(q, k, v, mask, bias=bias))
        )

    handle = layer.register_forward_pre_hook(look, with_kwargs=True)
    try:
        read()
    finally:
        handle.remove()
    return found[0]


def calculate_steps(
    caught: LayerInputs,
    *,
    head: int,
    query: int,
    query_pieces: tuple[str, ...],
    key_pieces: tuple[str, ...],
) -> AttentionRow:
    """The steps of one row in double precision, with the weights and the output of the model
    itself.
    """
    q, k, v = (x[0, head].double().cpu() for x in (caught.q, caught.k, caught.v))
    products = k @ q[query]
    bias = None
    if caught.bias is not None:
        table = dense_bias(caught.bias, len(q), len(k))
        bias = table.expand(1, caught.q.shape[1], len(q), len(k))[0, head, query].double().cpu()
    scores = products / math.sqrt(q.shape[1]) + (0.0 if bias is None else bias)
    weights = caught.weights[0, head, query].double().cpu()
    allowed = caught.mask.dense(len(q), len(k), caught.q.device)
    visible = torch.ones(len(k), dtype=torch.bool)
    if allowed is not None:
        visible = allowed.expand(1, caught.q.shape[1], len(q), len(k))[0, head, query].cpu()
    # A key outside the kernel's own pattern has weight zero; a softmax gives every visible key a
    # positive weight.
    visible = visible & (weights > 0)
    exponentials = (
        (scores - scores[visible].max()).exp() * visible
        if visible.any()
        else torch.zeros(len(k)).double()
    )
    again = exponentials / exponentials.sum().clamp(min=1e-300)
    is_softmax = bool((again - weights).abs().max() < TOLERANCE) and not isinstance(
        caught.bias, VectorBias
    )
    dims = max(1, min(q.shape[1], MAX_NUMBERS // len(k)))
    return AttentionRow(
        query_pieces=query_pieces,
        key_pieces=key_pieces,
        query=query,
        head_dim=q.shape[1],
        q=q[query].tolist(),
        keys=k[:, :dims].tolist(),
        values=v[:, :dims].tolist(),
        products=products.tolist(),
        bias=None if bias is None else bias.tolist(),
        scores=scores.tolist(),
        visible=visible.tolist(),
        exponentials=exponentials.tolist() if is_softmax else None,
        weights=weights.tolist(),
        output=caught.output[0, head, query].double().cpu().tolist(),
        is_softmax=is_softmax,
    )
