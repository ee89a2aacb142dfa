"""`headwise doctor` without a directory: finds out what this machine can do."""

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import torch

import headwise
from headwise.data.known.corpora import data_directory
from headwise.errors import HeadwiseError
from headwise.inspecting.findings import Finding
from headwise.language import say
from headwise.models.inference import Precision, choose_form
from headwise.training.compilation import find_compiler
from headwise.training.precision import is_bf16_fast


def examine_machine() -> list[Finding]:
    """Versions, processor, accelerator, compiler, extras, disk."""
    return [
        Finding(
            "headwise",
            "good",
            f"{headwise.__version__}, Python {platform.python_version()}, torch "
            f"{torch.__version__}",
        ),
        _processor(),
        _accelerator(),
        _compiler(),
        _translating(),
        *_extras(),
        _data(),
        _disk(),
    ]


def _processor() -> Finding:
    cpu = torch.device("cpu")
    fast = is_bf16_fast(cpu)
    threads = torch.get_num_threads()
    text = say(
        f"{os.cpu_count()} cores, {threads} {'thread' if threads == 1 else 'threads'} used; bf16 "
        f"is {'fast' if fast else 'not fast'} here, so training uses {'bf16' if fast else 'fp32'} "
        "unless told otherwise",
        f"{os.cpu_count()} 核，使用 {threads} 个线程；bf16 在这里{'快' if fast else '不快'}，"
        f"因此默认以 {'bf16' if fast else 'fp32'} 训练",
    )
    return Finding(say("processor", "处理器"), "good", text)


def _accelerator() -> Finding:
    topic = say("accelerator", "加速器")
    if not torch.cuda.is_available():
        text = say(
            "no GPU seen by torch; everything runs on the processor",
            "torch 未发现 GPU；全部在处理器上运行",
        )
        return Finding(topic, "note", text)
    name, memory = (
        torch.cuda.get_device_name(),
        torch.cuda.get_device_properties(0).total_memory / 2**30,
    )
    return Finding(topic, "good", f"{name}, {memory:.0f} GiB")


def _compiler() -> Finding:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    compiler = find_compiler(device)
    if compiler is None:
        text = say(
            "none found; training runs uncompiled (slower, correct): install g++ on a CPU, triton "
            "on a GPU",
            "未找到；训练不编译运行（较慢但正确）：CPU 请安装 g++，GPU 请安装 triton",
        )
        return Finding(say("compiler", "编译器"), "note", text)
    return Finding(say("compiler", "编译器"), "good", compiler)


def _translating() -> Finding:
    """What `--precision` leads to on this processor."""
    found, as_named, remarks = [], [], []
    precisions: tuple[Precision, ...] = ("auto", "fp16", "bf16", "int8")
    for precision in precisions:
        try:
            form = choose_form(precision, torch.device("cpu"))
        except HeadwiseError as error:
            remarks.append(str(error))
            continue
        if form.label == precision:
            as_named.append(precision)
        else:
            found.append(f"--precision {precision}: {form.label}")
        remarks += [] if form.remark is None else [form.remark]
    if as_named:
        names = say(", ", "、").join(as_named)
        found.append(say(f"{names}: as --precision says", f"{names}：按 --precision 所说"))
    text = say("; ", "；").join([*found, *remarks])
    return Finding(
        say("translating on a CPU", "在 CPU 上翻译"), "note" if remarks else "good", text
    )


def _extras() -> Iterator[Finding]:
    for package, extra, use in (
        (
            "matplotlib",
            "plots",
            say("draws pictures of attention (PNG)", "用于绘制注意力图（PNG）"),
        ),
        (
            "tensorboard",
            "tensorboard",
            say(
                "writes logs for `training.tensorboard=true`",
                "用于 `training.tensorboard=true` 的日志",
            ),
        ),
        ("ctranslate2", "fast", say("used by `headwise export`", "用于 `headwise export`")),
    ):
        if importlib.util.find_spec(package) is not None:
            yield Finding(package, "good", use)
        else:
            missing = say(
                f"not installed ({use}): pip install headwise[{extra}]",
                f"未安装（{use}）：pip install headwise[{extra}]",
            )
            yield Finding(package, "note", missing)


def _data() -> Finding:
    directory = data_directory()
    state: Literal["good", "note"] = "good" if directory.is_dir() else "note"
    missing = (
        ""
        if directory.is_dir()
        else say(
            " (empty; `headwise data fetch NAME` downloads one)",
            "（还没有；用 `headwise data fetch NAME` 下载）",
        )
    )
    return Finding(say("known corpora", "公开语料"), state, f"{directory}{missing}")


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    return Finding(
        say("disk", "磁盘"),
        "good" if free > 2 else "note",
        say(f"{free:.1f} GiB free here", f"此处剩余 {free:.1f} GiB"),
    )
