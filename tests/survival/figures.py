"""The table of docs/reliability.md, filled in by the tests themselves: what was done how often, and
what came of it."""

import platform
from dataclasses import dataclass

import torch

import headwise

Figures = list["Row"]


@dataclass(frozen=True)
class Row:
    name: str
    """Of the promise, as in docs/reliability.md: R1, R2, …"""
    what: str
    result: str

    def __str__(self) -> str:
        return f"| {self.name} | {self.what} | {self.result} |"


def describe_machine() -> str:
    return (
        f"headwise {headwise.__version__}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{torch.get_num_threads()} thread(s)"
    )


def print_table(rows: Figures) -> list[str]:
    ordered = sorted(set(rows), key=lambda row: (row.name[0], int(row.name[1:]), row.what))
    return [
        describe_machine(),
        "",
        "| test | what was done | result |",
        "|---|---|---|",
        *map(str, ordered),
    ]
