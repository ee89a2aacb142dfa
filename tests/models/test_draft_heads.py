"""Draft heads: the formula head by head, and what they leave of the model."""

import torch

from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.draft_heads import DraftHeads, DraftHeadSettings
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.transformer_stepper import TransformerStepper
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from headwise.weights import weights_of

VOCAB = 23


def model_with(count: int, seed: str = "heads") -> EncoderDecoder:
    stack = {"layers": 1, "heads": 2}
    data = {"dim": 8, "encoder": stack, "decoder": stack, "draft_heads": {"count": count}}
    settings = check_settings(EncoderDecoderSettings, data)
    return build_model(
        settings, source_size=VOCAB, target_size=VOCAB, generator=torch_generator(seed)
    ).eval()


def test_every_head_is_its_formula(generator: torch.Generator) -> None:
    heads = DraftHeads(DraftHeadSettings(count=3, hidden=5), dim=8)
    for parameter in heads.parameters():
        parameter.data.normal_(generator=generator)
    state, written = torch.randn((2, 7, 8), generator=generator)
    found = heads(state, written)
    weights, biases = heads.widen.weight.view(3, 5, 16), heads.widen.bias.view(3, 5)
    for number in range(3):
        hidden = torch.cat([state, written], 1) @ weights[number].t() + biases[number]
        expected = state + hidden.relu() @ heads.narrowing[number]
        torch.testing.assert_close(found[number], expected)


def test_new_heads_expect_what_the_model_expects_next() -> None:
    verifier = TransformerStepper(model_with(2)).make_verifier([[4, 5], [6]], max_length=5, block=3)
    best = verifier.score(torch.ones((2, 1), dtype=torch.long)).argmax(-1)
    verifier.accept([1, 1])
    assert verifier.look_ahead(best[:, 0], 2).tolist() == best.expand(2, 2).tolist()


def test_heads_leave_the_model_as_it_is() -> None:
    without, with_heads = model_with(0), model_with(3)
    names = weights_of(without).keys()
    assert {name for name in weights_of(with_heads) if name not in names} == {
        "draft_heads.widen.weight",
        "draft_heads.widen.bias",
        "draft_heads.narrowing",
    }
    for name in names:
        torch.testing.assert_close(weights_of(with_heads)[name], weights_of(without)[name])
    assert TransformerStepper(with_heads).num_draft_heads == 3
