import pytest
import torch
from torch import nn

from headwise.errors import CheckpointError
from headwise.training.averaging import MovingAverage, SnapshotFolder, average_snapshots
from headwise.weights import weights_of


def test_mean_of_snapshots(tmp_path, generator):
    folder = SnapshotFolder(tmp_path / "snapshots")
    written = []
    for step in (5, 10, 15):
        weights = {"w": torch.randn(3, 2, generator=generator), "count": torch.tensor(step)}
        written.append(weights["w"])
        folder.write(step, weights)
    assert folder.steps() == [5, 10, 15]
    mean = average_snapshots(folder, [10, 15])
    expected = ((written[1].double() + written[2].double()) / 2).float()
    assert torch.equal(mean["w"], expected)
    assert mean["count"] == 15
    folder.keep_only([10])
    assert folder.steps() == [10]
    assert not list(folder.path.glob("*.retired"))


def test_a_damaged_snapshot_is_named(tmp_path):
    folder = SnapshotFolder(tmp_path)
    folder.write(5, {"w": torch.ones(64)})
    file = folder.at(5) / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: is damaged"):
        folder.read(5)


def test_moving_average_by_the_formula(generator):
    module = nn.BatchNorm1d(3)
    average = MovingAverage(module, decay=0.7)
    expected = module.weight.detach().double().clone()
    for step in range(1, 30):
        with torch.no_grad():
            module.weight.copy_(torch.randn(3, generator=generator))
            module.num_batches_tracked += 1
        average.update(step)
        decay = min(0.7, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * module.weight.detach().double()
    torch.testing.assert_close(average.weights["weight"].double(), expected, rtol=1e-5, atol=1e-6)
    assert average.weights["num_batches_tracked"] == 29


def test_applied_swaps_and_restores():
    module = nn.Linear(2, 2)
    average = MovingAverage(module, decay=0.5)
    own = {name: tensor.clone() for name, tensor in weights_of(module).items()}
    average.weights["weight"].fill_(9)
    with average.applied():
        assert (module.weight == 9).all()
    assert torch.equal(module.weight, own["weight"])
    assert (average.weights["weight"] == 9).all()
