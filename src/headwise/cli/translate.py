"""`headwise translate`: translates a file, standard input, or sentences typed at a prompt."""

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headwise.cli.options.checkpoints import accept_unfinished, tell_weights
from headwise.cli.options.memory import memory_changes
from headwise.cli.options.translate_options import add_parser
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.decoding.choices import DecodingSettings
    from headwise.explorer.data.attention_maps import Trace
    from headwise.tasks.translation.bundle import TranslatorBundle
    from headwise.tasks.translation.line_translation import Line
    from headwise.tasks.translation.translator import Translation, Translator

__all__ = ["add_parser", "check", "converse", "run"]


def check(arguments: argparse.Namespace) -> None:
    if arguments.attention is not None:
        from headwise.explorer.pictures.attention_files import check_ending

        check_ending(Path(arguments.attention))
    if _asks(arguments) and arguments.attention is not None:
        raise UsageError(
            "--attention was given but no text; give the sentence with --text, in a FILE or "
            "through a pipe",
            "给出了 --attention 却没有文本；请用 --text 给出句子，或使用文件、管道",
        )
    accept_unfinished(arguments)
    if arguments.text and not arguments.file.is_standard_input:
        raise UsageError(
            f"--text and the file {arguments.file} were both given; give one of them",
            f"同时给出了 --text 与文件 {arguments.file}；请只给其一",
        )


def _asks(arguments: argparse.Namespace) -> bool:
    """Whether sentences are typed at a prompt."""
    return arguments.file.is_standard_input and not arguments.text and sys.stdin.isatty()


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.translation.line_translation import translate_lines

    translator = _load(arguments)
    lines = None if _asks(arguments) else _lines(arguments)
    decoding = _choose_decoding(arguments, translator)
    if lines is None:
        return converse(translator, decoding)
    looking = (
        None if arguments.attention is None else _Looking(translator, Path(arguments.attention))
    )
    stream = translate_lines(
        translator,
        lines,
        decoding,
        too_long=arguments.too_long,
        alignment=arguments.json and translator.attends,
        attention=looking is not None,
        votes=arguments.json,
    )
    with _FileProgress(arguments) as progress:
        _write(progress.watch(stream), arguments, looking)
    if looking is not None:
        looking.write()
    return 0


def _write(
    stream: "Iterable[Translation]", arguments: argparse.Namespace, looking: "_Looking | None"
) -> None:
    for number, line in enumerate(stream, start=1):
        if looking is not None:
            looking.add(line)
        if arguments.json:
            sys.stdout.write(json.dumps(line.as_dict(), ensure_ascii=False) + "\n")
        elif arguments.n_best > 1:
            _write_candidates(line, number)
        else:
            sys.stdout.write(line.text + "\n")
        sys.stdout.flush()


def _load(arguments: argparse.Namespace) -> "Translator":
    from headwise.tasks.translation.translator import Translator

    bundles = [
        _load_bundle(model, arguments.checkpoint).toward(arguments.to, arguments.source)
        for model in arguments.model
    ]
    return Translator.join(bundles, arguments.mean, arguments.device, arguments.precision)


def _load_bundle(model: str, checkpoint: str | None) -> "TranslatorBundle":
    from headwise.tasks.translation.bundle import load_translator_bundle
    from headwise.tasks.translation.checkpoint_bundle import load_checkpoint_bundle

    if checkpoint is None:
        return load_translator_bundle(model, several_directions=True)
    bundle = load_checkpoint_bundle(Path(model), checkpoint)
    steps = bundle.recipe.training.steps
    tell_weights(model, checkpoint, step=bundle.results["steps"], steps=steps)
    return bundle


def _lines(arguments: argparse.Namespace) -> "Iterable[Line]":
    from headwise.tasks.translation.line_translation import Line, read_places

    if arguments.text:
        return [Line(text, "--text", number) for number, text in enumerate(arguments.text, start=1)]
    return read_places(arguments.file.path, once=True)


