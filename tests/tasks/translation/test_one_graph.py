"""The whole loss, gradient included, is one graph for the compiler; a stop inside would be silent
and slow."""

import subprocess
import sys

import pytest

ONE_GRAPH = """
import torch
from headwise.data.packing import NAMES, PackedBatch
from headwise.models import DecoderSettings, EncoderDecoderSettings, StackSettings
from headwise.models.choices import build_model
from headwise.randomness import torch_generator
from headwise.tasks.translation.objective import TranslationLoss

stack = StackSettings(layers=1, heads=2)
settings = EncoderDecoderSettings(dim=16, encoder=stack, decoder=DecoderSettings(layers=1, heads=2))
model = build_model(settings, source_size=31, target_size=31, generator=torch_generator("graph"))
batch = PackedBatch(**{name: torch.ones(3, 7, dtype=torch.int64) for name in NAMES})
for training, half in ((False, True), (True, False)):
    task = TranslationLoss(model.train(training), 0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        compiled = torch.compile(task.loss, backend="aot_eager", fullgraph=True, dynamic=False)
        loss = compiled(batch).loss
        if not training:
            torch.testing.assert_close(loss, task.loss(batch).loss, rtol=1e-3, atol=1e-3)
    loss.backward()
"""


@pytest.mark.prove
def test_the_loss_is_one_graph():
    """In a process of its own: pytest's checks of shapes are no code for a compiler."""
    subprocess.run([sys.executable, "-c", ONE_GRAPH], check=True, timeout=240)
