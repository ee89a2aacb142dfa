"""One token at a time: the encoder–decoder as a stepper, with caches, for any search.

`start` encodes the sources once and keeps each layer's keys and values of the source per sentence; `step` feeds one
token to every hypothesis and returns the log-probabilities of the next; `reorder` follows the search's choice of survivors.
The source is shared by all hypotheses of a sentence and never copied for them; only the decoder's own keys and values
are moved, and only the part that has been written.

Tested against: the whole target computed at once by `EncoderDecoder.forward`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.cache import KeyValueCache
from headwise.attention.masks import Mask, padding
from headwise.attention.multi_head import KeysValues
from headwise.models.encoder_decoder import EncoderDecoder

PAD, EOS = 0, 2


@dataclass
class DecodingState:
    """What is remembered between steps; `width` hypotheses per sentence, sentence-major."""

    caches: list[KeyValueCache]
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

    def __init__(self, model: EncoderDecoder, *, attending: bool = False) -> None:
        self.model = model.eval()
        self.attending = attending

    @property
    def device(self) -> torch.device:
        return self.model.output.weight.device

    @torch.no_grad()
    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> DecodingState:
        """Encode the sources (without their end-of-sentence, which the model was trained with and is added here)."""
        lengths = [len(source) + 1 for source in sources]
        longest = max(lengths)
        padded = [[*source, EOS, *([PAD] * (longest - len(source) - 1))] for source in sources]
        tokens = torch.tensor(padded, device=self.device)
        positions = torch.arange(longest, device=self.device).expand(len(sources), longest)
        segment = (positions < torch.tensor(lengths, device=self.device)[:, None]).long()
        memory = self.model.encode(tokens, segment=segment, position=positions)
        same_length = min(lengths) == longest
        real = None if same_length else segment.bool()
        weight = self.model.output.weight
        caches = [
            KeyValueCache.empty(
                max_length=max_length + 1,
                num_rows=len(sources) * width,
                num_heads=block.self_attention.num_heads,
                head_dim=weight.shape[1] // block.self_attention.num_heads,
                like=memory,
            )
            for block in self.model.decoder
        ]
        keys_values = [block.cross_attention.keys_values(memory) for block in self.model.decoder]
        return DecodingState(caches, keys_values, _cross_mask(real), real, width)

    @torch.no_grad()
    def step(
        self, state: DecodingState, tokens: Int[Tensor, " hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], DecodingState]:
        position = torch.full((tokens.shape[0], 1), state.time, device=tokens.device)
        x = self.model.target_embedding(tokens[:, None], position, length=state.time + 1)
        state.time += 1
        watch: list[Tensor] | None = [] if self.attending else None
        for block, cache, source in zip(self.model.decoder, state.caches, state.sources, strict=True):
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

    def attention(self, state: DecodingState) -> Float[Tensor, "hypothesis source"]:
        """How the last step looked at the source (mean over the last layer's heads); needs `attending`."""
        assert state.attention is not None, "build the decoder with attending=True"
        return state.attention


def _cross_mask(real: Tensor | None) -> Mask:
    return Mask() if real is None else padding(real)
