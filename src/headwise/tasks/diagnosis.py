"""What this machine can do, and what is wrong with a run directory: the findings of `headwise doctor`."""

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

import headwise
from headwise.data.known import data_directory
from headwise.data.preparation import TOKENIZERS_KIND as TOKENIZERS
from headwise.data.shards import KIND as TOKEN_STORE
from headwise.errors import CheckpointError, HeadwiseError
from headwise.language import say
from headwise.models.inference import Precision, choose_form
from headwise.settings import read_settings_file
from headwise.storage import INCOMPLETE, MANIFEST, verify_directory
from headwise.tasks.bundle import load_bundle
from headwise.tasks.bundle_directory import require_run
from headwise.tasks.label_bundle import load_label_bundle
from headwise.tasks.language_bundle import load_language_bundle
from headwise.training.averaging import KIND as SNAPSHOT
from headwise.training.checkpoints import KIND as CHECKPOINT
from headwise.training.compilation import find_compiler
from headwise.training.precision import is_bf16_fast
from headwise.training.remains import describe_remains, newest_named, require_checkpoints
from headwise.training.run_directory import lock_is_held


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    topic: str
    state: Literal["good", "note", "damaged"]
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"topic": self.topic, "state": self.state, "text": self.text}


def examine_machine() -> list[Finding]:
    """Versions, processor, accelerator, compiler, extras, disk."""
    return [
        Finding(
            "headwise", "good", f"{headwise.__version__}, Python {platform.python_version()}, torch {torch.__version__}"
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
    text = say(
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads used; bf16 is {'fast' if fast else 'not fast'} here, "
        f"so training uses {'bf16' if fast else 'fp32'} unless told otherwise",
        f"{os.cpu_count()} 核，使用 {torch.get_num_threads()} 线程；bf16 在此{'快' if fast else '不快'}，"
        f"默认以 {'bf16' if fast else 'fp32'} 训练",
    )
    return Finding(say("processor", "处理器"), "good", text)


def _accelerator() -> Finding:
    topic = say("accelerator", "加速器")
    if not torch.cuda.is_available():
        text = say("no GPU seen by torch; everything runs on the processor", "torch 未发现 GPU；全部在处理器上运行")
        return Finding(topic, "note", text)
    name, memory = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory / 2**30
    return Finding(topic, "good", f"{name}, {memory:.0f} GiB")


def _compiler() -> Finding:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    compiler = find_compiler(device)
    if compiler is None:
        text = say(
            "none found; training runs uncompiled (slower, correct): install g++ on a CPU, triton on a GPU",
            "未找到；训练不编译运行（较慢但正确）：CPU 请安装 g++，GPU 请安装 triton",
        )
        return Finding(say("compiler", "编译器"), "note", text)
    return Finding(say("compiler", "编译器"), "good", compiler)


def _translating() -> Finding:
    """What `--precision` leads to on this processor."""
    found, remarks = [], []
    precisions: tuple[Precision, ...] = ("auto", "fp16", "bf16", "int8")
    for precision in precisions:
        try:
            form = choose_form(precision, torch.device("cpu"))
        except HeadwiseError as error:
            remarks.append(str(error))
            continue
        found.append(f"--precision {precision}: {form.label}")
        remarks += [] if form.remark is None else [form.remark]
    text = "; ".join([*found, *remarks])
    return Finding(say("translating on a CPU", "在 CPU 上翻译"), "note" if remarks else "good", text)


def _extras() -> Iterator[Finding]:
    for package, extra, use in (
        ("matplotlib", "plots", say("attention pictures as PNG", "PNG 注意力图")),
        ("tensorboard", "tensorboard", say("training.tensorboard", "training.tensorboard")),
        ("ctranslate2", "fast", say("headwise export", "headwise export")),
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
        else say(" (not there yet: headwise data fetch NAME)", "（尚无：headwise data fetch NAME）")
    )
    return Finding(say("known corpora", "公开语料"), state, f"{directory}{missing}")


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    return Finding(
        say("disk", "磁盘"),
        "good" if free > 2 else "note",
        say(f"{free:.1f} GiB free here", f"此处剩余 {free:.1f} GiB"),
    )


def examine_run(directory: Path | str) -> list[Finding]:
    """Every checkpoint and the bundle, verified by checksum; leftovers; whether a trainer is at work."""
    path = require_run(Path(directory))
    if any((path / name).exists() or (path / name).is_symlink() for name in (MANIFEST, "weights.safetensors")):
        return [_bundle(path)]
    findings = []
    if lock_is_held(path):
        findings.append(Finding(str(path), "note", say("a trainer is at work here", "有训练正在此处进行")))
    findings += _checkpoints(path)
    for folder in ("best", "snapshots"):
        findings += [_verified(child, kind=SNAPSHOT) for child in _steps(path / folder)]
    findings += [_prepared(store) for store in sorted((path / "data").glob("*")) if store.is_dir()]
    findings += [
        Finding(
            str(left),
            "note",
            say("left by an interrupted save; removed at the next start", "中断的保存所留；下次启动时清除"),
        )
        for left in sorted(path.rglob(f"*{INCOMPLETE}"))
    ]
    if (path / "model").is_dir():
        findings.append(_bundle(path / "model"))
    if not findings:
        findings.append(Finding(str(path), "note", say("holds no run", "其中没有运行")))
    return findings


def _steps(folder: Path) -> list[Path]:
    found = [child for child in folder.glob("step-*") if child.is_dir() and child.suffix == ""]
    return sorted(found, key=lambda child: (len(child.name), child.name))


def _checkpoints(path: Path) -> list[Finding]:
    """Each of them, and which one a resumed run would take instead of a damaged one."""
    try:
        require_checkpoints(path)
    except CheckpointError as error:
        # Whoever took LATEST away as well did it on purpose, to keep the model alone.
        state: Literal["note", "damaged"] = "note" if newest_named(path) is None else "damaged"
        return [Finding(str(path / "checkpoints"), state, say(error.en, error.zh))]
    findings = [_verified(child, kind=CHECKPOINT) for child in _steps(path / "checkpoints")]
    whole = [finding.topic for finding in findings if finding.state == "good"]
    if not findings or len(whole) == len(findings):
        return findings
    if whole:
        newest = Path(whole[-1]).name
        hint = say(f"; resuming will use {newest}", f"；恢复时将使用 {newest}")
        return [replace(one, text=one.text + hint) if one.state == "damaged" else one for one in findings]
    rest = say(*describe_remains(path))
    nothing = say(f"no checkpoint is whole, resuming is not possible; {rest}", f"没有完好的检查点，无法恢复；{rest}")
    return [*findings, Finding(str(path / "checkpoints"), "damaged", nothing)]


def _verified(path: Path, *, kind: str) -> Finding:
    try:
        verify_directory(path, kind=kind)
    except HeadwiseError as error:
        return Finding(str(path), "damaged", str(error))
    return Finding(str(path), "good", say("every file as written", "所有文件与写入时一致"))


def _prepared(path: Path) -> Finding:
    try:
        verify_directory(path, kind=TOKENIZERS if path.name == "tokenizers" else TOKEN_STORE)
    except HeadwiseError as error:
        hint = say("; remove this directory and resume: it is made again", "；删除此目录后恢复运行即会重建")
        return Finding(str(path), "damaged", f"{error}{hint}")
    return Finding(str(path), "good", say("every file as written", "所有文件与写入时一致"))


def _bundle(path: Path) -> Finding:
    try:
        what = _languages(path)
    except HeadwiseError as error:
        return Finding(str(path), "damaged", str(error))
    return Finding(str(path), "good", say(f"a whole bundle, {what}", f"完整的模型，{what}"))


def _languages(path: Path) -> str:
    """What a bundle is about, after it was loaded whole."""
    recipe = path / "recipe.yaml"
    match read_settings_file(recipe).get("task") if recipe.is_file() else None:
        case "language_modeling":
            return load_language_bundle(path).recipe.data.language
        case "masked_language" | "bidirectional_language":
            return str(read_settings_file(recipe)["data"]["language"])
        case "classification" | "tagging":
            return load_label_bundle(path).recipe.data.language
    data = load_bundle(path).recipe.data
    return f"{data.source} → {data.target}"
