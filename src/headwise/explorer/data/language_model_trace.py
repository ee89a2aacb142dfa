"""The trace of a text in a decoder-only language model: attention of every layer, next tokens.

The text w₁ … wₘ is read once, without a search. Every position has

    p(wᵢ | w₁ … wᵢ₋₁)     log-probability and rank of wᵢ, the k best tokens, the entropy
                          (next_token_choices.py does the same for translations)
    A[head, query, key]   of every layer: row i predicts wᵢ and attends to what was read before it

Rows are named by the token they predict and columns by the token that was read, as in the
`decoder_self` maps of a translation (attention_maps.py). n-gram and recurrent models have no
attention and are refused. A text longer than the context that the Transformer was trained with is
refused. `calculate_text_row` gives all numbers of one row (attention_row.py).

Tested against: the log-probabilities of `LanguageModel.score`, rows that sum to one and attend to
nothing ahead, the row's numbers.
"""

from dataclasses import dataclass

import torch

from headwise.attention.taps import tap_attention
from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import AttentionMap, MapKind
from headwise.explorer.data.attention_row import (
    MAX_KEYS,
    AttentionRow,
    calculate_steps,
    capture_layer_inputs,
    check_within,
)
from headwise.explorer.data.next_token_choices import Decision, describe_step
from headwise.explorer.data.translation_trace import MapChoice, choose_maps
from headwise.models.decoder_only import DecoderOnly
from headwise.models.text_stepper import next_token_logits
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.text.tokenizer import EOS, SPECIAL_PIECES


@dataclass(frozen=True)
class LanguageModelTrace:
    """The trace of one text; the end of the text is predicted too."""

    text: str
    tokens: tuple[int, ...]
    read_pieces: tuple[str, ...]
    """The tokens that are attended to; the first one is the special token that begins a text."""
    predicted_pieces: tuple[str, ...]
    """The token that each position predicts; the last one is </s>."""
    log_probabilities: tuple[float, ...]
    decisions: tuple[Decision, ...]
    maps: tuple[AttentionMap, ...]
    present: tuple[tuple[MapKind, int, int], ...]
    """The maps that the model has: kind, layer, number of heads. Empty if no maps were wanted."""


def attends(model: LanguageModel) -> bool:
    """Whether a language model is a Transformer: n-grams, windows and recurrent ones have no
    attention.
    """
    return isinstance(model.model, NeuralTokenModel) and isinstance(
        model.model.network, DecoderOnly
    )


def longest_text(model: LanguageModel) -> int | None:
    """The most tokens that are read at once, without the special token at the beginning; None: no
    limit.
    """
    context = getattr(model.model, "context", None)
    return None if context is None else context - 1


@torch.inference_mode()
def trace_text(
    model: LanguageModel, text: str, *, maps: MapChoice | None = None, num_alternatives: int = 0
) -> LanguageModelTrace:
    """Read one text and return what was asked for."""
    first, network = require_reader(model)
    tokens = model.tokenizer.encode(text.strip())
    check_text(model, tokens)
    with tap_attention({} if maps is None else network.attention_layers()) as tapped:
        hidden = network(torch.tensor([[first, *tokens]], device=network.output.weight.device))[0]
    scores = next_token_logits(network, hidden).log_softmax(-1)
    predicted = [*tokens, EOS]
    every = tuple(
        AttentionMap(name, "decoder_self", layer, weights[0].float().cpu().numpy())
        for layer, (name, weights) in enumerate(tapped.items())
    )
    decisions = [
        describe_step(model.tokenizer, row, token, num_best=num_alternatives)
        for row, token in zip(scores if num_alternatives else (), predicted, strict=False)
    ]
    pieces = tuple(model.tokenizer.pieces(tokens))
    return LanguageModelTrace(
        text=text,
        tokens=tuple(tokens),
        read_pieces=(SPECIAL_PIECES[first], *pieces),
        predicted_pieces=(*pieces, SPECIAL_PIECES[EOS]),
        log_probabilities=tuple(scores[range(len(predicted)), predicted].tolist()),
        decisions=tuple(decisions),
        maps=() if maps is None else choose_maps(every, maps),
        present=tuple((one.kind, one.layer, len(one.weights)) for one in every),
    )


def require_reader(model: LanguageModel) -> tuple[int, DecoderOnly]:
    """The id of the token that begins a text, and the Transformer that reads it."""
    reader = model.model
    if not isinstance(reader, NeuralTokenModel) or not isinstance(reader.network, DecoderOnly):
        raise UsageError(
            "this language model has no attention; give one whose recipe has model.kind: "
            "decoder_only",
            "该语言模型没有注意力；请给出配方中 model.kind 为 decoder_only 的模型",
        )
    return reader.first, reader.network


def calculate_text_row(
    model: LanguageModel, text: str, *, layer: int = -1, head: int = 0, query: int = 0
) -> AttentionRow:
    """All numbers of one row of a text in one head (attention_row.py): the row that predicts piece
    number `query`. Layer -1 is the highest.
    """
    first, network = require_reader(model)
    tokens = model.tokenizer.encode(text.strip())
    check_text(model, tokens)
    layers = list(network.attention_layers().values())
    number = len(layers) - 1 if layer == -1 else layer
    check_within("tokens", "词元数", len(tokens) + 1, 1, MAX_KEYS)
    check_within("layer", "层", number, 0, len(layers) - 1)
    check_within("head", "头", head, 0, layers[number].num_heads - 1)
    check_within("query", "查询", query, 0, len(tokens))
    read = torch.tensor([[first, *tokens]], device=network.output.weight.device)
    caught = capture_layer_inputs(layers[number], lambda: network(read))
    pieces = tuple(model.tokenizer.pieces(tokens))
    queries, keys = (*pieces, SPECIAL_PIECES[EOS]), (SPECIAL_PIECES[first], *pieces)
    return calculate_steps(caught, head=head, query=query, query_pieces=queries, key_pieces=keys)


def check_text(model: LanguageModel, tokens: list[int]) -> None:
    """Refuse an empty text, and one that is longer than the context the model was trained with."""
    if not tokens:
        raise UsageError("the text is empty; give some words", "文本为空；请给出一些词")
    most = longest_text(model)
    if most is not None and len(tokens) > most:
        raise UsageError(
            f"the text has {len(tokens):,} pieces, this model was trained to read {most:,} at "
            "once; give a shorter one",
            f"文本有 {len(tokens):,} 个词元，而该模型训练时一次读 {most:,} 个；请给出更短的文本",
        )
