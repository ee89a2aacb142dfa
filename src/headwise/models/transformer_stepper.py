"""One token at a time: the encoder–decoder as a stepper, with caches, for any search.

`start` encodes the sources once and keeps each layer's keys and values of the source per sentence; `step` feeds one
token to every hypothesis and returns the log-probabilities of the next; `reorder` follows the search's choice of survivors.
The source is shared by all hypotheses of a sentence and never copied for them; only the decoder's own keys and values
are moved, and only the part that has been written.

On a GPU `enter` offers rooms (`room.py`): the same in tensors that never move, kept from batch to batch.

Tested against: the whole target computed at once by `EncoderDecoder.forward`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.cache import Cache
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, padding
from headwise.attention.multi_head import KeysValues
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.static_buffers import Room, fingerprint, round_length, round_sentences
from headwise.models.static_step import FixedDecoder

PAD, EOS = 0, 2
GROUP_ROWS, GROUP_GAIN = 16, 0.2
MAX_ROOMS = 8
"""Rooms kept; the one that was not used for longest makes way."""
MAX_SHARE = 0.25
"""Of a GPU's memory, for the rooms that are kept while another one is made."""


@dataclass
class DecodingState:
    """What is remembered between steps; `width` hypotheses per sentence, sentence-major."""

    caches: list[Cache]
    sources: list[KeysValues]
    cross_mask: Mask
    real: Tensor | None
    width: int
    time: int = 0
    attention: Tensor | None = None


class IncrementalDecoder:
    """A stepper around a trained model. With `attending`, the last layer's mean cross-attention is kept each step.

    Runs under no_grad and not inference_mode: the log-probabilities are the search's to overwrite.
    """

    def __init__(
        self, model: EncoderDecoder, *, attending: bool = False, rooms: bool | None = None
    ) -> None:
        """`rooms`: whether to offer them; if not said, on a GPU, where they pay."""
        self.model = model.eval()
        self.attending = attending
        self._has_rooms = (
            self.device.type == "cuda" if rooms is None else rooms
        ) and FixedDecoder.suits(model)
        attentions = [
            one for block in model.decoder for one in (block.self_attention, block.cross_attention)
        ]
        plain = all(
            one.relation is None and type(one.kernel) in (FullAttention, FusedAttention)
            for one in attentions
        )
        self.flows = bool(attentions) and plain and not attending and self.device.type == "cpu"
        """Whether its rows may begin one by one (`flowing.py`): all keys are kept, a mask says which are seen, positions stand in x."""
        self._weights = list(model.parameters())
        self._rooms: dict[tuple[int, ...], Room] = {}
        self._fingerprint: tuple[tuple[int, int], ...] = ()

    @property
    def device(self) -> torch.device:
        return self.model.output.weight.device

    @torch.no_grad()
    def start(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> DecodingState:
        """Encode the sources (without their end-of-sentence, which the model was trained with and is added here)."""
        lengths = [len(source) + 1 for source in sources]
        longest = max(lengths)
        padded = [[*source, EOS, *([PAD] * (longest - len(source) - 1))] for source in sources]
        tokens = torch.tensor(padded, device=self.device)
        positions = torch.arange(longest, device=self.device).expand(len(sources), longest)
        segment = (positions < torch.tensor(lengths, device=self.device)[:, None]).long()
        memory = self._encode(tokens, segment, positions, lengths)
        same_length = min(lengths) == longest
        real = None if same_length else segment.bool()
        caches = [
            block.self_attention.make_cache(
                max_length=max_length + 1, num_rows=len(sources) * width, like=memory
            )
            for block in self.model.decoder
        ]
        keys_values = [block.cross_attention.keys_values(memory) for block in self.model.decoder]
        return DecodingState(caches, keys_values, _cross_mask(real), real, width)

    def _encode(
        self, tokens: Tensor, segment: Tensor, position: Tensor, lengths: Sequence[int]
    ) -> Tensor:
        """The encoded sources. On a CPU, where filling costs as much as words, those of like length go together."""
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
        """The most places a row of the encoder may have."""
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
    def enter(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> Room | None:
        """These sources in a room of a suitable size, new or used before."""
        if not self._has_rooms or self.attending:
            return None
        if self._fingerprint != (now := fingerprint(self._weights)):
            self._fingerprint, self._fixed = now, FixedDecoder(self.model)
            self._make_way(keep=0)
        source_limit = self.source_limit
        target_limit = getattr(self.model.target_embedding.positions, "max_length", None)
        sizes = {
            "num_sentences": round_sentences(len(sources)),
            "width": width,
            "max_length": round_length(max_length, limit=target_limit),
            "source_length": round_length(1 + max(map(len, sources)), limit=source_limit),
        }
        key = tuple(sizes.values())
        room = self._rooms.pop(key, None)
        if room is None:
            self._make_way(keep=MAX_ROOMS - 1)
            room = Room(self._fixed, **sizes)
        self._rooms[key] = room  # the last is the one used last
        room.enter(sources)
        return room

    def _make_way(self, *, keep: int) -> None:
        """Close the rooms not used for longest until so many are left, and they fill no more than their share of the memory."""
        limit = (
            MAX_SHARE * torch.cuda.mem_get_info(self.device)[1]
            if self.device.type == "cuda"
            else float("inf")
        )
        while (
            len(self._rooms) > keep or sum(room.num_bytes for room in self._rooms.values()) > limit
        ):
            self._rooms.pop(next(iter(self._rooms))).close()

    def attention(self, state: DecodingState) -> Float[Tensor, "hypothesis source"]:
        """How the last step looked at the source (mean over the last layer's heads); needs `attending`."""
        assert state.attention is not None, "build the decoder with attending=True"
        return state.attention


def group_lengths(lengths: Sequence[int]) -> list[Sequence[int]]:
    """Numbers of the sources, longest first, in the groups that are encoded together.

    A group ends where the next source is so much shorter that filling it up would cost more than GROUP_GAIN of the group; a group
    has at least GROUP_ROWS rows, or its products would no longer be worth starting.
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
