"""`headwise adapt`: go on training a finished translator with text of one's own."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.launcher import is_first_process
from headwise.cli.options.model_paths import TranslatorPath
from headwise.cli.options.parser import override
from headwise.cli.options.paths import OutputDirectory
from headwise.language import say

if TYPE_CHECKING:
    from headwise.tasks.translation.adaptation_report import Adaptation
    from headwise.tasks.translation.adaptation_request import AdaptationRequest

EXAMPLES = (
    "\n\n  headwise adapt runs/general --data my/train --run runs/mine"
    "\n  headwise adapt runs/general --data my/train --general corpus/train --run runs/mine"
    "\n  headwise translate --model runs/mine new.txt"
)


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "adapt",
        help=say(
            "adapt a translator to your own parallel text", "用自己的平行文本继续训练翻译模型"
        ),
        description=say(
            "Goes on training a finished or imported translator with your own sentence pairs "
            "(my/train.zh, my/train.en; one sentence a line). Steps, learning rate and batches "
            "follow from the model and the amount of text; a part of the text is held out, the "
            "best validation counts. With --general, pairs of the kind the model knows are mixed "
            "in, so that it does not forget them. At the end the scores before and after are "
            "printed. The result is an ordinary run with its recipe; the command can be stopped "
            "at any time, and the same command goes on." + EXAMPLES,
            "用自己的句对（my/train.zh、my/train.en，每行一句）继续训练已有的或导入的翻译模型。"
            "步数、学习率与批大小由模型和文本量决定；留出一部分文本，取验证最好的权重。给出 "
            "--general 时混入模型原本熟悉的句对，以免遗忘。最后输出适应前后的分数。"
            "结果是带配方的普通运行；随时可以停止，再次运行同一命令即可继续。" + EXAMPLES,
        ),
    )
    parser.add_argument(
        "model",
        type=TranslatorPath,
        metavar="MODEL",
        help=say("a translator: a bundle or a finished run", "翻译模型：模型目录或已完成的运行"),
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        type=override,
        metavar="key.path=value",
        help=say(
            "change one value of the recipe, e.g. training.steps=500",
            "修改配方中的一个值，例如 training.steps=500",
        ),
    )
    _add_data(parser)
    parser.add_argument(
        "--run",
        required=True,
        type=OutputDirectory,
        metavar="DIR",
        help=say("directory of this run", "本次运行的目录"),
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help=say("start even if it is expected not to fit into memory", "即使预计内存不足也开始"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("print the result as JSON", "以 JSON 输出结果")
    )


def _add_data(parser: argparse.ArgumentParser) -> None:
    """Options for the text."""
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="CORPUS",
        help=say(
            "your own pairs, named as in data.train: my/train for my/train.zh and my/train.en, or "
            "my/pairs.tsv or '{path: my/pairs.tsv, columns: {zh: 0, en: 1}}'",
            "自己的句对，写法同 data.train：my/train 表示 my/train.zh 与 my/train.en，或 "
            "my/pairs.tsv、'{path: my/pairs.tsv, columns: {zh: 0, en: 1}}'",
        ),
    )
    for name, part in (("valid", ("validation", "验证")), ("test", ("test", "测试"))):
        parser.add_argument(
            f"--{name}",
            nargs="+",
            default=[],
            metavar="CORPUS",
            help=say(
                f"own pairs for {part[0]} (default: a part of --data)",
                f"用于{part[1]}的句对（默认：从 --data 留出一部分）",
            ),
        )
    parser.add_argument(
        "--general",
        nargs="+",
        default=[],
        metavar="CORPUS",
        help=say(
            "pairs of the kind the model knows already, to be mixed in",
            "模型原本熟悉的句对，用于混合",
        ),
    )
    parser.add_argument(
        "--own-share",
        type=float,
        default=0.5,
        metavar="SHARE",
        help=say(
            "with --general: share of your own pairs among those that are seen (default 0.5)",
            "配合 --general：所见句对中自己的句对所占比例（默认 0.5）",
        ),
    )


def _request(arguments: argparse.Namespace) -> "AdaptationRequest":
    from headwise.tasks.translation.adaptation_request import AdaptationRequest

    return AdaptationRequest(
        model=Path(arguments.model),
        data=tuple(arguments.data),
        run=Path(arguments.run),
        valid=tuple(arguments.valid),
        test=tuple(arguments.test),
        general=tuple(arguments.general),
        own_share=arguments.own_share,
        overrides=tuple(arguments.overrides),
    )


def check(arguments: argparse.Namespace) -> None:
    _request(arguments).check()


def run(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.display import TrainingDisplay, print_summary
    from headwise.tasks.run import train
    from headwise.tasks.translation.adaptation import adaptation_recipe
    from headwise.tasks.translation.adaptation_report import adapt

    request = _request(arguments)
    if not is_first_process():
        train(adaptation_recipe(request), run=request.run, anyway=arguments.anyway)
        return 0
    with TrainingDisplay() as display:
        found = adapt(request, events=display, anyway=arguments.anyway)
    if arguments.json:
        sys.stdout.write(json.dumps(found.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        print_summary(found.summary)
        _print_gains(found)
    return 0


def _print_gains(found: "Adaptation") -> None:
    from headwise.cli.terminal.tables import print_table

    headings = (
        say("held-out text", "留出的文本"),
        say("sentences", "句数"),
        say("BLEU before", "适应前 BLEU"),
        say("after", "适应后"),
        say("difference", "差"),
        "p",
    )
    rows = [
        (
            one.corpus,
            f"{one.sentences:,}",
            f"{one.before:.1f}",
            f"{one.after:.1f}",
            f"{one.difference:+.1f}",
            f"{one.p_value:.3f}",
        )
        for one in found.gains
    ]
    print_table(headings, rows)