class _FileProgress:
    """Shows lines done and time left on the terminal while translations are written to a file."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._file = arguments.file
        is_known = not arguments.text and self._file.can_be_read_again
        self._is_shown = is_known and sys.stderr.isatty() and not sys.stdout.isatty()
        self._display: TrainingDisplay | None = None

    def __enter__(self) -> Self:
        if self._is_shown:
            from headwise.cli.terminal.display import TrainingDisplay

            self._display = TrainingDisplay().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._display is not None:
            self._display.__exit__(*error)

    def watch(self, stream: "Iterable[Translation]") -> "Iterator[Translation]":
        from headwise.tasks.text_input import read_lines_or_none

        total = (
            sum(1 for _ in read_lines_or_none(Path(self._file))) if self._display is not None else 0
        )
        for number, line in enumerate(stream, start=1):
            yield line
            if self._display is not None:
                self._display.count(say("lines translated", "已译行数"), number, total)


class _Looking:
    """Collects the attention of translations; refuses as soon as it is more than a file can
    hold.
    """

    def __init__(self, translator: "Translator", path: Path) -> None:
        self.languages = translator.source_language, translator.target_language
        self.path = path
        self.traces: list["Trace"] = []

    def add(self, line: "Translation") -> None:
        from headwise.explorer.data.translation_maps import trace_from
        from headwise.explorer.pictures.attention_files import check_size

        for part in line.parts:
            if part.attention is not None:
                self.traces.append(trace_from(part, *self.languages))
                check_size(self.traces, self.path)

    def write(self) -> None:
        from headwise.explorer.pictures.attention_files import write_attention

        title = say("Attention", "注意力") + f" · {' → '.join(self.languages)}"
        write_attention(self.traces, self.path, title=title)
        write_line(say(f"attention: {self.path}", f"注意力：{self.path}"), sys.stderr)


def _choose_decoding(arguments: argparse.Namespace, translator: "Translator") -> "DecodingSettings":
    """The model's settings with the changes; a beam is as wide as the candidates asked for."""
    changes = _changes(arguments, translator.recipe.decoding)
    if arguments.n_best > 1:
        given = translator.settings(changes)
        wider = given.with_num_results(arguments.n_best, may_widen=True) or given
        before = given.model_dump(mode="json")
        widened = {
            key: json.dumps(value)
            for key, value in wider.model_dump(mode="json").items()
            if value != before[key]
        }
        widened["num_best"] = str(arguments.n_best)
        if widened.keys() & {change.partition("=")[0] for change in arguments.changes}:
            widened = {"num_best": str(arguments.n_best)}  # a width that was set stays
        changes += [f"{key}={value}" for key, value in widened.items()]
    return translator.settings(changes)


def _changes(arguments: argparse.Namespace, own: "DecodingSettings") -> list[str]:
    """The options as `key=value` changes of the model's decoding settings."""
    changes = [*memory_changes(arguments), *arguments.changes]
    has_one = own.over_steppers and own.with_num_results(2, may_widen=True) is None
    if (arguments.n_best > 1 or arguments.require) and has_one:
        # Greedy search has one candidate and cannot look ahead, so these options use a beam unless
        # --set says otherwise.
        changes.insert(0, "kind=beam")
        if not any(change.startswith("kind=") for change in arguments.changes):
            _tell_beam("--n-best" if arguments.n_best > 1 else "--require")
    for key, value in (
        ("prefix", arguments.prefix),
        ("forbidden", arguments.forbid),
        ("required", arguments.require),
    ):
        if value:
            changes.append(f"{key}={json.dumps(value)}")
    return changes


def _tell_beam(option: str) -> None:
    logging.getLogger(__name__).warning(
        "%s",
        say(
            f"this model searches greedily, which has one candidate; {option} searches by beam "
            "instead (--set size=8 changes its size)",
            f"该模型用贪心搜索，只有一个候选；{option} 改用束搜索（--set size=8 可改束宽）",
        ),
    )


def _write_candidates(translation: "Translation", number: int) -> None:
    for candidate in translation.n_best:
        sys.stdout.write(f"{number}\t{candidate.score:.4f}\t{candidate.text}\n")


def converse(translator: "Translator", decoding: "DecodingSettings | None" = None) -> int:
    """A prompt: reads a sentence and prints its translation, until an empty line."""
    from headwise.tasks.translation.line_translation import Line, translate_lines

    pair = f"{translator.source_language} → {translator.target_language}"
    form = translator.form.label
    write_line(
        say(
            f"{pair}. Type a sentence; an empty line ends. ({form})",
            f"{pair}。输入句子，空行结束。（{form}）",
        ),
        sys.stderr,
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
        for answer in translate_lines(
            translator, [Line(line, say("input", "输入"), number)], decoding
        ):
            if len(answer.n_best) > 1:
                _write_candidates(answer, 1)
            else:
                sys.stdout.write(answer.text + "\n")
