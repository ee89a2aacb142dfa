"""Changes a model so that it runs on torch's fake tensors, which have a shape but no numbers
(planning/step_tracing.py).

Some models read from the numbers of a batch how many sentences a row holds and how long they are.
`make_contentless` replaces the code that does so: a row is cut into sentences of one length without
padding (in recurrent and parallel translators a row is one sentence). Recurrent
layers are computed by their equations, because torch's fused loops hide their matrix products.
Shapes, and thus memory and operations, stay those of the real step. `headwise plan` uses this.

Tested against: the memory of real steps, for a recipe of every task.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.recurrent_cells import CELLS, RecurrentLayer, RecurrentStack
from headwise.models.elmo import DirectedLayer, ElmoEncoder
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.recurrent_encoder import SentenceReader

SENTENCE = 25
"""Tokens of a sentence, assumed where batches hold sentences of the text's own lengths."""


class _FusedOnGpu(FusedAttention):
    """One kernel, with dropout too, and no weights stored: steps are traced on a CPU, where both
    would differ.
    """

    def stores_weights(self, q: Tensor, k: Tensor) -> bool:
        return False


def make_contentless(module: nn.Module, *, cuda: bool = False) -> None:
    """Change a module that is to be traced; `cuda`: with attention as a GPU has it."""
    for part in module.modules():
        match part:
            case RecurrentTranslator() | ParallelTranslator():
                part.assumes_full_rows = True
            case RecurrentLayer() | RecurrentStack():
                _replace_forward(part, partial(part.forward, written_out=True))
            case SentenceReader():
                _replace_forward(part, partial(_read_rows, part))
            case DirectedLayer():
                _replace_forward(part, partial(_read_directed, part))
            case ElmoEncoder():
                _replace_forward(part, partial(_read_spelled, part))
            case MultiHeadAttention() if cuda and isinstance(part.kernel, FusedAttention):
                part.kernel = _FusedOnGpu()


def _replace_forward(part: nn.Module, forward: Any) -> None:
    part.forward = forward


def _read_rows(reader: SentenceReader, x: Tensor, segment: Tensor, position: Tensor) -> Tensor:
    """The sentences of each row side by side."""
    states: Tensor = reader.layers(cut_rows(x), None).states
    return _join_rows(states, x.shape[1]).to(x.dtype)


def cut_rows(x: Tensor, sentence: int = SENTENCE) -> Tensor:
    """[row, time, …] as [sentence, words, …]; the last sentence of a row may be filled up."""
    count = max(1, round(x.shape[1] / sentence))
    length = -(-x.shape[1] // count)
    filled = torch.cat([x, x[:, : count * length - x.shape[1]]], dim=1)
    return filled.reshape(-1, length, *x.shape[2:])


def _join_rows(x: Tensor, row: int) -> Tensor:
    """What `cut_rows` cut, for rows of so many tokens."""
    count = max(1, round(row / SENTENCE))
    return x.reshape(-1, count * x.shape[1], *x.shape[2:])[:, :row]


def _read_directed(layer: DirectedLayer, x: Tensor, lengths: Tensor) -> Tensor:
    """An LSTM with its projection by the equations, over whole rows."""
    cell = layer.weights
    weights = {name.removesuffix("_l0"): weight for name, weight in cell.named_parameters()}
    given = nn.functional.linear(
        x.flip(1) if layer.reverse else x, weights["weight_ih"], weights["bias_ih"]
    )
    size = cell.proj_size or cell.hidden_size
    state = x.new_zeros(x.shape[0], size), x.new_zeros(x.shape[0], cell.hidden_size)
    outputs = []
    for part in given.unbind(dim=1):
        hidden, memory = CELLS["lstm"](part, state, weights["weight_hh"], weights["bias_hh"])
        if cell.proj_size:
            hidden = nn.functional.linear(hidden, weights["weight_hr"])
        state = hidden, memory
        outputs.append(hidden)
    states = torch.stack(outputs, dim=1)
    states = states.flip(1) if layer.reverse else states
    return states + x if layer.residual else states


def _read_spelled(
    encoder: ElmoEncoder,
    tokens: Tensor,
    *,
    segment: Tensor,
    position: Tensor,
    affixes: Tensor | None = None,
) -> Tensor:
    """The sentences of each row side by side, of different words."""
    assert affixes is not None, "rows of this encoder come with the letters of their words"
    words = cut_rows(torch.arange(tokens.numel()).view_as(tokens))
    layers = encoder.reader(affixes.flatten(0, 1), words, words.sum(1))
    return _join_rows(encoder.mixture(layers), tokens.shape[1])
