"""Both policies learn to reverse strings, and the search by edits writes with what they learnt.

Losses, heads, expert and search meet only in a task; here a small encoder of torch's own stands for
the model, so that a fault is one of these parts. Strings are fresh at every step.
"""

import pytest
import torch
from torch import Tensor, nn

from headwise.data.token_edits import is_word
from headwise.decoding.parallel.edits import EditSettings, search_edits
from headwise.initialization import initialize
from headwise.models.parallel.edit_heads import EditHeads
from headwise.randomness import numpy_generator, torch_generator
from headwise.text.tokenizer import PAD
from headwise.training.parallel.edit_losses import draw_deletions, edit_losses
from tests.data.test_token_edits import padded

VOCAB, DIM, LONGEST = 13, 48, 5


class Reader(nn.Module):
    """Attention over the source and the sequence that is edited, side by side."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        self.table, self.side = nn.Embedding(VOCAB, DIM), nn.Embedding(2, DIM)
        self.place, self.placeholder = nn.Embedding(32, DIM), nn.Parameter(torch.zeros(DIM))
        layer = nn.TransformerEncoderLayer(DIM, 4, 96, 0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.output = nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB)
        self.heads = EditHeads(DIM, max_insertions=15)
        initialize(self.heads, torch_generator("heads"))
        generator = torch_generator("reader")
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.ndim > 1 and not name.startswith("heads"):
                    parameter.normal_(0.0, DIM**-0.5, generator=generator)

    def states(self, tokens: Tensor, known: Tensor, source: Tensor | None = None) -> Tensor:
        source = self.source if source is None else source
        width = source.shape[1]
        first = self.table(source) + self.place.weight[:width] + self.side.weight[0]
        x = torch.where(known[..., None], self.table(tokens), self.placeholder)
        x = x + self.place.weight[: tokens.shape[1]] + self.side.weight[1]
        is_padding = torch.cat([source, tokens], dim=1).eq(PAD)
        read = self.body(torch.cat([first, x], dim=1), src_key_padding_mask=is_padding)
        return self.norm(read)[:, width:]

    def deletion_logits(self, hidden: Tensor, may_go: Tensor) -> Tensor:
        return self.heads.deletion_logits(hidden, may_go)

    def insertion_logits(self, hidden: Tensor) -> Tensor:
        return self.heads.insertion_logits(hidden)

    def delete(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        hidden = self.states(tokens, torch.ones_like(tokens).bool(), self.source[sentences])
        return self.deletion_logits(hidden, is_word(tokens)).log_softmax(-1)

    def insert(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        hidden = self.states(tokens, torch.ones_like(tokens).bool(), self.source[sentences])
        return self.insertion_logits(hidden).log_softmax(-1)

    def fill(self, tokens: Tensor, known: Tensor, sentences: Tensor) -> Tensor:
        return self.output(self.states(tokens, known, self.source[sentences])).log_softmax(-1)


def draw(count: int, *keys: int | str) -> list[list[int]]:
    generator = numpy_generator("strings", *keys)
    sizes = generator.integers(1, LONGEST + 1, size=count)
    return [generator.integers(4, VOCAB, size=size).tolist() for size in sizes]


def train(model: Reader, num_steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in range(num_steps):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * min((step + 1) / 100, 1 - step / num_steps)
        strings = draw(64, step)
        model.source = padded(strings)
        target = padded([words[::-1] for words in strings])
        deleted = draw_deletions(target, generator=torch_generator("edits", step))
        sums = edit_losses(model, target, deleted)
        optimizer.zero_grad()
        (sums.total.loss / sums.total.num_tokens).backward()
        optimizer.step()


@pytest.mark.prove
def test_strings_are_reversed_from_nothing() -> None:
    model = Reader()
    train(model, 600)
    strings = draw(200, "test")
    model.source = padded(strings)
    with torch.inference_mode():
        results = search_edits(model, [30] * len(strings), EditSettings())
    right = [
        list(one.hypothesis.tokens) == words[::-1]
        for one, words in zip(results, strings, strict=True)
    ]
    assert sum(right) / len(right) > 0.95
    assert sum(one.num_rounds for one in results) / len(results) < 3
