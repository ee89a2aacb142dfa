"""`headwise vectors`: evaluates word vectors, and exchanges them with other tools."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from headwise.cli.options.model_paths import WordVectorModelPath
from headwise.cli.options.paths import InputFile, NewOutput, TextFilePath
from headwise.language import say

if TYPE_CHECKING:
    from pathlib import Path


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "vectors",
        help=say("score, export and import word vectors", "评测、导出与导入词向量"),
        description=say(
            "Exchange word vectors with gensim and other tools, and measure how well they agree "
            "with human judgements:\n\n  headwise vectors score --model runs/words "
            "known:word-vectors-eval/EN-WS-353-ALL.txt my/analogies.txt\n  headwise vectors "
            "export --model runs/words words.bin --binary\n  headwise vectors import "
            "GoogleNews.bin --to runs/google",
            "与 gensim 等工具互通的词向量，以及它们与人的判断有多一致：\n\n  headwise vectors "
            "score --model runs/words known:word-vectors-eval/EN-WS-353-ALL.txt "
            "my/analogies.txt\n  headwise vectors export --model runs/words words.bin --binary\n  "
            "headwise vectors import GoogleNews.bin --to runs/google",
        ),
    )
    _add_actions(parser)


def _add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar=say("ACTION", "操作"))
    texts = {
        "score": say(
            "correlation with human judgements, share of analogies solved",
            "与人的判断的相关性、类比题正确率",
        ),
        "export": say("write word2vec's text or binary format", "写出 word2vec 文本或二进制格式"),
        "import": say("read word2vec's text or binary format", "读入 word2vec 文本或二进制格式"),
    }
    scoring, exporting, importing = (
        actions.add_parser(name, help=text, description=text) for name, text in texts.items()
    )
    for action in (scoring, exporting):
        action.add_argument(
            "--model",
            required=True,
            type=WordVectorModelPath,
            metavar="DIR",
            help=say("a run of word vectors", "词向量的运行目录"),
        )
    scoring.add_argument(
        "files",
        nargs="+",
        type=TextFilePath,
        metavar="FILE",
        help=say(
            "lists of `word word score`, or of analogies; files, or known:word-vectors-eval/NAME",
            "`词 词 分数` 列表，或类比题；文件，或 known:word-vectors-eval/NAME",
        ),
    )
    scoring.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )
    exporting.add_argument(
        "file", type=NewOutput, metavar="FILE", help=say("the file to write", "要写的文件")
    )
    exporting.add_argument(
        "--binary", action="store_true", help=say("binary instead of text", "用二进制而非文本")
    )
    importing.add_argument(
        "file", type=InputFile, metavar="FILE", help=say("the file to read", "要读的文件")
    )
    importing.add_argument(
        "--to",
        required=True,
        type=NewOutput,
        metavar="DIR",
        help=say("the model directory to write", "要生成的模型目录"),
    )


def _find(file: str) -> "Path":
    from pathlib import Path

    from headwise.data.known.corpora import find_known_file

    return find_known_file(file.removeprefix("known:")) if file.startswith("known:") else Path(file)


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from headwise.tasks.word_vectors.bundle import load_word_vectors
    from headwise.tasks.word_vectors.files import (
        export_word_vectors,
        import_word_vectors,
        score_word_vectors,
    )

    match arguments.action:
        case "score":
            space = load_word_vectors(arguments.model).space
            scores = score_word_vectors(space, [_find(file) for file in arguments.files])
            if arguments.json:
                value = [
                    {
                        "name": one.name,
                        "value": round(one.value, 2),
                        "used": one.used,
                        "total": one.total,
                    }
                    for one in scores
                ]
                sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
            else:
                from headwise.cli.terminal.tables import print_table

                headings = (
                    say("list", "列表"),
                    say("score", "分数"),
                    say("used", "用到"),
                    say("of", "总数"),
                )
                print_table(
                    headings,
                    [
                        (one.name, f"{one.value:.1f}", str(one.used), str(one.total))
                        for one in scores
                    ],
                )
        case "export":
            space = load_word_vectors(arguments.model).space
            export_word_vectors(space, Path(arguments.file), binary=arguments.binary)
            sys.stdout.write(f"{arguments.file}\n")
        case _:
            import_word_vectors(Path(arguments.file), Path(arguments.to))
            sys.stdout.write(f"{arguments.to}\n")
    return 0
