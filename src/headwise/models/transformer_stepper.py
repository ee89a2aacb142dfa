"""The encoder–decoder as a stepper: one token at a time, with caches, for any search.

`start` encodes the sources once and stores their keys and values for each layer. `step` feeds one
token to every hypothesis and returns the log-probabilities of the next. `reorder` rearranges the
hypotheses as the search has chosen. All hypotheses of a sentence share the keys and values of its
source, which are never copied; `reorder` moves only the decoder's own keys and values, and only the
part that has been written.

Where model and machine allow it, the same model also steps in static buffers (static_buffers.py, on
a GPU), in rows that each have their own beginning (continuous_decoder.py, on a CPU), and several
tokens at once, to verify drafts (verifying_decoder.py).

Tested against: the whole target computed at once by `EncoderDecoder.forward`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.cache import Cache
from headwise.attention.masks import Mask, padding
from headwise.attention.multi_head import KeysValues
from headwise.models.continuous_decoder import ContinuousDecoder
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.static_buffers import (
    CacheMemory,
    DecoderBuffers,
    places_of,
    round_length,
    round_sentences,
    versions_of,
)
from headwise.models.static_step import StaticStep
from headwise.models.verifying_decoder import VerifyingDecoder
from headwise.text.tokenizer import EOS, PAD

GROUP_ROWS, GROUP_GAIN = 16, 0.2
MAX_BUFFERS = 8
"""Static buffers kept; those not used for longest are closed first."""
MAX_SHARING = 32
"""The same for buffers that lie in one memory."""
MAX_SHARE = 0.25
"""Of a GPU's memory, for the static buffers that are kept while others are made."""


@dataclass
class DecodingState:
    """What is kept between steps; `width` hypotheses per sentence, sentence by sentence."""

    caches: list[Cache]
    sources: list[KeysValues]
    cross_mask: Mask
    real: Tensor | None
    width: int
    time: int = 0
    attention: Tensor | None = None


