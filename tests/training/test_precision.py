import pytest
import torch

from headwise.errors import UsageError
from headwise.training.precision import autocast, choose_device, choose_dtype, is_bf16_fast

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("text", "fast"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16 sse\n", True),
        ("flags : fpu amx_bf16\n", True),
        ("Features : fp asimd bf16\n", True),
        ("flags : fpu avx2 avx512f\nbugs : bf16\n", False),
        ("", False),
    ],
)
def test_reads_what_the_processor_can(tmp_path, text, fast):
    file = tmp_path / "cpuinfo"
    file.write_text(text, encoding="utf-8")
    assert is_bf16_fast(CPU, cpu_information=file) is fast


def test_unknown_processor_is_not_fast(tmp_path):
    assert not is_bf16_fast(CPU, cpu_information=tmp_path / "none")


def test_gpu_by_compute_capability(monkeypatch):
    for capability, fast in (((7, 5), False), ((8, 0), True), ((9, 0), True)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, c=capability: c)
        assert is_bf16_fast(torch.device("cuda")) is fast


def test_precision_of_products():
    x = torch.ones(2, 2)
    for setting, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        with autocast(CPU, choose_dtype(setting, CPU)):
            assert (x @ x).dtype == dtype
    assert choose_dtype("auto", CPU) == (torch.bfloat16 if is_bf16_fast(CPU) else torch.float32)


def test_a_missing_gpu_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == CPU
    with pytest.raises(UsageError, match="PyTorch sees no GPU"):
        choose_device("cuda")
