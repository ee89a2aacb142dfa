"""`headwise doctor DIR`: finds out what is wrong with a run directory.

It uses the checks of resuming a run and loading a model, and changes nothing. It checks
recipe.yaml, LATEST, checkpoints/*, best/*, snapshots/*, data/*, model/, and leftovers of a killed
process.

Tested: for each file of a run of each task, a flipped bit is damage here exactly if resuming or
loading refuses it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from headwise.data.pairs.preparation import DESCRIPTION as PREPARED
from headwise.data.pairs.preparation import TOKENIZERS_KIND as TOKENIZERS
from headwise.data.pairs.preparation import read_description
from headwise.data.shards import KIND as TOKEN_STORE
from headwise.errors import CheckpointError, HeadwiseError
from headwise.inspecting.bundle_summary import summarize_bundle
from headwise.inspecting.findings import Finding
from headwise.language import say
from headwise.storage import MANIFEST, REPLACED, find_leftovers, read_manifest, verify_directory
from headwise.tasks.bundle_directory import require_run
from headwise.tasks.bundle_form import CTRANSLATE2, WORD_VECTORS
from headwise.tasks.bundle_form import KIND as BUNDLE
from headwise.tasks.recipe import complete_recipe
from headwise.training.averaging import KIND as SNAPSHOT
from headwise.training.checkpoints import KIND as CHECKPOINT
from headwise.training.checkpoints import verify_checkpoint
from headwise.training.orphaned_run import (
    LATEST,
    damaged_latest,
    describe_remains,
    newest_named,
    require_checkpoints,
)
from headwise.training.run_directory import WRITTEN
from headwise.training.run_lock import lock_is_held
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import read_run_recipe, require_recipe

PLAIN = (SNAPSHOT, TOKENIZERS, TOKEN_STORE, CTRANSLATE2)
"""Kinds of published directories of which only the checksums of their files are checked."""


def examine_run(directory: Path | str) -> list[Finding]:
    """Examine every part of a run, or one published directory (a bundle, a checkpoint …)."""
    path = require_run(Path(directory))
    if any(
        (path / name).exists() or (path / name).is_symlink()
        for name in (MANIFEST, "weights.safetensors")
    ):
        return [_published(path)]
    findings = []
    if lock_is_held(path):
        findings.append(
            Finding(str(path), "note", say("a trainer is at work here", "有训练正在此处进行"))
        )
    findings += [
        *_recipe(path),
        *_checkpoints(path),
        *_weights(path),
        *_data(path / "data"),
        *_leftovers(path),
    ]
    if (path / "model").is_dir():
        findings.append(_published(path / "model"))
    elif (path / "checkpoints").is_dir() and not (path / f"model{REPLACED}").exists():
        unfinished = say(
            "there is no finished model yet; resume the training to get one",
            "尚无训练完成的模型；继续训练即可得到",
        )
        findings.append(Finding(str(path / "model"), "note", unfinished))
    if not findings:
        findings.append(Finding(str(path), "note", say("holds no run", "其中没有运行")))
    return findings


def _judge(
    path: Path, check: Callable[[], object], good: str | None = None, hint: str = ""
) -> Finding:
    """A finding: damaged if the check raises a HeadwiseError."""
    try:
        check()
    except HeadwiseError as error:
        # The finding names its topic already; the file is named only if it lies inside it.
        text = say(error.en, error.zh) if error.file == path else str(error)
        return Finding(str(path), "damaged", f"{text}{hint}")
    return Finding(str(path), "good", good or say("every file as written", "所有文件与写入时一致"))


def _published(path: Path) -> Finding:
    """A directory with a manifest, of whatever kind."""
    try:
        kind = read_manifest(path)["kind"]
        if kind not in (BUNDLE, WORD_VECTORS):
            return _by_kind(path, kind)
        what = summarize_bundle(path)
    except HeadwiseError as error:
        return Finding(str(path), "damaged", str(error))
    return Finding(str(path), "good", say(f"a whole bundle, {what}", f"完整的模型，{what}"))


def _by_kind(path: Path, kind: Any) -> Finding:
    if kind == CHECKPOINT:
        return _judge(path, partial(verify_checkpoint, path))
    return _judge(path, partial(verify_directory, path, kind=kind if kind in PLAIN else BUNDLE))


def _recipe(path: Path) -> Iterator[Finding]:
    file = path / RECIPE
    if file.exists():
        yield _judge(
            file,
            partial(read_run_recipe, file, complete_recipe),
            say("the recipe of this run, readable", "本次运行的配方，可以读取"),
        )
        return
    try:
        require_recipe(file)
    except CheckpointError as error:
        yield Finding(str(file), "damaged", say(error.en, error.zh))


def _steps(folder: Path) -> list[Path]:
    found = [child for child in folder.glob("step-*") if child.is_dir() and child.suffix == ""]
    return sorted(found, key=lambda child: (len(child.name), child.name))


def _checkpoints(path: Path) -> list[Finding]:
    """Every checkpoint, and which one a resumed run would use instead of a damaged one."""
    try:
        require_checkpoints(path)
    except CheckpointError as error:
        # Without LATEST too, the checkpoints were removed on purpose to keep only the model.
        state: Literal["note", "damaged"] = "note" if newest_named(path) is None else "damaged"
        return [Finding(str(path / "checkpoints"), state, say(error.en, error.zh))]
    findings = [
        _judge(child, partial(verify_checkpoint, child)) for child in _steps(path / "checkpoints")
    ]
    whole = [Path(finding.topic).name for finding in findings if finding.state == "good"]
    if whole:
        hint = say(f"; resuming will use {whole[-1]}", f"；恢复时将使用 {whole[-1]}")
        findings = [
            replace(one, text=one.text + hint) if one.state == "damaged" else one
            for one in findings
        ]
        if (misled := damaged_latest(path)) is not None:
            findings.append(
                Finding(str(path / LATEST), "damaged", say(misled.en, misled.zh) + hint)
            )
    elif findings:
        rest = say(*describe_remains(path))
        nothing = say(
            f"no checkpoint is whole, resuming is not possible; {rest}",
            f"没有完好的检查点，无法恢复；{rest}",
        )
        findings.append(Finding(str(path / "checkpoints"), "damaged", nothing))
    return findings


def _weights(path: Path) -> Iterator[Finding]:
    """The best weights and those to be averaged; without them a run ends with its last weights."""
    hint = say(
        "; a resumed run will end with its last weights instead", "；恢复的训练将改用最后的权重"
    )
    for folder in ("best", "snapshots"):
        for child in _steps(path / folder):
            yield _judge(child, partial(verify_directory, child, kind=SNAPSHOT), hint=hint)


def _data(path: Path) -> Iterator[Finding]:
    """The prepared data: `prepared.json`, which is written last, and the directories it names."""
    hint = say(
        "; remove it and resume: the data is made again", "；删除它后恢复训练，数据会重新生成"
    )
    parts = {
        child.name for child in path.glob("*") if (child / MANIFEST).exists() and child.suffix == ""
    }
    if (path / PREPARED).exists():
        again = say("; to do so, remove it and resume", "；办法是删除它后恢复训练")
        found = _judge(path / PREPARED, partial(read_description, path), hint=again)
        yield found
        if found.state == "good":
            parts |= set(read_description(path).parts)
    elif parts:
        unfinished = say(
            "unfinished; the data is made again at the next start",
            "尚未准备完；下次启动时会重新生成",
        )
        yield Finding(str(path), "note", unfinished)
    for name in sorted(parts):
        kind = TOKENIZERS if name == "tokenizers" else TOKEN_STORE
        yield _judge(path / name, partial(verify_directory, path / name, kind=kind), hint=hint)


def _leftovers(path: Path) -> Iterator[Finding]:
    """Files that a killed process left behind, and checkpoints that resuming has set aside."""
    for left in find_leftovers(path, WRITTEN):
        original = left.with_name(left.name.removesuffix(REPLACED))
        if left.name.endswith(REPLACED) and not original.exists():
            text = say(
                f"is {original.name}, which a save that was interrupted had moved aside; resuming "
                f"puts it back, or do it yourself: mv {left} {original}",
                f"就是 {original.name}：保存中断时它刚被移开；恢复训练时会放回，也可自行执行：mv "
                f"{left} {original}",
            )
            yield Finding(str(left), "damaged", text)
        else:
            text = say(
                "left by an interrupted save; removed at the next start",
                "中断的保存所留；下次启动时清除",
            )
            yield Finding(str(left), "note", text)
    for aside in sorted((path / "checkpoints").glob("step-*.damaged")):
        text = say(
            "was put aside when the run went on from an earlier checkpoint; it may be removed",
            "训练从更早的检查点继续时被放在一边；可以删除",
        )
        yield Finding(str(aside), "note", text)
