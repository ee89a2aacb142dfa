"""`headwise translate`: a file, standard input, or sentences typed at a prompt."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.parser import add_computing, positive
from headwise.language import say

if TYPE_CHECKING:
    from headwise.decoding.choices import DecodingSettings
    from headwise.tasks.translator import Translation, Translator


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "translate",
        help=say("translate a file, standard input, or what you type", "翻译文件、标准输入或键入的句子"),
        description=say(
            "One sentence a line in, one translation a line out; empty lines stay empty, order is kept. "
            "Without FILE: standard input, or a prompt if that is a terminal.\n\n"
            "  headwise translate --model runs/demo/model\n"
            "  headwise translate --model runs/demo/model book.en > book.de\n"
            "  echo 'The dog is old.' | headwise translate --model runs/demo/model --n-best 3",
            "每行一句输入，每行一句译文；空行保持为空，顺序不变。不给 FILE 时读标准输入；若为终端则逐句提示。\n\n"
            "  headwise translate --model runs/demo/model\n"
            "  headwise translate --model runs/demo/model book.en > book.de\n"
            "  echo 'The dog is old.' | headwise translate --model runs/demo/model --n-best 3",
        ),
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help=say("text to translate (.gz and .xz too)", "待译文本（可为 .gz、.xz）")
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="DIR",
        help=say("a bundle, e.g. runs/demo/model", "模型目录，例如 runs/demo/model"),
    )
    _add_wishes(parser)
    add_computing(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help=say("one JSON object a line: text, score, n-best, alignment", "每行一个 JSON：译文、得分、候选、对齐"),
    )


def _add_wishes(parser: argparse.ArgumentParser) -> None:
    """What the translation shall be like."""
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
    parser.add_argument("--prefix", metavar="TEXT", help=say("every translation starts with this", "译文以此开头"))
    parser.add_argument(
        "--forbid",
        action="append",
        default=[],
        metavar="PHRASE",
        help=say("never write this word or phrase", "译文中不得出现"),
    )
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="PHRASE",
        help=say("always write this word or phrase", "译文中必须出现"),
    )
    parser.add_argument(
        "--n-best",
        type=positive,
        default=1,
        metavar="N",
        help=say("the N best of each line, as: line number, score, text", "每行给出 N 个最佳译文：行号、得分、译文"),
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.files import read_text_lines
    from headwise.tasks.translator import Translator

    translator = Translator.load(arguments.model, device=arguments.device, precision=arguments.precision)
    decoding = translator.settings(_changes(arguments, kind=translator.recipe.decoding.kind))
    if arguments.file is None and sys.stdin.isatty():
        return converse(translator, decoding)
    lines = read_text_lines(None if arguments.file is None else Path(arguments.file))
    for number, translation in enumerate(translator.stream(lines, decoding, alignment=arguments.json), start=1):
        if arguments.json:
            sys.stdout.write(json.dumps(translation.as_dict(), ensure_ascii=False) + "\n")
        elif arguments.n_best > 1:
            _write_candidates(translation, number)
        else:
            sys.stdout.write(translation.text + "\n")
        sys.stdout.flush()
    return 0


def _changes(arguments: argparse.Namespace, *, kind: str) -> list[str]:
    """The options as `key=value` changes of the model's decoding settings."""
    changes = list(arguments.changes)
    if (arguments.n_best > 1 or arguments.require) and kind == "greedy":
        # Greedy search has one candidate and cannot plan; a beam is what was asked for, unless --set says otherwise.
        changes.insert(0, "kind=beam")
    if arguments.n_best > 1:
        changes.append(f"num_best={arguments.n_best}")
    for key, wish in (("prefix", arguments.prefix), ("forbidden", arguments.forbid), ("required", arguments.require)):
        if wish:
            changes.append(f"{key}={json.dumps(wish)}")
    return changes


def _write_candidates(translation: "Translation", number: int) -> None:
    for candidate in translation.n_best:
        sys.stdout.write(f"{number}\t{candidate.score:.4f}\t{candidate.text}\n")


def converse(translator: "Translator", decoding: "DecodingSettings | None" = None) -> int:
    """A prompt: a sentence in, its translation out, until an empty line."""
    pair = f"{translator.source_language} → {translator.target_language}"
    form = translator.form.label
    sys.stderr.write(
        say(f"{pair}. Type a sentence; an empty line ends. ({form})\n", f"{pair}。输入句子，空行结束。（{form}）\n")
    )
    while True:
        try:
            line = input(f"{translator.source_language}> ")
        except EOFError:
            sys.stderr.write("\n")
            return 0
        if not line.strip():
            return 0
        for translation in translator([line], decoding):
            if len(translation.n_best) > 1:
                _write_candidates(translation, 1)
            else:
                sys.stdout.write(translation.text + "\n")
