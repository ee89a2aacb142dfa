"""Runs the decoder of a translator that edits (the Levenshtein Transformer), for training and
search: over encoded sources it scores what is deleted, inserted and filled in.

A row is <s>, words, </s> and padding, and every position reads the whole row and its source. (In
training, a row holds several such sentences, and a position reads its own.)

    delete   p(delete) of each word             words that do not belong there
    insert   p(0), p(1), … of each gap          how many words lack there
    fill     p(word) at each placeholder        which words

The three share the decoder; the heads are in edit_heads.py. A placeholder reads what the decoder of
every parallel model reads where a token is not known.

Gu, Wang & Zhao 2019, *Levenshtein Transformer*. Tested against: packed rows = sentences one by one,
and the model itself on rows without padding.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headwise.data.token_edits import sentence_numbers, sentence_positions
from headwise.models.parallel.edit_heads import EditHeads
from headwise.models.parallel.translator import ParallelTranslator
from headwise.text.tokenizer import EOS


class EditDecoder:
    """A translator with edit heads, and the sources that it has read."""

    def __init__(
        self,
        model: ParallelTranslator,
        memory: Float[Tensor, "sentence source dim"],
        source_segment: Int[Tensor, "sentence source"],
    ) -> None:
        self.model, self.memory, self.source_segment = model, memory, source_segment

    @property
    def device(self) -> torch.device:
        return self.memory.device

    @property
    def output(self) -> nn.Linear:
        return self.model.output

    @property
    def heads(self) -> EditHeads:
        assert self.model.edits is not None
        return self.model.edits

    def of(self, sentences: Int[Tensor, " row"]) -> "EditDecoder":
        """The same with the sources of these rows."""
        return EditDecoder(self.model, self.memory[sentences], self.source_segment[sentences])

    def states(
        self, tokens: Int[Tensor, "row position"], known: Bool[Tensor, "row position"]
    ) -> Float[Tensor, "row position dim"]:
        """The decoder's states; where `known` is false stands a placeholder."""
        return self.model.decode(
            torch.where(known, tokens, self.model.unknown),
            self.memory,
            source_segment=self.source_segment,
            target_segment=sentence_numbers(tokens),
            target_position=sentence_positions(tokens),
        )

    def deletion_logits(
        self, hidden: Float[Tensor, "row position dim"], may_go: Bool[Tensor, "row position"]
    ) -> Float[Tensor, "row position 2"]:
        """Keep and delete; what must not go has -inf for it."""
        return self.heads.deletion_logits(hidden, may_go)

    def insertion_logits(
        self, hidden: Float[Tensor, "row position dim"]
    ) -> Float[Tensor, "row gap count"]:
        """How many placeholders each gap needs, 0, 1, …"""
        return self.heads.insertion_logits(hidden)

    def delete(
        self, tokens: Int[Tensor, "row position"], sentences: Int[Tensor, " row"]
    ) -> Float[Tensor, "row position 2"]:
        """Log-probabilities of keeping and of deleting each token."""
        hidden = self.of(sentences).states(tokens, torch.ones_like(tokens, dtype=torch.bool))
        return self.deletion_logits(hidden, tokens > EOS).float().log_softmax(-1)

    def insert(
        self, tokens: Int[Tensor, "row position"], sentences: Int[Tensor, " row"]
    ) -> Float[Tensor, "row gap count"]:
        """Log-probabilities of 0, 1, … placeholders in each gap."""
        hidden = self.of(sentences).states(tokens, torch.ones_like(tokens, dtype=torch.bool))
        return self.insertion_logits(hidden).float().log_softmax(-1)

    def fill(
        self,
        tokens: Int[Tensor, "row position"],
        known: Bool[Tensor, "row position"],
        sentences: Int[Tensor, " row"],
    ) -> Float[Tensor, "row position vocab"]:
        """Log-probabilities of words; where `known` is false stands a placeholder."""
        hidden = self.of(sentences).states(tokens, known)
        return self.model.logits(hidden).float().log_softmax(-1)
