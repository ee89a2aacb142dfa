"""One text, as a decoder-only language model reads it: where every layer looked, and what else
might have come next.

Nothing is searched for. The text w₁ … wₘ is read once, from what every text begins with, and each
place tells

    p(wᵢ | w₁ … wᵢ₋₁)     its log-probability and rank, the k best, the entropy (as `next_token_choices.py` does for translations)
    A[head, query, key]   of every layer: row i is the place that predicts wᵢ, and looks at what was read before it

so rows are named by what they predict and columns by what was read: the `decoder_self` maps of a
translation (attention_maps.py). n-grams and recurrent models attend to nothing and are refused. A
Transformer was trained on so many tokens at once: no more are read.

One row can be opened up to its last number, as in a translation (`calculate_text_row`).

Tested against: the log-probabilities of `LanguageModel.score`, rows that sum to one and look at
nothing ahead, the opened row.
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
    """What was found out about one text; the end of the text is predicted too."""

    text: str
    tokens: tuple[int, ...]
    read_pieces: tuple[str, ...]
    """What is looked at: begins with the mark every text begins with."""
    predicted_pieces: tuple[str, ...]
    """What each place predicts: ends with </s>."""
    log_probabilities: tuple[float, ...]
    decisions: tuple[Decision, ...]
    maps: tuple[AttentionMap, ...]
    present: tuple[tuple[MapKind, int, int], ...]
    """All maps the model has: kind, layer, number of heads; empty unless maps were asked for."""


def attends(model: LanguageModel) -> bool:
    """Whether a language model is made of attention: n-grams, windows and recurrent ones are not."""
    return isinstance(model.model, NeuralTokenModel) and isinstance(
        model.model.network, DecoderOnly
    )


def longest_text(model: LanguageModel) -> int | None:
    """How many tokens are read at once, the mark at the beginning not counted; None: any number."""
    context = getattr(model.model, "context", None)
    return None if context is None else context - 1


@torch.inference_mode()
def trace_text(
    model: LanguageModel, text: str, *, maps: MapChoice | None = None, num_alternatives: int = 0
) -> LanguageModelTrace:
    """Read one text and keep what was asked for."""
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
    """What every text begins with, and the Transformer that reads it."""
    reader = model.model
    if not isinstance(reader, NeuralTokenModel) or not isinstance(reader.network, DecoderOnly):
        raise UsageError(
            "this language model attends to nothing; give one whose recipe has model.kind: "
            "decoder_only",
            "该语言模型没有注意力；请给出配方中 model.kind 为 decoder_only 的模型",
        )
    return reader.first, reader.network


def calculate_text_row(
    model: LanguageModel, text: str, *, layer: int = -1, head: int = 0, query: int = 0
) -> AttentionRow:
    """Every number of one place of a text in one head (attention_row.py): the one that predicts piece
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
    """That there is something to read, and not more than the model was trained to read at once."""
    if not tokens:
        raise UsageError("the text is empty; give some words", "文本为空；请给出一些词")
    most = longest_text(model)
    if most is not None and len(tokens) > most:
        raise UsageError(
            f"the text has {len(tokens):,} pieces, this model was trained to read {most:,} at "
            "once; give a shorter one",
            f"文本有 {len(tokens):,} 个词元，而该模型训练时一次读 {most:,} 个；请给出更短的文本",
        )
