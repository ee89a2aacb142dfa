"""The language model: no future, no other texts, step by step = at once, and a GPT-2 with the same
weights."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from headwise.errors import SettingsError
from headwise.models.choices import DecoderOnlySettings, build_decoder_only
from headwise.models.decoder_only import DecoderOnly
from headwise.settings import check_settings
from tests.models.test_encoder_decoder import VARIANTS

VOCAB, DIM, TIME = 23, 16, 11
KINDS = {
    name: changes
    for name, changes in VARIANTS.items()
    if "decoder" not in changes or name == "relative"
}


def make(variant: str, generator: torch.Generator) -> DecoderOnly:
    changes = {
        key: value for key, value in KINDS[variant].items() if key not in ("encoder", "decoder")
    }
    kernel = {"kind": "full" if variant == "relative" else "fused"}
    data = {"dim": DIM, "layers": 2, "heads": 4, "attention": kernel} | changes
    return build_decoder_only(
        check_settings(DecoderOnlySettings, data), size=VOCAB, generator=generator
    ).eval()


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randint(0, VOCAB, shape, generator=generator)


@pytest.mark.parametrize("variant", KINDS)
def test_steps_equal_at_once_and_the_future_is_hidden(
    variant: str, generator: torch.Generator
) -> None:
    model, tokens = make(variant, generator), draw(generator, 3, TIME)
    with torch.no_grad():
        whole = model(tokens)
        state = model.start(num_rows=3, max_length=TIME)
        steps = torch.stack([model.step(tokens[:, time], state) for time in range(TIME)], dim=1)
        shorter = model(tokens[:, :7])
    torch.testing.assert_close(steps, whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(shorter, whole[:, :7], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("variant", KINDS)
def test_packed_texts_do_not_know_each_other(variant: str, generator: torch.Generator) -> None:
    model, tokens = make(variant, generator), draw(generator, 1, TIME)
    segment = torch.tensor([[1] * 4 + [2] * 5 + [0] * 2])
    position = torch.cat([torch.arange(4), torch.arange(5), torch.zeros(2, dtype=torch.long)])[None]
    with torch.no_grad():
        packed = model(tokens, segment=segment, position=position)
        torch.testing.assert_close(packed[:, :4], model(tokens[:, :4]), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(packed[:, 4:9], model(tokens[:, 4:9]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["power", "batch"])
def test_filling_teaches_norms_nothing(kind: str, generator: torch.Generator) -> None:
    tokens, segment = draw(generator, 2, TIME), torch.ones(2, TIME, dtype=torch.long)
    segment[:, 7:] = 0
    states = []
    for filling in (0, 5):
        model = make(kind, torch.Generator().manual_seed(0))
        for dropped in (
            *(block.attention_residual for block in model.blocks),
            *(b.feed_forward_residual for b in model.blocks),
        ):
            dropped.dropout_rate = 0.0
        model.embedding.dropout_rate = 0.0
        rows = torch.where(segment == 0, filling, tokens)
        loss = F.cross_entropy(
            model.train().logits(model(rows, segment=segment))[:, :7].flatten(0, 1),
            tokens[:, :7].flatten(),
        )
        loss.backward()
        states.append(
            {
                name: value
                for name, value in model.named_buffers()
                if "running" in name or "mean" in name
            }
        )
    assert states[0]
    for name, value in states[0].items():
        torch.testing.assert_close(value, states[1][name], msg=name)


def test_a_gpt2_with_the_same_weights(generator: torch.Generator) -> None:
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=31,
        n_embd=DIM,
        n_layer=2,
        n_head=4,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
    )
    config.activation_function = "gelu"
    theirs = GPT2LMHeadModel(config).eval()
    data = {"dim": DIM, "layers": 2, "heads": 4, "scaled": False, "feed_forward": {"kind": "gelu"}}
    settings = check_settings(
        DecoderOnlySettings, data | {"position": {"kind": "learned", "max_length": 31}}
    )
    ours = build_decoder_only(settings, size=VOCAB, generator=generator).eval()
    with torch.no_grad():
        gpt = theirs.transformer
        gpt.wte.weight.copy_(ours.embedding.table.weight)
        gpt.wpe.weight.copy_(ours.embedding.positions.table.weight)
        for block, peer in zip(ours.blocks, gpt.h, strict=True):
            own = block.self_attention
            for linear in (
                own.query,
                own.key_value,
                own.output,
                block.feed_forward.widen,
                block.feed_forward.narrow,
            ):
                linear.bias.normal_(generator=generator)
            peer.attn.c_attn.weight.copy_(torch.cat([own.query.weight, own.key_value.weight]).T)
            peer.attn.c_attn.bias.copy_(torch.cat([own.query.bias, own.key_value.bias]))
            pairs = [(peer.attn.c_proj, own.output), (peer.mlp.c_fc, block.feed_forward.widen)]
            for theirs_linear, linear in (*pairs, (peer.mlp.c_proj, block.feed_forward.narrow)):
                theirs_linear.weight.copy_(linear.weight.T)
                theirs_linear.bias.copy_(linear.bias)
        tokens = draw(generator, 3, TIME)
        torch.testing.assert_close(
            ours.logits(ours(tokens)), theirs(tokens).logits, atol=1e-4, rtol=1e-4
        )


def test_heads_must_divide() -> None:
    with pytest.raises(
        SettingsError,
        match=r"(?<!decoder\.)heads=3 does not divide dim=16; choose a divisor such as 2",
    ):
        check_settings(DecoderOnlySettings, {"dim": 16, "heads": 3})


def test_attention_is_named_for_people(generator: torch.Generator) -> None:
    assert list(make("alibi", generator).attention_layers()) == ["decoder.0.self", "decoder.1.self"]
