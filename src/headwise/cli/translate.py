"""`headwise translate`: a file, standard input, or sentences typed at a prompt."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.parser import add_computing, positive
from headwise.cli.paths import Model, OutputFile, TextFile
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwise.decoding.choices import DecodingSettings
    from headwise.explorer.traces import Trace
    from headwise.tasks.line_translation import Line, TranslatedLine
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
            "  headwise translate --model runs/demo/model --text 'The dog is old.' --attention attention.html\n"
            "  echo 'The dog is old.' | headwise translate --model runs/demo/model --n-best 3",
            "每行一句输入，每行一句译文；空行保持为空，顺序不变。不给 FILE 时读标准输入；若为终端则逐句提示。\n\n"
            "  headwise translate --model runs/demo/model\n"
            "  headwise translate --model runs/demo/model book.en > book.de\n"
            "  headwise translate --model runs/demo/model --text 'The dog is old.' --attention attention.html\n"
            "  echo 'The dog is old.' | headwise translate --model runs/demo/model --n-best 3",
        ),
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=TextFile,
        metavar="FILE",
        help=say("text to translate (.gz and .xz too)", "待译文本（可为 .gz、.xz）"),
    )
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="SENTENCE",
        help=say("translate this instead of a file; may be repeated", "翻译此句而不读文件；可重复给出"),
    )
    parser.add_argument(
        "--model",
        required=True,
        type=Model,
        metavar="DIR",
        help=say("a bundle, e.g. runs/demo/model", "模型目录，例如 runs/demo/model"),
    )
    parser.add_argument(
        "--too-long",
        choices=("split", "empty", "refuse"),
        default="split",
        help=say(
            "a line longer than the model reads: split it and translate its sentences (default), leave its translation empty, or refuse",
            "超过模型可读长度的行：拆成句子分别翻译（split，默认）、译文留空（empty）或报错停止（refuse）",
        ),
    )
    _add_wishes(parser)
    add_computing(parser)
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--attention",
        type=OutputFile,
        metavar="FILE",
        help=say(
            "also write what every layer and head looked at: FILE.html to explore, FILE.png to see, FILE.json for the numbers",
            "同时写出每层每头的注意力：FILE.html 可浏览，FILE.png 为图片，FILE.json 为数值",
        ),
    )
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


def check(arguments: argparse.Namespace) -> None:
    if arguments.attention is not None:
        from headwise.explorer.attention_files import check_ending

        check_ending(Path(arguments.attention))
    if _asks(arguments) and arguments.attention is not None:
        raise UsageError(
            "--attention was given but no text; give the sentence with --text, in a FILE or through a pipe",
            "给出了 --attention 却没有文本；请用 --text 给出句子，或使用文件、管道",
        )
    if arguments.text and arguments.file is not None:
        raise UsageError(
            f"--text and the file {arguments.file} were both given; give one of them",
            f"同时给出了 --text 与文件 {arguments.file}；请只给其一",
        )


def _asks(arguments: argparse.Namespace) -> bool:
    """Whether sentences are typed at a prompt."""
    return arguments.file is None and not arguments.text and sys.stdin.isatty()


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.line_translation import translate_lines
    from headwise.tasks.translator import Translator

    translator = Translator.load(arguments.model, device=arguments.device, precision=arguments.precision)
    lines = None if _asks(arguments) else _lines(arguments)
    decoding = translator.settings(_changes(arguments, kind=translator.recipe.decoding.kind))
    if lines is None:
        return converse(translator, decoding)
    looking = None if arguments.attention is None else _Looking(translator, Path(arguments.attention))
    stream = translate_lines(
        translator,
        lines,
        decoding,
        too_long=arguments.too_long,
        alignment=arguments.json,
        attention=looking is not None,
    )
    for number, line in enumerate(stream, start=1):
        if looking is not None:
            looking.add(line)
        if arguments.json:
            changed = {"too_long": line.change} if line.change else {}
            sys.stdout.write(json.dumps({**line.translation.as_dict(), **changed}, ensure_ascii=False) + "\n")
        elif arguments.n_best > 1:
            _write_candidates(line.translation, number)
        else:
            sys.stdout.write(line.translation.text + "\n")
        sys.stdout.flush()
    if looking is not None:
        looking.write()
    return 0


def _lines(arguments: argparse.Namespace) -> "Iterable[Line]":
    from headwise.tasks.line_translation import Line, read_places

    if arguments.text:
        return [Line(text, "--text", number) for number, text in enumerate(arguments.text, start=1)]
    return read_places(None if arguments.file is None else Path(arguments.file))


class _Looking:
    """Collects what translations looked at; more than a file can hold is refused as soon as it is too much."""

    def __init__(self, translator: "Translator", path: Path) -> None:
        self.languages = translator.source_language, translator.target_language
        self.path = path
        self.traces: list["Trace"] = []

    def add(self, line: "TranslatedLine") -> None:
        from headwise.explorer.attention_files import check_size
        from headwise.explorer.tracing import trace_from

        for part in line.parts:
            if part.attention is not None:
                self.traces.append(trace_from(part, *self.languages))
                check_size(self.traces, self.path)

    def write(self) -> None:
        from headwise.explorer.attention_files import write_attention

        title = say("Attention", "注意力") + f" · {' → '.join(self.languages)}"
        write_attention(self.traces, self.path, title=title)
        sys.stderr.write(say(f"attention: {self.path}\n", f"注意力：{self.path}\n"))


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
    from headwise.tasks.line_translation import Line, translate_lines

    pair = f"{translator.source_language} → {translator.target_language}"
    form = translator.form.label
    sys.stderr.write(
        say(f"{pair}. Type a sentence; an empty line ends. ({form})\n", f"{pair}。输入句子，空行结束。（{form}）\n")
    )
    number = 0
    while True:
        try:
            line = input(f"{translator.source_language}> ")
        except EOFError:
            sys.stderr.write("\n")
            return 0
        if not line.strip():
            return 0
        number += 1
        for answer in translate_lines(translator, [Line(line, say("input", "输入"), number)], decoding):
            if len(answer.translation.n_best) > 1:
                _write_candidates(answer.translation, 1)
            else:
                sys.stdout.write(answer.translation.text + "\n")
