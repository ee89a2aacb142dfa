"""`headwise export`: writes a model for a program that works without Headwise."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from headwise.cli.options.model_paths import ExportedPath
from headwise.cli.options.paths import NewOutput, SentenceFile
from headwise.language import say

if TYPE_CHECKING:
    from headwise.exporting.ctranslate2_export import ExportedTranslator

QUANTIZATIONS = (
    "none",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "int16",
    "float16",
    "bfloat16",
)


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "export",
        help=say(
            "write a translator for CTranslate2, or n-grams as ARPA",
            "把翻译模型写成 CTranslate2 格式，或把 n 元语法写成 ARPA",
        ),
        description=say(
            "Writes a model in the format of another program, for machines without Headwise. A "
            "translator becomes a directory that CTranslate2 and sentencepiece read without "
            "torch; its README contains the code that translates. It is compared with Headwise on "
            "probe sentences first: if the tokens differ, nothing is written. n-grams become an "
            "ARPA file.\n\n  headwise export runs/demo demo-ct2\n  headwise export runs/demo "
            "demo-int8 --quantization int8\n  headwise export runs/mine mine-ct2 --probes "
            "sentences.txt\n  headwise export runs/ptb ptb.arpa.gz",
            "把模型写成其他程序的格式，供没有安装 Headwise 的机器使用。翻译模型成为一个目录，"
            "CTranslate2 与 sentencepiece 即可读取，无需 torch；其中的 README 有翻译所需的 Python "
            "代码。发布之前会用探测句与 Headwise 比较：词元必须相同，否则什么也不写。n 元语法写成 "
            "ARPA 文件。\n\n  headwise export runs/demo demo-ct2\n  headwise export runs/demo "
            "demo-int8 --quantization int8\n  headwise export runs/mine mine-ct2 --probes "
            "sentences.txt\n  headwise export runs/ptb ptb.arpa.gz",
        ),
    )
    parser.add_argument(
        "model", type=ExportedPath, metavar="MODEL", help=say("a bundle or run", "模型或运行目录")
    )
    parser.add_argument(
        "output",
        type=NewOutput,
        metavar="OUTPUT",
        help=say(
            "a new directory; for n-grams a file, e.g. model.arpa.gz",
            "新目录；n 元语法则为文件，例如 model.arpa.gz",
        ),
    )
    parser.add_argument(
        "--quantization",
        choices=QUANTIZATIONS,
        default="none",
        help=say(
            "how weights are stored: none keeps float32; int8 is smaller (the demo: 2.4 MB "
            "instead of 6.3) and rounds more",
            "权重的存储方式：none 保持 float32；int8 更小（demo：2.4 MB，原为 6.3 MB），舍入更多",
        ),
    )
    parser.add_argument(
        "--probes",
        type=SentenceFile,
        metavar="FILE",
        help=say(
            "sentences to compare with, one a line (at most 100; default: ten of several "
            "languages)",
            "用于比较的句子，每行一句（至多 100 句；默认：多种语言的十句）",
        ),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def check(arguments: argparse.Namespace) -> None:
    """Which models are accepted depends on the output."""
    arguments.model = ExportedPath.into(arguments.output, arguments.model)


def run(arguments: argparse.Namespace) -> int:
    from headwise.exporting.ctranslate2_export import ExportedTranslator
    from headwise.exporting.export import export_model

    result = export_model(
        arguments.model,
        arguments.output,
        quantization=arguments.quantization,
        probes=arguments.probes,
    )
    if isinstance(result, ExportedTranslator):
        sys.stdout.write(
            json.dumps(result.as_dict(), ensure_ascii=False) + "\n"
            if arguments.json
            else _report(result)
        )
    else:
        sys.stdout.write(
            json.dumps({"file": str(result)}) + "\n" if arguments.json else f"{result}\n"
        )
    return 0


def _report(result: "ExportedTranslator") -> str:
    exact, last = result.exact, result.rounded or result.exact
    numbers = "float32" if result.quantization == "none" else result.quantization
    lines = [
        say(
            f"{result.directory}: for CTranslate2, {numbers}, {result.num_bytes / 1e6:.1f} MB; "
            "README.md has the code that translates",
            f"{result.directory}：CTranslate2 模型，{numbers}，{result.num_bytes / 1e6:.1f} MB；"
            "README.md 中有翻译所需的代码",
        ),
        say(
            f"checked in float32 on {exact.num_probes} probes: greedy and beam give the same "
            f"tokens as Headwise, log-probabilities within {exact.difference:.1e}",
            f"已用 {exact.num_probes} 个探测句检查（float32）：贪心与束搜索的词元与 Headwise "
            f"相同，对数概率相差不超过 {exact.difference:.1e}",
        ),
    ]
    if result.rounded is not None:
        lines.append(
            say(
                f"rounded to {numbers}, log-probabilities are {last.difference:.1e} off on average",
                f"舍入为 {numbers} 后，对数概率平均偏差 {last.difference:.1e}",
            )
        )
    lines.append(
        say(
            f"with the search of the recipe {last.num_same} of {last.num_probes} translations are "
            "the same",
            f"使用配方中的搜索，{last.num_probes} 个译文中有 {last.num_same} 个相同",
        )
    )
    if result.left_out:
        lines.append(
            say(
                f"CTranslate2 has no words for {', '.join(result.left_out)}; the README says so",
                f"CTranslate2 无法表达 {'、'.join(result.left_out)}；README 中已注明",
            )
        )
    return "\n".join(lines) + "\n"
