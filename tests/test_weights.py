"""Weights on disk: bit-equal after a round trip, tied ones stored once, and nothing is loaded that
does not fit."""

import json
import os
import pickle
import struct
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from headwise.errors import CheckpointError
from headwise.weights import load_weights, read_tensors, weights_of, write_tensors


class Tied(nn.Module):
    """One matrix under two names, a part that is not contiguous, a buffer that is saved and one
    that is not."""

    def __init__(self, key: int = 0, width: int = 3) -> None:
        super().__init__()
        torch.manual_seed(key)
        self.table = nn.Embedding(5, width)
        self.output = nn.Linear(width, 5)
        self.output.weight = self.table.weight
        self.turned = nn.Parameter(torch.randn(2, 7).T)
        self.register_buffer("seen", torch.tensor(key))
        self.register_buffer("scratch", torch.zeros(11), persistent=False)


def bits(module: nn.Module) -> dict[str, bytes]:
    return {
        name: value.contiguous().numpy().tobytes() for name, value in module.state_dict().items()
    }


def test_a_round_trip_is_bit_equal_and_keeps_the_tie(tmp_path: Path) -> None:
    first, second = Tied(1), Tied(2)
    with torch.no_grad():
        first.turned[1, 1], first.turned[2, 0] = -0.0, 1e-42
    assert bits(first) != bits(second)
    write_tensors(tmp_path / "weights.safetensors", weights_of(first))
    load_weights(second, tmp_path / "weights.safetensors")
    assert bits(first) == bits(second)
    assert second.output.weight is second.table.weight


def test_a_tied_weight_is_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    write_tensors(path, weights_of(Tied()))
    with safe_open(path, "pt") as file:
        assert sorted(file.keys()) == ["output.bias", "seen", "table.weight", "turned"]
    assert weights_of(Tied()).keys() == {"table.weight", "output.bias", "turned", "seen"}


def test_every_difference_is_listed_and_nothing_is_copied(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    weights = {
        "table.weight": torch.zeros(5, 4),
        "turned": torch.zeros(7, 2, dtype=torch.float16),
        "extra": torch.zeros(1),
    }
    save_file(weights | {"seen": torch.tensor(9)}, path)
    model = Tied(3)
    before = bits(model)
    with pytest.raises(CheckpointError) as caught:
        load_weights(model, path)
    for part in (
        "missing output.bias",
        "unknown extra",
        "table.weight is float32[5, 4] instead of float32[5, 3]",
        "turned is float16[7, 2] instead of float32[7, 2]",
        "use the recipe it was trained with",
        str(path),
    ):
        assert part in str(caught.value)
    assert bits(model) == before


def test_many_differences_are_counted(tmp_path: Path) -> None:
    save_file(
        {f"unknown{number:02}": torch.zeros(1) for number in range(19)},
        tmp_path / "weights.safetensors",
    )
    with pytest.raises(CheckpointError, match="and 11 more"):
        load_weights(Tied(), tmp_path / "weights.safetensors")


class Bomb:
    def __reduce__(self) -> tuple:
        return (os.mkdir, ("exploded",))


def test_a_renamed_pickle_is_refused_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "pickle": pickle.dumps(Bomb()),
        "torch": b"PK\x03\x04" + bytes(64),
        "text": b"hello",
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is not a safetensors file"):
            load_weights(Tied(), path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("header_bytes", [101 << 20, 1 << 62, 2**64 - 1])
def test_a_header_that_claims_too_much_is_refused_unread(header_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", header_bytes) + b"{")
        file.truncate(200 << 20)  # sparse: a reader that believed the number would take 100 MB
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        load_weights(Tied(), path)


@pytest.mark.parametrize("cut", [4, 8, 9, 100, -1])
def test_a_cut_file_is_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    write_tensors(path, weights_of(Tied()))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(CheckpointError, match=r"is not a safetensors file|is damaged"):
        load_weights(Tied(), path)


def test_a_header_with_wrong_offsets_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    header = json.dumps(
        {"turned": {"dtype": "F32", "shape": [7, 2], "data_offsets": [0, 10**9]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(56))
    with pytest.raises(CheckpointError, match="is damaged"):
        load_weights(Tied(), path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be read \(No such file"):
        load_weights(Tied(), tmp_path / "nowhere.safetensors")


def test_weights_in_another_order_load(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    first = Tied(5)
    save_file(
        {
            name: value.clone().contiguous()
            for name, value in sorted(weights_of(first).items(), reverse=True)
        },
        path,
    )
    second = Tied(6)
    load_weights(second, path)
    assert bits(first) == bits(second)


def test_a_full_disk_is_known_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("headwise.weights.save_file", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_tensors(tmp_path / "x", {})


@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_numbers_that_are_not_finite_are_refused_and_their_tensor_named(
    tmp_path: Path, number: float, dtype: torch.dtype
) -> None:
    """One number of many, wherever it stands: first, last or in the middle of a vectorised pass."""
    for place in (0, 500, 1008):
        bad = torch.randn(1009).to(dtype)
        bad[place] = number
        write_tensors(
            tmp_path / "file", {"good": torch.ones(3), "bad.weight": bad, "count": torch.tensor(2)}
        )
        with pytest.raises(
            CheckpointError, match=r"NaN or infinite \(in bad\.weight\), but weights must be finite"
        ):
            read_tensors(tmp_path / "file")


def test_large_and_empty_tensors_are_finite(tmp_path: Path) -> None:
    """The sum of these would be infinite; each of them is not."""
    large = torch.full((1000,), torch.finfo(torch.float32).max)
    write_tensors(tmp_path / "file", {"large": large, "empty": torch.zeros(0, 7)})
    read = read_tensors(tmp_path / "file")
    assert read["large"].equal(large)
    assert read["empty"].shape == (0, 7)
