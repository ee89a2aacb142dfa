"""Padding changes nothing, the mean is over real tokens, gradients are finite, and it finds the
token that matters."""

import pytest
import torch
import torch.nn.functional as F
from benchmarks.listops_classifier import ClassifierSettings, build_classifier

from headwise.attention.choices import BigBird
from headwise.blocks.choices import Batch, Layer, Power
from headwise.comparing.attention import known_kernels, suited
from headwise.randomness import torch_generator

SMALL = ClassifierSettings(dim=16, layers=2, heads=2, dropout=0.0)


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_padding_changes_nothing(pooling: str) -> None:
    settings = SMALL.model_copy(update={"pooling": pooling})
    model = build_classifier(
        settings, vocabulary_size=11, num_classes=3, generator=torch_generator("t")
    ).eval()
    tokens = torch.randint(1, 11, (2, 7), generator=torch_generator("tokens"))
    padded = F.pad(tokens, (0, 6))
    assert torch.allclose(model(tokens), model(padded), atol=1e-5)


def test_the_mean_is_of_real_tokens() -> None:
    settings = SMALL.model_copy(update={"pooling": "mean"})
    model = build_classifier(
        settings, vocabulary_size=11, num_classes=3, generator=torch_generator("t")
    )
    x = torch.arange(12.0).reshape(1, 3, 4)
    pooled = model.pool(x, torch.tensor([[True, True, False]]))
    assert pooled.tolist() == [[2.0, 3.0, 4.0, 5.0]]


@pytest.mark.parametrize("kind", known_kernels())
def test_every_kernel_gives_finite_gradients(kind: str) -> None:
    attention = suited(known_kernels()[kind], 64)
    settings = SMALL.model_copy(update={"attention": attention})
    model = build_classifier(
        settings, vocabulary_size=11, num_classes=3, generator=torch_generator("t")
    )
    tokens = F.pad(torch.randint(1, 11, (2, 41), generator=torch_generator("tokens")), (0, 23))
    F.cross_entropy(model(tokens), torch.tensor([0, 2])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


def test_it_finds_the_one_token_that_matters() -> None:
    """Filling of 1 with one other token somewhere: the class is that token."""
    model = build_classifier(
        SMALL, vocabulary_size=7, num_classes=5, generator=torch_generator("t")
    )
    generator = torch_generator("data")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(60):
        tokens = torch.ones(32, 11, dtype=torch.long)
        answers = torch.randint(5, (32,), generator=generator)
        tokens[torch.arange(32), torch.randint(11, (32,), generator=generator)] = answers + 2
        loss = F.cross_entropy(model(tokens), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.3 * sum(losses[:10])


@pytest.mark.parametrize("kind", known_kernels())
@pytest.mark.parametrize("norm", [Layer(), Power(), Batch()], ids=lambda norm: norm.kind)
def test_filling_changes_nothing_under_any_kernel_and_norm(
    kind: str, norm: Layer | Power | Batch
) -> None:
    attention = BigBird(block=2) if kind == "bigbird" else suited(known_kernels()[kind], 32)
    settings = SMALL.model_copy(update={"attention": attention, "norm": norm, "pooling": "mean"})
    tokens = torch.randint(1, 11, (2, 13), generator=torch_generator("tokens"))
    padded = F.pad(tokens, (0, 8))
    first, second = (
        build_classifier(
            settings, vocabulary_size=11, num_classes=3, generator=torch_generator("t")
        )
        for _ in range(2)
    )
    # And statistics are counted.
    torch.testing.assert_close(first(tokens), second(padded), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(first.eval()(tokens), second.eval()(padded), atol=1e-4, rtol=1e-4)
