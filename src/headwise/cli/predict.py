"""`headwise predict`: lists the most probable next words after a beginning, or, with a masked
language model, the words for a gap.
"""

import argparse
import json
import math
import sys

from headwise.cli.options.checkpoints import accept_unfinished, model_to_load
from headwise.cli.options.memory import add_language_memory, language_memory
from headwise.cli.options.model_paths import PredictorPath
from headwise.cli.options.parser import add_checkpoint, positive
from headwise.cli.options.paths import STANDARD_INPUT, SentenceStream
from headwise.cli.score import headings
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "predict",
        help=say("the most probable next words of a text", "给定开头，预测下一个词"),
        description=say(
            "The most probable continuations of a text by a language model (a bundle or an ARPA "
            "file); a gap (____) may mark the end. A masked model (BERT) reads both sides and "
            "fills in a gap anywhere. If no BEGINNING is given, beginnings are read from --file or "
            "standard input, one per line.\n\n  headwise predict --model runs/ptb 'the company "
            "said it ____'\n  headwise predict --model runs/ptb 'the company ____' --length 3 "
            "--top 10\n  headwise predict --model runs/english-masked 'a ____ film'\n  headwise "
            "predict --model runs/ptb --file beginnings.txt --json",
            "用语言模型（模型目录或 ARPA 文件）给出最可能的后续；可用 ____ 标出结尾的空。"
            "掩码模型（BERT）利用两侧的上下文，可补全任何位置的空。未给出 BEGINNING 时，从 --file "
            "或标准输入读取，每行一个。\n\n  headwise predict --model runs/ptb 'the company said "
            "it ____'\n  headwise predict --model runs/ptb 'the company ____' --length 3 --top "
            "10\n  headwise predict --model runs/english-masked 'a ____ film'\n  headwise predict "
            "--model runs/ptb --file beginnings.txt --json",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "beginnings",
        nargs="*",
        metavar="BEGINNING",
        help=say(
            "text up to the gap; for a masked model, text with a gap anywhere",
            "空之前的文字；掩码模型则给出含空的文字，空的两边都可有词",
        ),
    )
    parser.add_argument(
        "--model",
        required=True,
        type=PredictorPath,
        metavar="DIR",
        help=say("a bundle, run or ARPA file", "模型目录、运行目录或 ARPA 文件"),
    )
    add_checkpoint(parser)
    add_language_memory(parser)
    parser.add_argument(
        "--file",
        type=SentenceStream,
        default=STANDARD_INPUT,
        metavar="FILE",
        help=say("beginnings, one a line (-: standard input)", "开头，每行一个（- 表示标准输入）"),
    )
    parser.add_argument(
        "--top", type=positive, default=5, metavar="K", help=say("how many", "给出几个")
    )
    parser.add_argument(
        "--length",
        type=positive,
        default=1,
        metavar="N",
        help=say(
            "tokens of a continuation (characters: 2 for most Chinese words)",
            "后续的词元数（字符模型：多数汉语词为 2）",
        ),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("one JSON object a line", "每行一个 JSON")
    )


def check(arguments: argparse.Namespace) -> None:
    accept_unfinished(arguments)
    if arguments.beginnings and not arguments.file.is_standard_input:
        raise UsageError(
            "beginnings and --file exclude each other; give one of them",
            "开头与 --file 不能同时使用；请只给其一",
        )


def run(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.tables import print_table
    from headwise.tasks.language.memory import load_with_memory
    from headwise.tasks.pretraining.gap_filling import load_predictor
    from headwise.tasks.text_input import read_sentences

    memory = language_memory(arguments)
    with model_to_load(arguments.model, arguments.checkpoint) as directory:
        model = load_predictor(directory) if memory is None else load_with_memory(directory, memory)
    for beginning in arguments.beginnings or read_sentences(arguments.file.path, keep_blank=True):
        predictions = model.predict(beginning, count=arguments.top, length=arguments.length)
        if arguments.json:
            found = {"beginning": beginning, "predictions": [one.as_dict() for one in predictions]}
            sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
            continue
        if not predictions:
            nothing = say(
                "nothing can follow: this model keeps no probability for what it has not seen "
                "after these words; train with a smoothing",
                "没有可能的后续：该模型没有为这些词之后未见过的留出概率；请用平滑训练",
            )
            write_line(f"{beginning}\n{nothing}")
            continue
        rows = [
            (one.label, f"{math.exp(one.log_probability):.4f}", f"{one.log_probability:.3f}")
            for one in predictions
        ]
        logarithm, plain = headings(sums_to_one=model.sums_to_one)
        print_table((say("next", "后续"), plain, logarithm), rows, title=beginning)
    return 0
