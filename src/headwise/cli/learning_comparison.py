"""`headwise compare learning`: compares finished translators that learnt in different ways.

    headwise compare learning runs/teacher runs/scheduled runs/minimum-risk

The checks and the printing of this form of `headwise compare` (compare.py).
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli import parallel_comparison
from headwise.cli.options.model_paths import TranslatorPath
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.comparing.learning_request import LearningRequest

WORD = "learning"
DESCRIPTION = (
    "\n\n`headwise compare learning` compares finished translators that learnt in different ways "
    "(teacher forcing, scheduled sampling, rewards, several views, more data) with the first: "
    "greedy search with significance, the recipe's own search, BLEU after a wrong word, and what "
    "the training cost:\n\n  headwise compare learning runs/teacher runs/scheduled "
    "runs/minimum-risk",
    "\n\n`headwise compare learning` 把以不同方式学习的翻译模型（教师强制、计划采样、奖励、"
    "多视图、更多数据）与第一个相比：带显著性的贪心搜索、配方自己的搜索、错词之后的 BLEU，"
    "以及训练的代价：\n\n  headwise compare learning runs/teacher runs/scheduled "
    "runs/minimum-risk",
)
NOT_HERE = (*parallel_comparison.NOT_HERE, "batches", "decodings", "rounds", "plot")


def is_asked(arguments: argparse.Namespace) -> bool:
    """Whether this form of `compare` is meant."""
    return bool(arguments.overrides[:1] == [WORD])


def check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be answered; the words after `learning` become paths of models."""
    wrong = [name for name in NOT_HERE if getattr(arguments, name)]
    if arguments.jobs != 1:
        wrong.append("jobs")
    if wrong:
        name = {"decodings": "decoding"}.get(wrong[0], wrong[0])
        option = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"`compare {WORD}` does not take {option}; it compares finished models: --source, "
            "--reference, --device, --precision, --json",
            f"`compare {WORD}` 不接受 {option}；它比较训练好的模型：--source、--reference、"
            "--device、--precision、--json",
        )
    arguments.overrides = [WORD, *map(TranslatorPath, arguments.overrides[1:])]
    _request(arguments).check()


def _request(arguments: argparse.Namespace) -> "LearningRequest":
    from headwise.comparing.learning_request import LearningRequest

    return LearningRequest(
        models=tuple(map(Path, arguments.overrides[1:])),
        source=None if arguments.source is None else Path(arguments.source),
        reference=None if arguments.reference is None else Path(arguments.reference),
        device=arguments.device or "auto",
        precision=arguments.precision or "auto",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, and print the table or JSON."""
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.cli.terminal.tables import print_table
    from headwise.comparing.learning import compare_learning

    with TrainingDisplay() as display:
        result = compare_learning(_request(arguments), events=display)
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    print_table(result.headings(), result.cells())
    for line in result.remarks():
        write_line(line)
    return 0
