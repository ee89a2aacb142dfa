"""Declares the options of `headwise translate`."""

import argparse

from headwise.cli.options.memory import add_memory
from headwise.cli.options.model_paths import TranslatorOrCheckpoint
from headwise.cli.options.parser import add_checkpoint, add_computing, add_mean, positive
from headwise.cli.options.paths import STANDARD_INPUT, OutputFile, TextStream
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "translate",
        help=say(
            "translate a file, standard input, or what you type", "翻译文件、标准输入或键入的句子"
        ),
        description=say(
            "Reads one sentence a line and writes one translation a line, in the same order; "
            "empty lines stay empty. Without FILE it reads standard input, or shows a prompt if "
            "that is a terminal.\n\n  headwise translate --model runs/demo/model\n  headwise "
            "translate --model runs/demo/model book.en > book.de\n  headwise translate --model "
            "runs/demo/model --text 'The dog is old.' --attention attention.html\n  echo 'The dog "
            "is old.' | headwise translate --model runs/demo/model --n-best 3",
            "每行一句输入，每行一句译文；空行保持为空，顺序不变。不给 FILE 时读标准输入；"
            "若为终端则逐句提示。\n\n  headwise translate --model runs/demo/model\n  headwise "
            "translate --model runs/demo/model book.en > book.de\n  headwise translate --model "
            "runs/demo/model --text 'The dog is old.' --attention attention.html\n  echo 'The dog "
            "is old.' | headwise translate --model runs/demo/model --n-best 3",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        type=TextStream,
        default=STANDARD_INPUT,
        metavar="FILE",
        help=say(
            "text to translate (.gz and .xz too; -: standard input)",
            "待译文本（可为 .gz、.xz；- 表示标准输入）",
        ),
    )
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="SENTENCE",
        help=say(
            "translate this instead of a file; may be repeated", "翻译此句而不读文件；可重复给出"
        ),
    )
    parser.add_argument(
        "--model",
        required=True,
        action="append",
        type=TranslatorOrCheckpoint,
        metavar="DIR",
        help=say(
            "a bundle or run, e.g. runs/demo/model; given several times: these models translate "
            "together, as an ensemble",
            "模型目录或运行目录，例如 runs/demo/model；多次给出时，这些模型集成起来共同翻译",
        ),
    )
    _add_direction(parser)
    add_mean(parser)
    add_checkpoint(parser)
    parser.add_argument(
        "--too-long",
        choices=("split", "empty", "refuse"),
        default="split",
        help=say(
            "a line longer than the model reads: split it and translate its sentences (default), "
            "leave its translation empty, or refuse",
            "超过模型可读长度的行：拆成句子分别翻译（split，默认）、译文留空（empty）"
            "或报错停止（refuse）",
        ),
    )
    _add_decoding_options(parser)
    add_memory(parser)
    add_computing(parser)
    _add_output(parser)


def _add_direction(parser: argparse.ArgumentParser) -> None:
    """Options for a model of several directions."""
    parser.add_argument(
        "--to",
        metavar="LANG",
        help=say(
            "the language to write, for a model of several directions",
            "要译成的语言，用于多方向的模型",
        ),
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="LANG",
        help=say(
            "the language of the text; without it, any that the model reads",
            "原文的语言；不给时可为模型能读的任何语言",
        ),
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--attention",
        type=OutputFile,
        metavar="FILE",
        help=say(
            "also write the attention of every layer and head: FILE.html is a page, FILE.png a "
            "picture, FILE.json the numbers",
            "同时写出每层每头的注意力：FILE.html 可浏览，FILE.png 为图片，FILE.json 为数值",
        ),
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help=say(
            "one JSON object a line: text, score, n-best, alignment",
            "每行一个 JSON：译文、得分、候选、对齐",
        ),
    )


def _add_decoding_options(parser: argparse.ArgumentParser) -> None:
    """Options that change the search or restrict the translation."""
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="key=value",
        help=say(
            "change one decoding value, e.g. --set kind=beam --set size=8",
            "修改一个解码值，例如 --set kind=beam --set size=8",
        ),
    )
    parser.add_argument(
        "--prefix", metavar="TEXT", help=say("every translation starts with this", "译文以此开头")
    )
    parser.add_argument(
        "--forbid",
        action="append",
        default=[],
        metavar="PHRASE",
        help=say(
            "a word or phrase that must not occur in the translation: whole words, or any "
            "occurrence in a script without spaces",
            "译文中不得出现的词语：按完整的词计；中文等不用空格的文字出现即算",
        ),
    )
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="PHRASE",
        help=say(
            "a word or phrase that must occur in the translation, as typed: as whole words (the "
            "mü of müde does not count), or anywhere in a script without spaces; at most 8; uses "
            "beam search",
            "译文中必须原样出现的词语：按完整的词计（müde 中的 mü 不算），"
            "中文等不用空格的文字出现即算；最多 8 个；使用束搜索",
        ),
    )
    parser.add_argument(
        "--n-best",
        type=positive,
        default=1,
        metavar="N",
        help=say(
            "the N best of each line, as: line number, score, text; uses beam search if the "
            "model's search is greedy",
            "每行给出 N 个最佳译文：行号、得分、译文；模型为贪心搜索时改用束搜索",
        ),
    )
