"""`headwise exposure`: measures what a translator's own mistakes cost it (exposure bias)."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.compared_text import add_compared_text
from headwise.cli.options.model_paths import TranslatorPath
from headwise.cli.options.parser import add_computing, positive
from headwise.cli.options.paths import OutputFile
from headwise.cli.terminal.wrapping import write_line
from headwise.language import say

if TYPE_CHECKING:
    from headwise.comparing.exposure_request import ExposureRequest


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "exposure",
        help=say(
            "what a wrong word costs the words after it (exposure bias)",
            "一个错词让后面的词损失多少（曝光偏差）",
        ),
        description=say(
            "A translator is trained on right words and used on its own. This command forces a "
            "right and a wrong beginning upon each model and scores what it writes after them: "
            "the same references, the same tokens. It also compares the decoder along the "
            "references with the decoder along its own translations, by position. Models with "
            "one vocabulary get the same wrong tokens.\n\n  headwise exposure runs/pocket "
            "runs/pocket-sampling --plot exposure.png\n  headwise exposure runs/mine --source "
            "test.en --reference test.de --tokens 2 --wrong likely",
            "翻译模型训练时读正确的词，使用时读自己写的词。本命令分别强制给出正确与错误的开头，"
            "并对其后写出的部分评分：参考译文相同，计分的词元相同。此外逐位置比较解码器读参考译文与"
            "读自己译文时的差别。词表相同的模型得到相同的错误词元。\n\n  headwise exposure "
            "runs/pocket runs/pocket-sampling --plot exposure.png\n  headwise exposure runs/mine "
            "--source test.en --reference test.de --tokens 2 --wrong likely",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models",
        nargs="+",
        type=TranslatorPath,
        metavar="MODEL",
        help=say("finished translators", "训练好的翻译模型"),
    )
    add_compared_text(parser)
    _add_wrong(parser)
    parser.add_argument(
        "--sentences",
        type=positive,
        metavar="N",
        help=say("only the first N pairs", "只用前 N 个句对"),
    )
    parser.add_argument(
        "--positions",
        type=positive,
        default=20,
        metavar="N",
        help=say("positions that are compared (default: 20)", "比较的位置数（默认 20）"),
    )
    parser.add_argument(
        "--plot",
        type=OutputFile,
        metavar="FILE",
        help=say("draw the positions (.png or .svg)", "画出各位置（.png 或 .svg）"),
    )
    add_computing(parser)
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def _add_wrong(parser: argparse.ArgumentParser) -> None:
    """Options for the wrong beginning."""
    parser.add_argument(
        "--tokens",
        type=positive,
        default=1,
        metavar="N",
        help=say("wrong tokens at the beginning (default: 1)", "开头的错误词元数（默认 1）"),
    )
    parser.add_argument(
        "--wrong",
        choices=("frequent", "likely"),
        default="frequent",
        help=say(
            "draw them among the 20 tokens most frequent at their place in the references, or "
            "the 5 most probable ones of the model itself (default: frequent)",
            "取自参考译文同一位置最常见的 20 个词元，或模型自己认为最可能的 5 个（默认 frequent）",
        ),
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help=say("seed of the wrong tokens (default: 1)", "选取错误词元的种子（默认 1）"),
    )


def check(arguments: argparse.Namespace) -> None:
    if arguments.plot is not None:
        from headwise.explorer.pictures.matplotlib_figure import check_picture

        check_picture(Path(arguments.plot))
    _request(arguments).check()


def _request(arguments: argparse.Namespace) -> "ExposureRequest":
    from headwise.comparing.exposure_request import ExposureRequest

    return ExposureRequest(
        models=tuple(map(Path, arguments.models)),
        source=None if arguments.source is None else Path(arguments.source),
        reference=None if arguments.reference is None else Path(arguments.reference),
        wrong=arguments.wrong,
        tokens=arguments.tokens,
        seed=arguments.seed,
        positions=arguments.positions,
        sentences=arguments.sentences,
        device=arguments.device,
        precision=arguments.precision,
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the tables or JSON, and draw the picture."""
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.cli.terminal.tables import print_table
    from headwise.comparing.exposure import measure_exposure
    from headwise.explorer.pictures.exposure_plots import draw_exposure
    from headwise.explorer.pictures.matplotlib_figure import find_fonts

    if arguments.plot is not None:
        find_fonts()  # without matplotlib it fails before the work, not after it
    with TrainingDisplay() as display:
        result = measure_exposure(_request(arguments), events=display)
    if arguments.plot is not None:
        draw_exposure(result, Path(arguments.plot))
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    print_table(result.headings(), result.cells())
    print_table(
        result.position_headings(), result.position_cells(), title=say("by position", "逐位置")
    )
    for line in (*result.remarks(), *([] if arguments.plot is None else [str(arguments.plot)])):
        write_line(line)
    return 0
