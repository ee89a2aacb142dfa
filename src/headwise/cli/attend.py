"""`headwise attend`: calculates attention step by step, on numbers that can be checked by hand."""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.parser import positive
from headwise.cli.options.paths import Input, NamedInput, OutputFile
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from headwise.explorer.data.attention_calculation import AttentionCalculation
    from headwise.explorer.data.number_input import NumberTable

EXAMPLES = ("waist", "two-column")


def add_parser(commands: argparse._SubParsersAction) -> None:
    shown = (
        "  headwise attend --example waist\n"
        "  headwise attend --example two-column --score additive\n"
        '  headwise attend --keys "51,56,58" --values "40,43,48" --queries 57 --score gaussian\n'
        '  headwise attend --keys "1,0;0,1" --values "10;20" --queries "3,1;" --weights sparsemax\n'
        "  headwise attend --keys keys.csv --values values.csv --queries queries.csv --plot "
        "attention.png"
    )
    parser = commands.add_parser(
        "attend",
        help=say("attention step by step, for numbers you give", "用给定的数逐步演算注意力"),
        description=say(
            "Attention has three steps: how similar a query is to each key (scores), the scores "
            "normalised to sum to one (weights), and the values summed with these weights "
            "(outputs). All numbers of the three steps are printed.\n\nWrite numbers with commas "
            "between them and `;` between rows, or give a small CSV file with one row a line. "
            "51,56,58 is three keys with one "
            f"number each; `51,70;` is one key with two numbers.\n\n{shown}\n\nScores: dot q·k, "
            "scaled_dot q·k/√dim, additive w_v·tanh(W_q q + W_k k), concat v·tanh(W[q;k]), "
            "bilinear q·Wk (Luong's general), cosine, location (W q)_j, gaussian −|q−k|²/2. Those "
            "with W need parameters: give them with --parameter; else those of additive, concat "
            "and location are drawn from --seed, and bilinear starts as 1/√dim on the diagonal, "
            "which is scaled_dot. Further settings are key=value: score.width=2, score.scale=5, "
            "score.hidden=3; a window over the keys is window.kind=local_m or local_p (Luong), "
            "window.half_width=1, with W_p and v_p for the position that local_p predicts.",
            "注意力分三步：查询与每个键有多相似（分数），把分数归一化使其和为一（权重），"
            "按权重对值求和（输出）。三步中的所有数都会打印出来。\n\n数写在选项之后，"
            "以逗号分隔，行与行以 `;` 分隔；也可放在小 CSV 文件中，一行一条。51,56,58 "
            f"是三个一维的键；`51,70;` 是一个二维的键。\n\n{shown}\n\n打分：dot q·k，scaled_dot "
            "q·k/√dim，additive w_v·tanh(W_q q + W_k k)，concat v·tanh(W[q;k])，bilinear "
            "q·Wk（Luong 称 general），cosine，location (W q)_j，gaussian −|q−k|²/2。带 W "
            "的需要参数：用 --parameter 给出；否则 additive、concat、location 由 --seed 抽取，"
            "bilinear 起初是对角线上的 1/√dim，即 scaled_dot。其他设置写成 键=值：score.width=2、"
            "score.scale=5、score.hidden=3；键上的窗口为 window.kind=local_m 或 "
            "local_p（Luong），window.half_width=1，local_p 所预测的位置由 W_p 与 v_p 决定。",
        ),
    )
    # "-1,2" is a table of numbers, not an option.
    parser._negative_number_matcher = re.compile(r"^-[\d.][\d.,;eE+\- ]*$")
    _add_numbers(parser)
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help=say("a setting of the score or the weights", "打分或权重的一项设置"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        type=OutputFile,
        help=say("also draw a picture (.png or .svg)", "同时画图（.png 或 .svg）"),
    )


