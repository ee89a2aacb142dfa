"""The options, input and tables that `headwise classify` and `headwise tag` share."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from headwise.cli.options.checkpoints import accept_unfinished, model_to_load
from headwise.cli.options.model_paths import LabelModelPath
from headwise.cli.options.parser import add_checkpoint
from headwise.cli.options.paths import STANDARD_INPUT, Input, SentenceStream
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from headwise.evaluation.label_scores import CutTexts, LabelScores
    from headwise.tasks.labels.labeller import LabelledAnswer

BLOCK = 1024


def add_arguments(parser: argparse.ArgumentParser, model: type[LabelModelPath]) -> None:
    """The options; `model` is the type of the models that the command is for."""
    parser.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT",
        help=say("text (default: standard input)", "文本（不给则读标准输入）"),
    )
    parser.add_argument(
        "--model",
        required=True,
        type=model,
        metavar="DIR",
        help=say("a bundle or run", "模型目录或运行目录"),
    )
    add_checkpoint(parser)
    parser.add_argument(
        "--file",
        type=SentenceStream,
        default=STANDARD_INPUT,
        metavar="FILE",
        help=say(
            "file of texts, one a line (-: standard input)",
            "从文件读取，每行一条（- 表示标准输入）",
        ),
    )
    parser.add_argument(
        "--measure",
        type=Input,
        metavar="CORPUS",
        help=say(
            "labelled text (.tsv, .csv, .conllu, known:NAME, or a corpus as in a recipe: '{path: "
            "x.txt, kind: slashed}'): accuracy and a table of classes",
            "带标签的文本（.tsv、.csv、.conllu、known:名称，或按配方写法：'{path: x.txt, kind: "
            "slashed}'）：给出准确率与各类别表",
        ),
    )
    parser.add_argument(
        "--device",
        default="auto",
        choices=("auto", "cpu", "cuda"),
        help=say("auto, cpu or cuda", "auto、cpu 或 cuda"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("one JSON object a line", "每行一个 JSON")
    )


def check(arguments: argparse.Namespace) -> None:
    accept_unfinished(arguments)
    if (
        sum(
            (
                bool(arguments.texts),
                not arguments.file.is_standard_input,
                arguments.measure is not None,
            )
        )
        > 1
    ):
        raise UsageError(
            "texts, --file and --measure exclude each other; give one of them",
            "文本、--file 与 --measure 不能同时使用；请只给其一",
        )


def run_labelling(
    arguments: argparse.Namespace, *, tags: bool, show: Callable[["LabelledAnswer"], None]
) -> int:
    """Label texts or measure a model; `tags`: a label for each word."""
    from headwise.evaluation.label_scores import CutTexts
    from headwise.tasks.labels.labeller import Labeller

    with model_to_load(arguments.model, arguments.checkpoint) as directory:
        labeller = Labeller.load(directory, device=arguments.device)
    if arguments.measure is not None:
        scores = labeller.measure(arguments.measure)
        _show_scores(scores, as_json=arguments.json)
        _tell_cut(scores.cut)
        return 0
    lines = _lines(arguments)
    cut: list[LabelledAnswer] = []
    while block := list(islice(lines, BLOCK)):
        answers = labeller(block)
        cut += [answer for answer in answers if answer.num_read < answer.num_tokens]
        for answer in answers:
            if arguments.json:
                sys.stdout.write(
                    json.dumps(answer.as_dict(is_tagged=tags), ensure_ascii=False) + "\n"
                )
            else:
                show(answer)
    if cut:
        longest = max(cut, key=lambda answer: answer.num_tokens)
        _tell_cut(CutTexts(len(cut), longest.num_read, longest.num_tokens))
    return 0


def _tell_cut(cut: "CutTexts") -> None:
    if not cut.num_texts:
        return
    count, read, there = cut.num_texts, cut.num_read, cut.num_tokens
    write_line(
        say(
            f"{count:,} text(s) are longer than this model reads (data.row_tokens): of the "
            f"longest the first {read:,} of {there:,} tokens",
            f"有 {count:,} 条文本超出模型所读的长度（data.row_tokens）：其中最长的只读了 "
            f"{there:,} 个词元中的前 {read:,} 个",
        ),
        sys.stderr,
    )


def _lines(arguments: argparse.Namespace) -> Iterator[str]:
    from headwise.tasks.text_input import read_sentences

    if arguments.texts:
        return iter(arguments.texts)
    return read_sentences(arguments.file.path, keep_blank=True)


def _show_scores(scores: "LabelScores", *, as_json: bool) -> None:
    from headwise.cli.terminal.tables import print_table

    if as_json:
        found = scores.as_dict() | {"cut_texts": scores.cut.num_texts}
        sys.stdout.write(json.dumps(found, ensure_ascii=False, indent=2) + "\n")
        return
    headings = (
        say("class", "类别"),
        say("count", "数量"),
        say("precision", "精确率"),
        say("recall", "召回率"),
        "F1",
    )
    rows = [
        (
            one.label,
            f"{one.num_there:,}",
            *(f"{100 * value:.1f}" for value in (one.precision, one.recall, one.f1)),
        )
        for one in scores.classes
    ]
    title = say(
        f"accuracy {100 * scores.accuracy:.2f} % of {scores.num_labels:,}, mean F1 of the classes "
        f"{100 * scores.macro_f1:.1f}",
        f"准确率 {100 * scores.accuracy:.2f}%（共 {scores.num_labels:,} 个），各类别 F1 平均 "
        f"{100 * scores.macro_f1:.1f}",
    )
    print_table(headings, rows, title=title)
