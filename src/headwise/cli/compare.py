"""`headwise compare`: ways of training side by side at the same budget; `headwise compare attention`: all kernels by length."""

import argparse
import json
import sys
from pathlib import Path

from headwise.cli.parser import positive
from headwise.errors import UsageError
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "compare",
        help=say("train variants side by side and test the difference", "并排训练多个变体并检验差异"),
        description=say(
            "Train recipes, or alternatives of a value, with the same budget, data and seeds, and write one table: quality with "
            "confidence intervals, parameters, time per step, memory, speed of translating. Stop whenever you like: the same "
            "command goes on.\n\n"
            "  headwise compare pocket model.norm.kind=layer,rms --seeds 1,2,3 --directory runs/norms\n"
            "  headwise compare pocket 'model.encoder.attention={kind: fused},{kind: full}' --directory runs/kernels\n"
            "  headwise compare base my.yaml training.steps=20000 --directory runs/two",
            "以相同的预算、数据与种子训练多个配方或一个值的多种取值，写出一张表：质量及置信区间、参数、每步用时、内存、翻译速度。"
            "可随时停止：同一条命令会接着做。\n\n"
            "  headwise compare pocket model.norm.kind=layer,rms --seeds 1,2,3 --directory runs/norms\n"
            "  headwise compare pocket 'model.encoder.attention={kind: fused},{kind: full}' --directory runs/kernels\n"
            "  headwise compare base my.yaml training.steps=20000 --directory runs/two",
        ),
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="RECIPE|key.path=a,b",
        help=say(
            "recipes; values separated by commas are compared, a single one is the same for all",
            "配方；以逗号分隔的多个值互相比较，单个值对所有变体相同",
        ),
    )
    parser.add_argument(
        "--directory",
        required=True,
        metavar="DIR",
        help=say("where the runs, the table and the pictures go", "存放各次运行、表格与图片"),
    )
    parser.add_argument(
        "--seeds", metavar="1,2,3", help=say("train each variant with each of these", "每个变体分别用这些种子训练")
    )
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help=say("runs at the same time", "同时进行的运行数")
    )
    parser.add_argument("--json", action="store_true", help=say("print the table as JSON", "以 JSON 输出表格"))


def run(arguments: argparse.Namespace) -> int:
    from headwise.cli.display import TrainingDisplay, print_table
    from headwise.explorer.comparison_plots import draw_comparison
    from headwise.tasks.comparison import compare

    with TrainingDisplay() as display:
        result = compare(
            arguments.overrides,
            directory=Path(arguments.directory),
            seeds=read_numbers(arguments.seeds, "--seeds") if arguments.seeds else (),
            jobs=arguments.jobs,
            events=display,
        )
        try:
            pictures = draw_comparison(result)
        except UsageError as error:  # no matplotlib: the numbers are there all the same
            pictures = ()
            display.note(str(error))
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        print_table(result.headings(), result.rows())
        for line in (*result.remarks(), *map(str, (result.directory / "comparison.md", *pictures))):
            sys.stdout.write(line + "\n")
    return 1 if result.failed else 0


def read_numbers(text: str, option: str) -> tuple[int, ...]:
    """`1,2,3` as numbers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(
            f"{option} {text} is not a list of whole numbers; write them with commas between: {option} 1,2,3",
            f"{option} {text} 不是整数列表；请用逗号分隔：{option} 1,2,3",
        ) from error