def _add_numbers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--example",
        choices=EXAMPLES,
        help=say(
            "an example worked in chapter 11 of the guide: waist or two-column",
            "指南第 11 章手算的例子：waist 或 two-column",
        ),
    )
    parser.add_argument(
        "--keys",
        type=Input,
        metavar="NUMBERS",
        help=say("keys, which queries are compared with; or a CSV file", "被比较的键；或 CSV 文件"),
    )
    parser.add_argument(
        "--values",
        type=Input,
        metavar="NUMBERS",
        help=say("values, one for each key", "被混合的值，每个键一个"),
    )
    parser.add_argument(
        "--queries", type=Input, metavar="NUMBERS", help=say("queries", "提问的查询")
    )
    parser.add_argument(
        "--score",
        metavar="KIND",
        help=say(
            "how a query and a key are compared (default: scaled_dot; an example's own)",
            "查询与键如何比较（默认 scaled_dot；例子用自己的）",
        ),
    )
    parser.add_argument(
        "--weights",
        metavar="KIND",
        help=say(
            "how scores become weights (default: softmax)", "分数如何变成权重（默认 softmax）"
        ),
    )
    parser.add_argument(
        "--parameter",
        action="append",
        type=NamedInput,
        default=[],
        metavar="NAME=NUMBERS",
        help=say(
            'a parameter of a learned score: W_q="1,0;0,1", W_k, w_v, W or v; of a window: W_p, '
            "v_p",
            '学得的打分的参数：W_q="1,0;0,1"、W_k、w_v、W 或 v；窗口的参数：W_p、v_p',
        ),
    )
    parser.add_argument(
        "--seed",
        type=positive,
        default=1,
        metavar="N",
        help=say("seed of the parameters that are not given", "未给出的参数由它抽取"),
    )


def check(arguments: argparse.Namespace) -> None:
    if arguments.plot is not None:
        from headwise.explorer.pictures.matplotlib_figure import check_picture

        check_picture(Path(arguments.plot))
    for name in ("keys", "values", "queries"):
        if arguments.example is None and getattr(arguments, name) is None:
            raise UsageError(
                f"--{name} is missing; give --keys, --values and --queries, or --example waist",
                f"缺少 --{name}；请给出 --keys、--values 与 --queries，或 --example waist",
            )


def run(arguments: argparse.Namespace) -> int:
    worked = _work(arguments)
    if arguments.plot is not None:
        from headwise.explorer.pictures.calculation_picture import draw_calculation

        draw_calculation(worked, Path(arguments.plot))
        write_line(say(f"the picture: {arguments.plot}", f"图片：{arguments.plot}"), sys.stderr)
    if arguments.json:
        sys.stdout.write(json.dumps(worked.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    from headwise.cli.terminal.tables import print_table
    from headwise.explorer.data.calculation_tables import make_tables

    for title, headings, rows in make_tables(worked):
        print_table(headings, rows, title=title)
    return 0


def _work(arguments: argparse.Namespace) -> "AttentionCalculation":
    from headwise.explorer.data.attention_calculation import EXAMPLES as WORKED
    from headwise.explorer.data.attention_calculation import calculate_attention, choose_settings
    from headwise.explorer.data.number_input import arrange

    example = None if arguments.example is None else WORKED[arguments.example]
    score = arguments.score or (example.score if example else None)
    keys, values, queries = arrange(
        *(
            _table(arguments, name, None if example is None else getattr(example, name))
            for name in ("keys", "values", "queries")
        )
    )
    parameters = dict(example.parameters.get(score or example.score, {})) if example else {}
    parameters |= _parameters(arguments.parameter)
    settings = choose_settings(
        score, arguments.weights, arguments.overrides, num_keys=len(keys), parameters=parameters
    )
    return calculate_attention(
        keys, values, queries, settings=settings, parameters=parameters, seed=arguments.seed
    )


def _table(
    arguments: argparse.Namespace, name: str, default: "NumberTable | None"
) -> "NumberTable":
    from headwise.explorer.data.number_input import read_numbers

    text = getattr(arguments, name)
    if text is not None:
        table = read_numbers(text, name=f"--{name}")
        if table.heading:
            write_line(
                say(
                    f"{text}: the first line, {table.heading[:60]!r}, is taken for a heading",
                    f"{text}：第一行 {table.heading[:60]!r} 被当作标题",
                ),
                sys.stderr,
            )
        return table
    assert default is not None, "checked"
    return default


def _parameters(given: list[str]) -> "dict[str, NumberTable]":
    from headwise.explorer.data.number_input import read_numbers

    tables = {}
    for text in given:
        name, equals, numbers = text.partition("=")
        if not equals:
            raise UsageError(
                f"--parameter {text!r} is not NAME=NUMBERS; write for example W_q=1,0;0,1 (in "
                "quotes)",
                f"--parameter {text!r} 不是 名称=数；请写成例如 W_q=1,0;0,1（加引号）",
            )
        tables[name] = read_numbers(numbers, name=f"--parameter {name}")
    return tables
