"""Describes the machine (device, processor, threads, versions) on which a result was measured.

The description is saved beside results and printed under tables of measured numbers.
"""

import os
import platform
from pathlib import Path
from typing import Any

import torch

from headwise.training.precision import Device, choose_device


def describe_machine(device: Device | torch.device = "auto") -> dict[str, Any]:
    """Device, its name, torch and Python."""
    place = device if isinstance(device, torch.device) else choose_device(device)
    facts: dict[str, Any] = {"device": place.type}
    if place.type == "cuda":
        facts["gpu"] = torch.cuda.get_device_name(place)
    else:
        facts["processor"] = processor_name()
        facts["threads"] = torch.get_num_threads()
    return {
        **facts,
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def processor_name(information: Path = Path("/proc/cpuinfo")) -> str:
    """The model name of the processor, or its family."""
    try:
        text = information.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    names = [
        line.partition(":")[2].strip()
        for line in text.splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()
