"""The model sizes that benchmarks speak of, what they cost on paper, and the same network as peers
write it.

Products of one target token, forward and backward (a product costs 2 operations a weight, and
backward is twice forward):

    encoder layer   4 d² + 2 d f           per source token          d = dim, f = hidden
    decoder layer   6 d² + 2 d f           per target token
                    2 d²                   per source token: keys and values of the source
    output          d V                    per target token          V = vocabulary
    flops           6 × the sum            small 45 MFLOP, base 289 MFLOP per target token

Products of attention itself, 1-2 % at these lengths, are left out.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from headwise.blocks.choices import Layer, Relu
from headwise.models.choices import (
    DecoderSettings,
    EncoderDecoderSettings,
    StackSettings,
    build_model,
)
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.randomness import torch_generator
from headwise.text.tokenizer import BOS, EOS, PAD

MAX_LENGTH = 512
DROPOUT = 0.1


@dataclass(frozen=True)
class Size:
    dim: int
    heads: int
    hidden: int
    layers: int
    vocab: int = 8000

    @property
    def training_flops(self) -> float:
        """Of one target token with its share of the source, which is as long."""
        encoder = self.layers * (4 * self.dim**2 + 2 * self.dim * self.hidden)
        decoder = self.layers * (8 * self.dim**2 + 2 * self.dim * self.hidden)
        return 6.0 * (encoder + decoder + self.dim * self.vocab)

    @property
    def step_weights(self) -> int:
        """Weights that one decoding step multiplies with: the decoder's, less keys and values of
        the source, and the output's."""
        return self.layers * (6 * self.dim**2 + 2 * self.dim * self.hidden) + self.dim * self.vocab

    @property
    def encoding_weights(self) -> int:
        """Weights each source token meets: the encoder's, and those that make the decoder's keys
        and values."""
        return self.layers * (6 * self.dim**2 + 2 * self.dim * self.hidden)


SIZES = {
    "tiny": Size(dim=32, heads=2, hidden=64, layers=1, vocab=200),
    "pocket": Size(dim=128, heads=4, hidden=512, layers=2, vocab=1600),
    "small": Size(dim=256, heads=4, hidden=1024, layers=3),
    "base": Size(dim=512, heads=8, hidden=2048, layers=6),
}


def build_ours(size: Size) -> EncoderDecoder:
    """As a recipe would: norm before, dropout 0.1 on residuals and embeddings."""
    stack = StackSettings(layers=size.layers, heads=size.heads)
    decoder = DecoderSettings(layers=size.layers, heads=size.heads)
    settings = EncoderDecoderSettings(
        dim=size.dim,
        encoder=stack,
        decoder=decoder,
        norm=Layer(),
        feed_forward=Relu(hidden=size.hidden),
    )
    return build_model(
        settings,
        source_size=size.vocab,
        target_size=size.vocab,
        generator=torch_generator("benchmark", "weights"),
    )


def build_marian(size: Size) -> MarianMTModel:
    """transformers' Marian with torch's fused attention, the same dropout, one embedding for
    all."""
    config = MarianConfig(
        vocab_size=size.vocab,
        d_model=size.dim,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.hidden,
        decoder_ffn_dim=size.hidden,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=MAX_LENGTH,
        dropout=DROPOUT,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        attn_implementation="sdpa",
    )
    return MarianMTModel(config)


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with the embeddings, positions and tied output it leaves to its user."""

    positions: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.scale = math.sqrt(size.dim)
        self.table = nn.Embedding(size.vocab, size.dim)
        nn.init.normal_(self.table.weight, std=size.dim**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            size.dim, size.heads, size.layers, size.layers, size.hidden, DROPOUT, batch_first=True
        )
        angles = torch.arange(MAX_LENGTH)[:, None] * 10000 ** (
            -torch.arange(0, size.dim, 2) / size.dim
        )
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], dim=1))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        future = torch.ones(
            target.shape[1], target.shape[1], dtype=torch.bool, device=target.device
        ).triu(1)
        hidden = self.transformer(
            self._embed(source),
            self._embed(target),
            tgt_mask=future,
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return hidden @ self.table.weight.t()

    def _embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.table(tokens) * self.scale + self.positions[: tokens.shape[1]])
