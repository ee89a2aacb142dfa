"""`headwise compare parallel`: compares trained translators that write word by word with parallel
ones, which write all words at once.

    headwise compare parallel runs/teacher runs/student --batches 1,8,64 --plot speed.png

The options, checks and printing of this form of `headwise compare` (compare.py).
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.compared_text import add_compared_text
from headwise.cli.options.model_paths import TranslatorPath
from headwise.cli.options.number_lists import read_numbers
from headwise.cli.options.parser import positive
from headwise.cli.options.paths import OutputFile
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from headwise.comparing.parallel_request import ParallelRequest

WORD = "parallel"
DESCRIPTION = (
    "\n\n`headwise compare parallel` compares finished translators, autoregressive and parallel: "
    "quality, repeated words, errors of length, latency, and sentences per second by batch size. "
    "The first autoregressive one is the baseline; the table says from which batch size its greedy "
    "search is faster:\n\n  headwise compare parallel runs/teacher runs/student --batches 1,8,64 "
    "--plot speed.png\n  headwise compare parallel runs/teacher runs/ctc --source test.en "
    "--reference test.de --decoding 'ctc_beam size=8'",
    "\n\n`headwise compare parallel` 比较训练好的翻译模型（自回归与并行）：质量、重复词、"
    "长度误差、延迟，以及各批大小下每秒句数。第一个自回归模型为基线；"
    "表中说明自哪个批大小起它的贪心搜索更快：\n\n  headwise compare parallel runs/teacher "
    "runs/student --batches 1,8,64 --plot speed.png\n  headwise compare parallel runs/teacher "
    "runs/ctc --source test.en --reference test.de --decoding 'ctc_beam size=8'",
)
OPTIONS = ("source", "reference", "batches", "decodings", "rounds", "plot")
NOT_HERE = (
    "directory",
    "seeds",
    "kinds",
    "lengths",
    "heads",
    "head_dim",
    "batch",
    "causal",
    "compile",
    "sentences",
    "beginning",
)
"""Options of `compare` that other forms of it take."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of `compare parallel`."""
    group = parser.add_argument_group(
        say("only with `compare parallel`", "仅用于 `compare parallel`")
    )
    add_compared_text(group)
    group.add_argument(
        "--batches",
        metavar="1,8,64",
        help=say(
            "batch sizes that are timed; 1 is always among them (default: 1,8,64)",
            "计时的批大小；总包含 1（默认 1,8,64）",
        ),
    )
    group.add_argument(
        "--decoding",
        dest="decodings",
        action="append",
        default=[],
        metavar="'KIND key=value'",
        help=say(
            "one more decoding for the models that it fits, e.g. 'beam size=8'; may be repeated",
            "为适用的模型增加一种解码，例如 'beam size=8'；可多次给出",
        ),
    )
    group.add_argument(
        "--rounds",
        type=positive,
        metavar="N",
        help=say("rounds of timing (default: 3)", "计时轮数（默认 3）"),
    )
    group.add_argument(
        "--plot",
        type=OutputFile,
        metavar="FILE",
        help=say("draw speed and quality (.png or .svg)", "画出速度与质量（.png 或 .svg）")
        + OutputFile.note(),
    )


def is_asked(arguments: argparse.Namespace) -> bool:
    """Whether this form of `compare` is meant."""
    return bool(arguments.overrides[:1] == [WORD])


def refuse_options(arguments: argparse.Namespace) -> None:
    """Refuse the options of this form in the others."""
    given = [name for name in OPTIONS if getattr(arguments, name)]
    if given:
        option = {"decodings": "--decoding"}.get(given[0], f"--{given[0]}")
        raise UsageError(
            f"{option} belongs to `headwise compare parallel`; leave it out here",
            f"{option} 属于 `headwise compare parallel`；请去掉",
        )


def check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be answered; the words after `parallel` become paths of models."""
    wrong = [name for name in NOT_HERE if getattr(arguments, name)]
    if arguments.jobs != 1:
        wrong.append("jobs")
    if wrong:
        option = f"--{wrong[0].replace('_', '-')}"
        raise UsageError(
            f"`compare {WORD}` does not take {option}; it measures finished models: --batches, "
            "--rounds, --source, --reference, --decoding, --plot",
            f"`compare {WORD}` 不接受 {option}；它测量训练好的模型：--batches、--rounds、"
            "--source、--reference、--decoding、--plot",
        )
    arguments.overrides = [WORD, *map(TranslatorPath, arguments.overrides[1:])]
    if arguments.plot is not None:
        from headwise.explorer.pictures.matplotlib_figure import check_picture

        check_picture(Path(arguments.plot))
    _request(arguments).check()


def _request(arguments: argparse.Namespace) -> "ParallelRequest":
    from headwise.comparing.parallel_request import BATCHES, ROUNDS, ParallelRequest

    batches = arguments.batches
    return ParallelRequest(
        models=tuple(map(Path, arguments.overrides[1:])),
        source=None if arguments.source is None else Path(arguments.source),
        reference=None if arguments.reference is None else Path(arguments.reference),
        decodings=tuple(arguments.decodings),
        batches=BATCHES if batches is None else read_numbers(batches, "--batches"),
        rounds=arguments.rounds or ROUNDS,
        device=arguments.device or "auto",
        precision=arguments.precision or "auto",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, print the table or JSON, and draw the picture."""
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.cli.terminal.tables import print_table
    from headwise.comparing.parallel import compare_parallel
    from headwise.explorer.pictures.matplotlib_figure import find_fonts
    from headwise.explorer.pictures.parallel_plots import draw_parallel_comparison
    from headwise.exporting.ctranslate2_peer import CTranslate2Peer, make_peer
    from headwise.tasks.translation.bundle import TranslatorBundle
    from headwise.tasks.translation.translator import Translator

    if arguments.plot is not None:
        find_fonts()  # without matplotlib it fails before the work, not after it
    request = _request(arguments)

    def peer_of(bundle: TranslatorBundle, translator: Translator) -> CTranslate2Peer:
        device = translator.model.output.weight.device
        return make_peer(bundle, precision=request.precision, device=device)

    with TrainingDisplay() as display:
        result = compare_parallel(request, events=display, make_peer=peer_of)
    if arguments.plot is not None:
        draw_parallel_comparison(result, Path(arguments.plot))
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    print_table(result.headings(), result.cells())
    for line in (*result.remarks(), *([] if arguments.plot is None else [str(arguments.plot)])):
        write_line(line)
    return 0
