import pytest
import torch
from torch import nn

from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.randomness import torch_generator
from headwise.training.gradient_checkpointing import blocks_of, recomputing_blocks
from headwise.training.loop import train
from headwise.weights import weights_of
from tests.training.tiny import TinyBatches, TinyTrainable, tiny_settings


def small_model() -> nn.Module:
    settings = EncoderDecoderSettings.model_validate(
        {
            "dim": 16,
            "encoder": {"layers": 2, "heads": 2},
            "decoder": {"layers": 3, "heads": 2},
            "dropout": {"residual": 0.3},
        }
    )
    return build_model(
        settings, source_size=23, target_size=23, generator=torch_generator("recompute")
    )


def gradients(model: nn.Module) -> tuple[dict[str, torch.Tensor], int]:
    """Of one loss, and the bytes kept for backward."""
    generator = torch_generator("words")
    words = torch.randint(1, 23, (3, 7), generator=generator)
    segment, position = torch.ones_like(words), torch.arange(7).expand(3, 7)
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    torch.manual_seed(5)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        hidden = model(
            words,
            words,
            source_segment=segment,
            target_segment=segment,
            source_position=position,
            target_position=position,
        )
        loss = hidden.square().sum()
    before = sum(kept.values())
    loss.backward()
    found = {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    model.zero_grad()
    return found, before


def test_gradients_are_the_same_bits_and_less_is_kept() -> None:
    model = small_model()
    plain, plain_bytes = gradients(model)
    with recomputing_blocks(model):
        again, bytes_kept = gradients(model)
    assert plain.keys() == again.keys()
    assert all(torch.equal(plain[name], again[name]) for name in plain)
    assert bytes_kept < plain_bytes / 3
    assert all("forward" not in vars(block) for block in blocks_of(model)), (
        "the blocks are left as they were"
    )


def test_blocks_are_the_layers_of_the_stacks() -> None:
    model = small_model()
    assert list(blocks_of(model)) == [*model.encoder, *model.decoder]
    assert list(blocks_of(nn.Linear(2, 3))) == []


class Stacked(TinyTrainable):
    """The tiny module with a stack of layers in it."""

    def __init__(self) -> None:
        super().__init__()
        inner = nn.ModuleList([self.module.inner])
        self.module.stack = inner
        self.module.forward = self._forward

    def _forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.module.table(words)
        for layer in self.module.stack:
            x = self.module.norm(x + self.module.dropout(torch.relu(layer(x))))
        return x


@pytest.mark.parametrize("changes", [{}, {"accumulation": 2}])
def test_training_with_it_gives_the_same_weights(changes: dict[str, int]) -> None:
    results = []
    for recompute in ("nothing", "blocks"):
        trainable = Stacked()
        train(trainable, TinyBatches(), tiny_settings(recompute=recompute, steps=5, **changes))
        results.append(weights_of(trainable.module))
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])
