"""`headwise evaluate`: measures how good a translator is, and whether it is significantly better
than another.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.checkpoints import accept_unfinished
from headwise.cli.options.memory import add_memory, memory_changes
from headwise.cli.options.model_paths import TranslatorOrCheckpoint, TranslatorOrText
from headwise.cli.options.parser import add_checkpoint, add_computing, add_mean
from headwise.cli.options.paths import OutputFile, SentenceFile, TextFilePath
from headwise.language import say

if TYPE_CHECKING:
    from headwise.tasks.translation.evaluation_request import Measurement


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "evaluate",
        help=say(
            "BLEU, chrF and TER with intervals; compare two systems",
            "BLEU、chrF、TER 及置信区间；比较两个系统",
        ),
        description=say(
            "Translate --source with --model (or take --hypothesis) and score against --reference "
            "with sacreBLEU; each score carries its signature and a 95 % bootstrap interval. With "
            "--against, a second model or hypothesis file is compared by paired resampling.\n\n  "
            "headwise evaluate --model runs/mine/model --source test.en --reference test.de\n  "
            "headwise evaluate --hypothesis mine.txt --reference test.de --against theirs.txt",
            "用 --model 翻译 --source（或直接给 --hypothesis），以 sacreBLEU 对照 --reference "
            "计分；每个分数附签名与 95% 自助区间。--against 给出第二个模型或译文文件，"
            "作成对重采样比较。\n\n  headwise evaluate --model runs/mine/model --source test.en "
            "--reference test.de\n  headwise evaluate --hypothesis mine.txt --reference test.de "
            "--against theirs.txt",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        type=TranslatorOrCheckpoint,
        metavar="DIR",
        help=say(
            "a bundle; given several times: these models translate together, as an ensemble",
            "模型目录；多次给出时，这些模型集成起来共同翻译",
        ),
    )
    add_mean(parser)
    add_checkpoint(parser)
    parser.add_argument(
        "--hypothesis",
        type=SentenceFile,
        metavar="FILE",
        help=say("finished translations instead of a model", "已有译文，代替模型"),
    )
    parser.add_argument(
        "--source", type=TextFilePath, metavar="FILE", help=say("text to translate", "源文")
    )
    parser.add_argument(
        "--reference",
        type=SentenceFile,
        required=True,
        metavar="FILE",
        help=say("reference translations", "参考译文"),
    )
    parser.add_argument(
        "--against",
        type=TranslatorOrText,
        metavar="DIR|FILE",
        help=say("second model or hypothesis file", "第二个模型或译文文件"),
    )
    parser.add_argument(
        "--output",
        type=OutputFile,
        metavar="FILE",
        help=say("write the translations here", "把译文写到此处"),
    )
    _add_scoring(parser)
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="key=value",
        help=say("change one decoding value", "修改一个解码值"),
    )
    add_memory(parser)
    add_computing(parser)
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def _add_scoring(parser: argparse.ArgumentParser) -> None:
    """Options for how the texts are compared."""
    parser.add_argument(
        "--target",
        "--to",
        metavar="LANG",
        help=say(
            "target language (zh chooses Chinese tokenisation); of a model of several directions, "
            "the language to write",
            "目标语言（zh 用中文切分）；多方向的模型译成该语言",
        ),
    )
    parser.add_argument(
        "--pretokenized",
        action="store_true",
        help=say(
            "the texts are tokenised already; BLEU counts their tokens as they are",
            "文本已分词，BLEU 按现有词计",
        ),
    )
    parser.add_argument(
        "--lowercase", action="store_true", help=say("ignore upper and lower case", "忽略大小写")
    )


def check(arguments: argparse.Namespace) -> None:
    _measurement(arguments).check()
    accept_unfinished(arguments)


def _measurement(arguments: argparse.Namespace) -> "Measurement":
    from headwise.tasks.translation.evaluation_request import Measurement

    names = ("source", "hypothesis", "against", "output")
    models = tuple(map(Path, arguments.model))
    given = {name: getattr(arguments, name) for name in names}
    return Measurement(
        reference=Path(arguments.reference),
        **{name: None if path is None else Path(path) for name, path in given.items()},
        model=models[0] if models else None,
        others=models[1:],
        mean=arguments.mean,
        checkpoint=arguments.checkpoint,
        target_language=arguments.target,
        pretokenized=arguments.pretokenized,
        lowercase=arguments.lowercase,
        overrides=(*memory_changes(arguments), *arguments.changes),
        device=arguments.device,
        precision=arguments.precision,
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.translation.evaluation import measure

    result = measure(_measurement(arguments))
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        from headwise.cli.terminal.display import print_scores

        print_scores(result)
    return 0
