"""The same Transformer as other people wrote it: transformers' Marian (norm after) and Pegasus
(norm before).

Both scale embeddings by √dim, put all sines before all cosines, share the output matrix with the
target's embedding and add a bias to the logits; they differ in the place of the norm. `copy_marian`
makes our model with a peer's weights; `pair_weights` says which of our parameters stand for which
of theirs, for gradients too.
"""

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel, PegasusConfig, PegasusForConditionalGeneration

from headwise.attention.choices import Full, Fused
from headwise.blocks.choices import DropoutSettings, EmbeddingSettings, Gelu, Layer, Relu
from headwise.models.choices import (
    DecoderSettings,
    EncoderDecoderSettings,
    StackSettings,
    build_model,
)
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.positions.choices import Sinusoidal
from headwise.randomness import torch_generator

Peer = MarianMTModel | PegasusForConditionalGeneration
PAD, BOS, EOS = 0, 1, 2
SIZES = {
    "dim": 24,
    "heads": 3,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "hidden": 37,
    "vocab": 53,
}


def make_peer(
    key: str, *, norm: str = "after", activation: str = "relu", tied: str = "all", **sizes: int
) -> Peer:
    """A small peer whose weights, norms and biases are all random, so that nothing agrees by being
    zero or one."""
    size = SIZES | sizes
    config = (MarianConfig if norm == "after" else PegasusConfig)(
        vocab_size=size["vocab"],
        d_model=size["dim"],
        encoder_layers=size["encoder_layers"],
        decoder_layers=size["decoder_layers"],
        encoder_attention_heads=size["heads"],
        decoder_attention_heads=size["heads"],
        encoder_ffn_dim=size["hidden"],
        decoder_ffn_dim=size["hidden"],
        activation_function=activation,
        scale_embedding=True,
        max_position_embeddings=128,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        **(
            {}
            if tied == "all"
            else {
                "share_encoder_decoder_embeddings": False,
                "decoder_vocab_size": size["vocab"] + 6,
            }
        ),
    )
    peer = (MarianMTModel if norm == "after" else PegasusForConditionalGeneration)(config).eval()
    generator = torch_generator("peer", key)
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            if "embed_positions" not in name:
                around = 1.0 if "norm.weight" in name else 0.0
                parameter.copy_(around + 0.2 * torch.randn(parameter.shape, generator=generator))
        peer.final_logits_bias.copy_(torch.randn(peer.final_logits_bias.shape, generator=generator))
    return peer


def settings_of(peer: Peer, *, attention: str = "fused") -> EncoderDecoderSettings:
    """Of our model with the shape of a Marian or Pegasus model of transformers."""
    config = peer.config
    shared = peer.model.encoder.embed_tokens.weight is peer.model.decoder.embed_tokens.weight
    kernel = Full() if attention == "full" else Fused()
    feed_forward = {"relu": Relu, "gelu": Gelu}[config.activation_function]
    return EncoderDecoderSettings(
        dim=config.d_model,
        encoder=StackSettings(
            layers=config.encoder_layers, heads=config.encoder_attention_heads, attention=kernel
        ),
        decoder=DecoderSettings(
            layers=config.decoder_layers,
            heads=config.decoder_attention_heads,
            attention=kernel,
            cross_attention=kernel,
        ),
        position=Sinusoidal(layout="halves"),
        norm=Layer(place="after" if isinstance(peer, MarianMTModel) else "before"),
        feed_forward=feed_forward(hidden=config.encoder_ffn_dim),
        embedding=EmbeddingSettings(
            tied="all" if shared else "output", scaled=config.scale_embedding
        ),
        dropout=DropoutSettings(residual=0.0, embedding=0.0),
        output_bias=True,
    )


def copy_marian(peer: Peer, *, attention: str = "fused") -> EncoderDecoder:
    """Our model with the weights of a Marian or Pegasus model of transformers."""
    settings = settings_of(peer, attention=attention)
    model = build_model(
        settings,
        source_size=peer.model.encoder.embed_tokens.num_embeddings,
        target_size=peer.model.decoder.embed_tokens.num_embeddings,
        generator=torch_generator("overwritten"),
    )
    with torch.no_grad():
        for ours, theirs in pair_weights(model, peer):
            assert ours.shape == torch.cat(theirs).shape
            ours.copy_(torch.cat(theirs))
        model.output.bias.copy_(peer.final_logits_bias[0])
    return model.eval()


def pair_weights(model: EncoderDecoder, peer: Peer) -> list[tuple[nn.Parameter, list[Tensor]]]:
    """Each of our parameters (the output bias apart) with the ones of the peer that stand below
    each other in it."""
    pairs: list[tuple[nn.Parameter, list[Tensor]]] = [
        (model.source_embedding.table.weight, [peer.model.encoder.embed_tokens.weight]),
        (model.target_embedding.table.weight, [peer.model.decoder.embed_tokens.weight]),
    ]

    def pair(ours: nn.Module, *theirs: nn.Module) -> None:
        names = ("gain", "shift") if hasattr(ours, "gain") else ("weight", "bias")
        for own, other in zip(names, ("weight", "bias"), strict=True):
            pairs.append((getattr(ours, own), [getattr(module, other) for module in theirs]))

    def pair_attention(ours: nn.Module, theirs: nn.Module) -> None:
        pair(ours.query, theirs.q_proj)
        pair(ours.key_value, theirs.k_proj, theirs.v_proj)
        pair(ours.output, theirs.out_proj)

    for ours, theirs in [
        *zip(model.encoder, peer.model.encoder.layers, strict=True),
        *zip(model.decoder, peer.model.decoder.layers, strict=True),
    ]:
        pair_attention(ours.self_attention, theirs.self_attn)
        pair(ours.attention_residual.norm, theirs.self_attn_layer_norm)
        if hasattr(ours, "cross_attention"):
            pair_attention(ours.cross_attention, theirs.encoder_attn)
            pair(ours.cross_residual.norm, theirs.encoder_attn_layer_norm)
        pair(ours.feed_forward.widen, theirs.fc1)
        pair(ours.feed_forward.narrow, theirs.fc2)
        pair(ours.feed_forward_residual.norm, theirs.final_layer_norm)
    if isinstance(peer, PegasusForConditionalGeneration):
        pair(model.encoder_norm, peer.model.encoder.layer_norm)
        pair(model.decoder_norm, peer.model.decoder.layer_norm)
    return pairs
