from pathlib import Path

import torch

from headwise.planning.available_memory import _of_container, _of_system, available_memory


def test_memory_of_the_system_and_of_a_container(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:   73 kB\n")
    assert _of_system(tmp_path / "meminfo") == 73 * 1024
    assert _of_system(tmp_path / "none") is None
    folder = tmp_path / "sys/fs/cgroup"
    folder.mkdir(parents=True)
    (folder / "memory.current").write_text("300\n")
    (folder / "memory.max").write_text("max\n")
    assert _of_container(tmp_path) is None
    (folder / "memory.max").write_text("1000\n")
    assert _of_container(tmp_path) == 700


def test_here() -> None:
    found = available_memory(torch.device("cpu"))
    assert found is None or found > 1 << 20
