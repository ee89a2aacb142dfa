"""The parallel translator: an encoder, and a decoder that sees all positions of the target at once.

    memory = encoder(source)
    hidden = decoder(what is known of the target, memory)     no causal mask
    P(token at position t) = softmax(hidden_t · output_weightᵀ + bias)

The decoder of a Transformer predicts a token from the ones before it, one step for each. This one
predicts all tokens in one pass, so it must know beforehand how many there are (`model.length`), and
it cannot see which of several right translations the other positions have begun: their words may
mix (the multi-modality problem). What it reads at a position is the token, if that is known, and
otherwise the padding token, or a copy of a source token (`model.input`).

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation*. Tested against: packed rows =
sentences one by one; every position depends on every known token; without positions all outputs of
a sentence are equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.taps import tap_attention
from headwise.blocks.decoder_block import DecoderBlock
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.encoder_block import EncoderBlock
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.parallel.edit_heads import EditHeads
from headwise.models.parallel.fertility import FertilityClassifier
from headwise.models.parallel.length_classifier import LengthClassifier
from headwise.models.parallel.links import Links
from headwise.models.parallel.segment_spans import copied_index, upsample
from headwise.models.parallel.source_copies import FertilityScores, likely_copies
from headwise.models.parallel.transitions import DynamicTransitions, LowRankTransitions
from headwise.models.parallel.written_positions import written_positions
from headwise.settings.part_names import PartNames
from headwise.text.tokenizer import BOS, EOS, PAD


class Chain(nn.Module):
    """Scores of neighbouring tokens, and how many tokens of a position take part."""

    def __init__(
        self, transitions: LowRankTransitions | DynamicTransitions, num_candidates: int
    ) -> None:
        super().__init__()
        self.transitions = transitions
        self.num_candidates = num_candidates


@dataclass(frozen=True)
class ParallelParts:
    """What a parallel translator has beside the parts of a Transformer."""

    length: LengthClassifier | None
    """Predicts the length of the target; None if it is known otherwise."""
    copies_source: bool
    """Whether the decoder reads a source token where the token of the target is not known."""
    num_begins: int | None
    """Positions of a decoder that reads `<s>` at all of them, or None."""
    factor: int | None = None
    """Positions of the decoder for each source token, or None."""
    links: Links | None = None
    """Scores the links between vertices, if the positions form a graph."""
    fertility: FertilityClassifier | None = None
    """Predicts how often each source token is copied, or None."""
    chain: Chain | None = None
    """Scores neighbouring tokens, if the outputs form a chain."""
    edits: EditHeads | None = None
    """Decide what is deleted and where words are inserted, if the target is edited."""
    output_form: str = "positions"
    """What the model gives to a search (decoding/choices.py)."""


class ParallelTranslator(EncoderDecoder):
    """Parts are handed in by `build_model` (models/choices.py)."""

    part_names: ClassVar[PartNames] = {
        **EncoderDecoder.part_names,
        "length": ("length classifier", "长度分类器"),
        "fertility": ("fertility classifier", "繁衍率分类器"),
        "links": ("links", "连边"),
        "chain": ("transitions", "转移得分"),
    }

    assumes_full_rows = False
    """Whether losses take each row as one sentence without padding, for plans without numbers."""

    def __init__(
        self,
        *,
        source_embedding: TokenEmbedding,
        target_embedding: TokenEmbedding,
        encoder: list[EncoderBlock],
        decoder: list[DecoderBlock],
        encoder_norm: nn.Module,
        decoder_norm: nn.Module,
        output: nn.Linear,
        parallel: ParallelParts,
    ) -> None:
        super().__init__(
            source_embedding=source_embedding,
            target_embedding=target_embedding,
            encoder=encoder,
            decoder=decoder,
            encoder_norm=encoder_norm,
            decoder_norm=decoder_norm,
            output=output,
        )
        self.length = parallel.length
        self.copies_source = parallel.copies_source
        self.num_begins = parallel.num_begins
        self.factor = parallel.factor
        self.links = parallel.links
        self.fertility = parallel.fertility
        self.chain = parallel.chain
        self.edits = parallel.edits
        self.output_form = parallel.output_form

    @property
    def unknown(self) -> int:
        """What the decoder reads at a position whose token is not known and not copied."""
        return PAD if self.num_begins is None else BOS

    def read_target(
        self,
        known: Int[Tensor, "row target"],
        source: Int[Tensor, "row source"],
        *,
        source_segment: Int[Tensor, "row source"],
        target_segment: Int[Tensor, "row target"],
        target_position: Int[Tensor, "row target"],
        copied: Int[Tensor, "row target"] | None = None,
    ) -> Int[Tensor, "row target"]:
        """The tokens that the decoder reads: those that are known, PAD marking the others.

        `copied` are the source tokens of a decoder that copies them by their fertility.
        """
        if copied is not None:
            return torch.where(known == PAD, copied, known)
        if not self.copies_source:
            return torch.where(known == PAD, self.unknown, known)
        index = copied_index(target_segment, target_position, source_segment)
        return torch.where(known == PAD, source.gather(1, index), known)

    def attention_maps(
        self, source: Int[Tensor, "row source"], target_input: Int[Tensor, "row target"]
    ) -> Mapping[str, Float[Tensor, "row head query key"]]:
        """The maps of one pass that knows only the length of the target.

        With more positions than tokens, rows are those of the positions that write the tokens. A
        decoder that edits also reads the beginning of the sentence, which is left out.
        """
        segment = torch.ones_like(source)
        position = torch.arange(source.shape[1], device=source.device).expand_as(source)
        num_positions = target_input.shape[1] + (self.edits is not None)
        target_segment = target_input.new_ones(len(target_input), num_positions)
        target_position = torch.arange(num_positions, device=source.device).expand_as(
            target_segment
        )
        if self.factor is not None:
            target_segment, target_position = upsample(segment, position, factor=self.factor)
        known = torch.full_like(target_segment, PAD)
        if self.num_begins is None and self.factor is None:
            known[:, -1] = EOS
        if self.edits is not None:
            known[:, 0] = BOS
        spans = {
            "source_segment": segment,
            "target_segment": target_segment,
            "target_position": target_position,
        }
        copied = self._copies_for(source, position, target_input.shape[1])
        tokens = self.read_target(known, source, **spans, copied=copied)
        with tap_attention(self.attention_layers()) as maps:
            hidden = self(source, tokens, source_position=position, **spans)
        if self.edits is not None:
            return _without_beginning(maps)
        if self.factor is None:
            return maps
        return self._maps_of_tokens(maps, self.logits(hidden), target_input)

    def _maps_of_tokens(
        self,
        maps: Mapping[str, Tensor],
        logits: Float[Tensor, "row position vocab"],
        target_input: Int[Tensor, "row target"],
    ) -> Mapping[str, Tensor]:
        """The rows, and in self-attention the columns, of the positions that write the tokens; the
        end of the sentence stands at the last position."""
        scores = logits.float().log_softmax(-1)
        last = scores.shape[1] - 1
        places = [
            torch.cat([written_positions(row[:-1, tokens[1:]]), tokens.new_tensor([last])])
            for row, tokens in zip(scores, target_input, strict=True)
        ]
        found = dict(maps)
        for name in maps:
            if name.startswith("decoder."):
                rows = torch.stack(
                    [weights[:, at] for weights, at in zip(maps[name], places, strict=True)]
                )
                if name.endswith(".self"):
                    rows = torch.stack(
                        [weights[..., at] for weights, at in zip(rows, places, strict=True)]
                    )
                found[name] = rows
        return found

    def _copies_for(
        self, source: Int[Tensor, "row source"], position: Int[Tensor, "row source"], length: int
    ) -> Int[Tensor, "row target"] | None:
        """So many copies of source tokens by their most likely fertilities, for one pair per
        row."""
        if self.fertility is None:
            return None
        segment = torch.ones_like(source)
        memory = self.encode(source, segment=segment, position=position)
        limit = torch.full_like(source[:, 0], length)
        scores = FertilityScores(self.fertility(memory), source, segment)
        return likely_copies(scores, least=limit, most=limit).tokens


def _without_beginning(maps: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The maps of a decoder without the row and the column of the beginning of the sentence."""
    found = dict(maps)
    for name, weights in maps.items():
        if name.startswith("decoder."):
            first = 1 if name.endswith(".self") else 0
            found[name] = weights[:, :, 1:, first:]
    return found
