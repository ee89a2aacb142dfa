"""Encoders: what each can see, and that sentences of one row do not see each other."""

import pytest
import torch

from headwise.attention.choices import Linear, Window
from headwise.blocks.choices import Power, Rms
from headwise.errors import SettingsError
from headwise.models.labeller import build_labeller, mean_of_segments
from headwise.models.sentence_encoder import (
    RecurrentEncoderSettings,
    SentenceEncoderSettings,
    TransformerEncoderSettings,
    WindowEncoderSettings,
    WordEncoderSettings,
)
from headwise.positions.choices import Relative, Rotary
from headwise.randomness import torch_generator
from headwise.settings import check_settings

ENCODERS: dict[str, SentenceEncoderSettings] = {
    "word": WordEncoderSettings(dim=12),
    "window": WindowEncoderSettings(dim=12, reach=2, hidden=17),
    "recurrent": RecurrentEncoderSettings(dim=12, layers=2),
    "recurrent, gru": RecurrentEncoderSettings(dim=12, layers=1, cell="gru"),
    "recurrent, one direction": RecurrentEncoderSettings(
        dim=12, layers=3, cell="rnn", bidirectional=False
    ),
    "encoder": TransformerEncoderSettings(dim=12, layers=2, heads=3),
    "encoder, other parts": TransformerEncoderSettings(
        dim=12, layers=2, heads=3, position=Relative(limit=3, values=False), norm=Rms(place="after")
    ),
    "encoder, halves": TransformerEncoderSettings(dim=12, layers=1, heads=3, halves=True),
    "window attention": TransformerEncoderSettings(
        dim=12, layers=1, heads=3, attention=Window(left=2, right=2), position=Rotary()
    ),
    "linear attention": TransformerEncoderSettings(
        dim=12, layers=1, heads=3, attention=Linear(), norm=Power()
    ),
}


def _model(settings: SentenceEncoderSettings, pooling: str = "none"):
    return build_labeller(
        settings,
        vocabulary_size=23,
        num_classes=5,
        pooling=pooling,
        generator=torch_generator("labeller"),  # type: ignore[arg-type]
    ).eval()


def _sentence(*tokens: int) -> dict[str, torch.Tensor]:
    length = len(tokens)
    return {
        "tokens": torch.tensor([tokens]),
        "segment": torch.ones(1, length, dtype=torch.long),
        "position": torch.arange(length)[None],
    }


def _logits(model: torch.nn.Module, rows: dict[str, torch.Tensor]) -> torch.Tensor:
    return model(rows["tokens"], segment=rows["segment"], position=rows["position"])


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("pooling", ["none", "mean", "first"])
def test_packed_rows_are_sentences_one_by_one(name: str, pooling: str) -> None:
    model = _model(ENCODERS[name], pooling)
    one, other = (7, 9, 11, 5), (4, 13, 9)
    packed = {
        "tokens": torch.tensor([[*one, *other, 0, 0]]),
        "segment": torch.tensor([[1] * 4 + [2] * 3 + [0] * 2]),
        "position": torch.tensor([[0, 1, 2, 3, 0, 1, 2, 0, 0]]),
    }
    together = _logits(model, packed)[0]
    alone = torch.cat([_logits(model, _sentence(*words))[0] for words in (one, other)])
    torch.testing.assert_close(together[:7], alone, rtol=1e-4, atol=1e-5)


def test_one_word_at_a_time_cannot_tell_two_of_them_apart() -> None:
    sentence = _sentence(4, 9, 5, 6, 7, 8, 9)  # "I saw … a saw": 9 stands twice
    differs = {
        name: not torch.allclose(*_logits(_model(ENCODERS[name]), sentence)[0, [1, 6]], atol=1e-5)
        for name in ("word", "window", "recurrent", "encoder")
    }
    assert differs == {"word": False, "window": True, "recurrent": True, "encoder": True}


@pytest.mark.parametrize(
    ("name", "sees"),
    [("word", 0), ("window", 2), ("recurrent", 4), ("recurrent, one direction", 0), ("encoder", 4)],
)
def test_how_far_a_rung_sees(name: str, sees: int) -> None:
    model = _model(ENCODERS[name])
    before = _logits(model, _sentence(4, 5, 6, 7, 8, 9, 10, 11, 12))[0, 4]
    reach = 0
    for distance in range(1, 5):
        tokens = [4, 5, 6, 7, 8, 9, 10, 11, 12]
        tokens[4 + distance] = 20
        if not torch.allclose(_logits(model, _sentence(*tokens))[0, 4], before, atol=1e-6):
            reach = distance
    assert reach == sees


def test_the_mean_of_each_sentence() -> None:
    x = torch.randn(2, 7, 3, generator=torch_generator("x"))
    segment = torch.tensor([[1, 1, 2, 2, 2, 0, 0], [1, 1, 1, 1, 1, 1, 1]])
    found = mean_of_segments(x, segment)
    torch.testing.assert_close(found[0, 1], x[0, :2].mean(0))
    torch.testing.assert_close(found[0, 3], x[0, 2:5].mean(0))
    torch.testing.assert_close(found[1, 0], x[1].mean(0))


def test_letters_are_added_and_unseen_ones_say_nothing() -> None:
    model = _model(WordEncoderSettings(dim=12, letters=31))
    rows, letters = _sentence(4, 5), torch.tensor([[[3, 0], [4, 5]]])
    fresh = model(
        rows["tokens"], segment=rows["segment"], position=rows["position"], affixes=letters
    )
    torch.testing.assert_close(fresh, _logits(model, rows))
    with torch.no_grad():
        model.encoder.letters.endings.weight[4] += 1.0
    changed = model(
        rows["tokens"], segment=rows["segment"], position=rows["position"], affixes=letters
    )
    assert torch.equal(changed[0, 0], fresh[0, 0])
    assert not torch.equal(changed[0, 1], fresh[0, 1])


def test_dropped_words_are_shown_as_unknown_while_training() -> None:
    model = _model(
        WordEncoderSettings(dim=12, word_dropout=0.9, dropout={"embedding": 0.0, "residual": 0.0})
    )  # type: ignore[arg-type]
    rows = _sentence(*range(4, 22))
    unknown = _logits(model, _sentence(3))[0, 0]
    quiet = (_logits(model, rows)[0] == unknown).all(-1).sum()
    noisy = (_logits(model.train(), rows)[0] - unknown).abs().amax(-1).lt(1e-6).sum()
    assert quiet == 0
    assert noisy > 8


def test_heads_that_do_not_divide() -> None:
    with pytest.raises(
        SettingsError, match="heads=5 does not divide dim=128; choose a divisor such as 4"
    ):
        check_settings(TransformerEncoderSettings, {"heads": 5})