class TransformerStepper:
    """A stepper around a trained model.

    With `attending`, the last layer's mean cross-attention is kept each step. It runs under no_grad
    and not inference_mode, because a search may overwrite the log-probabilities.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        *,
        attending: bool = False,
        static: bool | None = None,
        memory: CacheMemory | None = None,
    ) -> None:
        """`static`: whether to offer static buffers; by default on a GPU, where they are faster.

        `memory`: where buffers of all sizes lie, so that only one of them can be in use; by default
        each has memory of its own.
        """
        self.model, self._memory = model.eval(), memory
        self.attending = attending
        wants_static = self.device.type == "cuda" if static is None else static
        is_cpu = self.device.type == "cpu"
        # What it can do besides start, step and reorder: searches pick their engine by it.
        self.shows_attention = attending
        self.has_static_buffers = wants_static and not attending and StaticStep.supports(model)
        self.runs_continuously = is_cpu and not attending and ContinuousDecoder.supports(model)
        self.verifies_drafts = not attending and VerifyingDecoder.supports(model)
        self.num_draft_heads = 0 if model.draft_heads is None else model.draft_heads.count
        drafter = model.draft_decoder
        self.draft_block = 0 if drafter is None else drafter.block
        self._weights = list(model.parameters())
        self._buffers: dict[tuple[int, ...], DecoderBuffers] = {}
        self._places: tuple[int, ...] = ()
        self._versions: tuple[int, ...] = ()

    @property
    def device(self) -> torch.device:
        return self.model.output.weight.device

    @torch.no_grad()
    def start(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> DecodingState:
        """Encode the sources, with the end of sentence that the model was trained with."""
        memory, real = self._read(sources)
        caches = [
            block.self_attention.make_cache(
                max_length=max_length + 1, num_rows=len(sources) * width, like=memory
            )
            for block in self.model.decoder
        ]
        keys_values = [block.cross_attention.keys_values(memory) for block in self.model.decoder]
        return DecodingState(caches, keys_values, _cross_mask(real), real, width)

    def _read(self, sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor | None]:
        """The encoder's memory, and which of its columns are tokens (None: all)."""
        lengths = [len(source) + 1 for source in sources]
        longest = max(lengths)
        padded = [[*source, EOS, *([PAD] * (longest - len(source) - 1))] for source in sources]
        tokens = torch.tensor(padded, device=self.device)
        positions = torch.arange(longest, device=self.device).expand(len(sources), longest)
        segment = (positions < torch.tensor(lengths, device=self.device)[:, None]).long()
        memory = self._encode(tokens, segment, positions, lengths)
        same_length = min(lengths) == longest
        return memory, None if same_length else segment.bool()

    def _encode(
        self, tokens: Tensor, segment: Tensor, position: Tensor, lengths: Sequence[int]
    ) -> Tensor:
        """Encode; on a CPU in groups of like length, because padding costs as much as words."""
        groups = group_lengths(lengths) if tokens.device.type == "cpu" else [range(len(lengths))]
        if len(groups) == 1:
            return self.model.encode(tokens, segment=segment, position=position)
        memory: Tensor | None = None
        for group in groups:
            longest = lengths[group[0]]
            here = tuple(table[list(group), :longest] for table in (tokens, segment, position))
            encoded = self.model.encode(here[0], segment=here[1], position=here[2])
            if memory is None:
                memory = encoded.new_zeros((*tokens.shape, encoded.shape[-1]))
            memory[list(group), :longest] = encoded
        assert memory is not None
        return memory

    @torch.no_grad()
    def step(
        self, state: DecodingState, tokens: Int[Tensor, " hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], DecodingState]:
        position = torch.full((tokens.shape[0], 1), state.time, device=tokens.device)
        x = self.model.target_embedding(tokens[:, None], position, length=state.time + 1)
        state.time += 1
        watch: list[Tensor] | None = [] if self.attending else None
        for block, cache, source in zip(
            self.model.decoder, state.caches, state.sources, strict=True
        ):
            x = block.step(x, cache, source=source, cross_mask=state.cross_mask, watch=watch)
        if watch:
            state.attention = watch[-1].mean(1).reshape(tokens.shape[0], -1)
        logits = self.model.logits(self.model.decoder_norm(x)[:, 0])
        return logits.float().log_softmax(-1), state

    @torch.no_grad()
    def reorder(self, state: DecodingState, index: Int[Tensor, " new_hypothesis"]) -> DecodingState:
        for cache in state.caches:
            cache.reorder(index)
        num_sentences = index.shape[0] // state.width
        if state.sources and num_sentences != state.sources[0][0].shape[0]:
            kept = index[:: state.width] // state.width
            state.sources = [(k[kept], v[kept]) for k, v in state.sources]
            state.real = None if state.real is None else state.real[kept]
            state.cross_mask = _cross_mask(state.real)
        return state

    @property
    def source_limit(self) -> int | None:
        """The most positions a row of the encoder may have."""
        readers = [
            self.model.source_embedding.positions,
            *(block.self_attention.kernel for block in self.model.encoder),
        ]
        limits = [
            limit
            for reader in readers
            if (limit := getattr(reader, "max_length", None)) is not None
        ]
        return min(limits, default=None)

    @torch.no_grad()
    def fill_buffers(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> DecoderBuffers:
        """Static buffers of a suitable size, new or used before, with these sources in them."""
        assert self.has_static_buffers
        self._follow_weights()
        source_limit = self.source_limit
        target_limit = getattr(self.model.target_embedding.positions, "max_length", None)
        sizes = {
            "num_sentences": round_sentences(len(sources)),
            "width": width,
            "max_length": round_length(max_length, limit=target_limit),
            "source_length": round_length(1 + max(map(len, sources)), limit=source_limit),
        }
        key = tuple(sizes.values())
        buffers = self._buffers.pop(key, None)
        if buffers is None:
            buffers = self._make_buffers(sizes)
        self._buffers[key] = buffers  # the last ones are those used last
        buffers.fill(sources)
        return buffers

    def _make_buffers(self, sizes: dict[str, int]) -> DecoderBuffers:
        if self._memory is None:
            self._close_buffers(keep=MAX_BUFFERS - 1)
            return DecoderBuffers.allocate(self._static_step, **sizes)
        count = DecoderBuffers.num_numbers(self._static_step, **sizes)
        if not self._memory.holds(count):
            self._close_buffers(keep=0)
            self._memory.grow(count, like=self.model.output.weight.detach())
        self._close_buffers(keep=MAX_SHARING - 1)
        return DecoderBuffers.allocate(self._static_step, self._memory, **sizes)

    def _follow_weights(self) -> None:
        """Buffers and recorded steps stay valid as long as the weights stay where they are."""
        places, versions = places_of(self._weights), versions_of(self._weights)
        if places != self._places:
            self._static_step = StaticStep(self.model)
            self._close_buffers(keep=0)
        elif versions != self._versions:
            self._static_step.read_weights()
            for buffers in self._buffers.values():
                buffers.read_weights()
        self._places, self._versions = places, versions

    def _close_buffers(self, *, keep: int) -> None:
        """Close those not used for longest, until `keep` are left and they fit into their share."""
        limit = (
            MAX_SHARE * torch.cuda.mem_get_info(self.device)[1]
            if self.device.type == "cuda" and self._memory is None
            else float("inf")
        )
        while (
            len(self._buffers) > keep
            or sum(buffers.num_bytes for buffers in self._buffers.values()) > limit
        ):
            self._buffers.pop(next(iter(self._buffers))).close()

    def make_continuous(self) -> ContinuousDecoder:
        """Rows of the same model that begin one by one, without any sentence yet."""
        assert self.runs_continuously
        return ContinuousDecoder(self.model, source_limit=self.source_limit)

    @torch.no_grad()
    def make_verifier(
        self, sources: Sequence[Sequence[int]], *, max_length: int, block: int
    ) -> VerifyingDecoder:
        """A row for each source, into which blocks of at most `block` tokens are fed."""
        assert self.verifies_drafts
        memory, real = self._read(sources)
        return VerifyingDecoder(self.model, memory, real, max_length=max_length, block=block)

    def attention(self, state: DecodingState) -> Float[Tensor, "hypothesis source"]:
        """The attention of the last step to the source (mean over the last layer's heads)."""
        assert state.attention is not None, "build the decoder with attending=True"
        return state.attention


def group_lengths(lengths: Sequence[int]) -> list[Sequence[int]]:
    """Numbers of the sources, longest first, in the groups that are encoded together.

    A group ends where the next source is so much shorter that its padding would cost more than
    GROUP_GAIN of the group. A group has at least GROUP_ROWS rows: smaller products do not pay.
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    groups: list[Sequence[int]] = []
    first = 0
    for end in range(GROUP_ROWS, len(order) - GROUP_ROWS + 1):
        is_enough = end - first >= GROUP_ROWS
        if is_enough and lengths[order[end]] <= (1 - GROUP_GAIN) * lengths[order[first]]:
            groups.append(order[first:end])
            first = end
    return [*groups, order[first:]]


def _cross_mask(real: Tensor | None) -> Mask:
    return Mask() if real is None else padding(real)
