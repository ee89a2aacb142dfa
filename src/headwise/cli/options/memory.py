"""The option `--memory`: a store of neighbours that takes part in what a model predicts."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.paths import Input
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from headwise.neighbours.settings import MemorySettings


class StorePath(Input):
    """A store of neighbours."""

    def locate(self) -> Path | None:
        from headwise.neighbours.store import require_store

        return require_store(Path(self))


def add_memory(parser: argparse.ArgumentParser) -> None:
    """For commands that translate with settings of their own: `--set memory.weight=0.5`."""
    parser.add_argument(
        "--memory",
        type=StorePath,
        metavar="STORE",
        help=say(
            "let stored examples take part (headwise memory build); --set memory.weight=0.5 "
            "changes how much they count",
            "让存储的例子参与预测（见 headwise memory build）；--set memory.weight=0.5 改变其权重",
        ),
    )


def memory_changes(arguments: argparse.Namespace) -> list[str]:
    """The option as a change of the decoding settings."""
    return [] if arguments.memory is None else [f"memory.store={_quoted(arguments.memory)}"]


def _quoted(path: str) -> str:
    import json

    return json.dumps(str(path), ensure_ascii=False)


def add_language_memory(parser: argparse.ArgumentParser) -> None:
    """For commands about language models, whose only settings of this kind are the memory's."""
    add_memory(parser)
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="key=value",
        help=say(
            "change one value of the memory, e.g. --set memory.weight=0.5",
            "修改记忆的一个值，例如 --set memory.weight=0.5",
        ),
    )


def language_memory(arguments: argparse.Namespace) -> "MemorySettings | None":
    """The memory that the options describe, if one is asked for."""
    from headwise.neighbours.settings import AskedMemory
    from headwise.settings import apply_overrides, check_settings

    if arguments.memory is None:
        if arguments.changes:
            raise UsageError(
                f"--set {arguments.changes[0]} was given without --memory; give the store, or "
                "leave --set out",
                f"给出了 --set {arguments.changes[0]} 却没有 --memory；请给出存储目录，或去掉 "
                "--set",
            )
        return None
    changed = apply_overrides({"memory": {"store": str(arguments.memory)}}, arguments.changes)
    unknown = [key for key in changed if key != "memory"]
    if unknown:
        raise UsageError(
            f"--set {unknown[0]} is no setting of a memory; these are memory.neighbours, "
            "memory.temperature and memory.weight",
            f"--set {unknown[0]} 不是记忆的设置；可设 memory.neighbours、memory.temperature 与 "
            "memory.weight",
        )
    return check_settings(AskedMemory, changed).memory
