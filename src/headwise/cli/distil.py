"""`headwise distil`: makes the training data of a student, in which a teacher's translations stand
in place of the references.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.launcher import is_first_process
from headwise.cli.options.model_paths import TranslatorPath
from headwise.cli.options.parser import add_computing, override, positive
from headwise.cli.options.paths import OutputDirectory, RecipeName, TextFilePath
from headwise.cli.terminal.wrapping import write_line
from headwise.language import say

if TYPE_CHECKING:
    from headwise.tasks.translation.distillation_request import (
        DistillationRequest,
        DistilledCorpus,
    )

EXAMPLES = (
    "\n\n  headwise distil runs/teacher --output distilled"
    "\n  headwise train pocket --run runs/student data.train=distilled/train"
    "\n  headwise distil runs/teacher --source more.en --output distilled-more"
    "\n  headwise distil runs/de-en --source more.de --mode sampled --output synthetic"
    "\n  headwise train RECIPE --run runs/more 'data.train=[my/train, {path: synthetic/train, tag: "
    "<bt>}]'"
    "\n  torchrun --nproc-per-node=8 -m -- headwise distil runs/teacher --output distilled"
)


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "distil",
        help=say(
            "translate training data with a teacher, for a smaller or faster student",
            "用教师模型翻译训练数据，供更小或更快的学生模型学习",
        ),
        description=say(
            "Sequence-level knowledge distillation: a trained translator (the teacher) translates "
            "the source side of a training corpus, and a student learns from its translations in "
            "place of the references. They are less varied than human ones, so that small, "
            "shallow and non-autoregressive models learn them better. Without --data and --source "
            "the teacher's own training corpora are translated. The command can be stopped at any "
            "time; the same command goes on.\n\nThe same command makes synthetic pairs of text "
            "that nobody has translated. Self-training: the translator itself translates more "
            "sources. Back-translation: a translator of the opposite direction translates text of "
            "the target language; a recipe reads the corpus in its own direction, so that the "
            "translations are its sources, and marks them with a tag." + EXAMPLES,
            "序列级知识蒸馏：由训练好的翻译模型（教师）翻译训练语料的源文，"
            "学生模型学习教师的译文而不是参考译文。教师的译文比人工译文更单一，因此小模型、"
            "浅层解码器与非自回归模型更容易学会。不给 --data 与 --source 时，"
            "翻译教师自己的训练语料。随时可以停止；再次运行同一命令即可继续。\n\n"
            "同一命令也能用无译文的文本生成合成句对。自训练：翻译模型自己翻译更多源文。回译："
            "由反方向的翻译模型翻译目标语言的文本；配方按自己的方向读取该语料，译文便成为源文，"
            "并加上标记。" + EXAMPLES,
        ),
    )
    _add_inputs(parser)
    _add_choices(parser)
    _add_filters(parser)
    add_computing(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help=say("print the description of the corpus as JSON", "以 JSON 输出语料的说明"),
    )


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "teacher",
        type=TranslatorPath,
        metavar="TEACHER",
        help=say("a translator: a bundle or a finished run", "翻译模型：模型目录或已完成的运行"),
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        type=override,
        metavar="key.path=value",
        help=say(
            "change one value of the recipe with the data, e.g. data.train=my/train or "
            "data.filter.max_ratio=2",
            "修改数据所在配方的一个值，例如 data.train=my/train 或 data.filter.max_ratio=2",
        ),
    )
    parser.add_argument(
        "--output",
        required=True,
        type=OutputDirectory,
        metavar="DIR",
        help=say(
            "directory of the distilled corpus; a recipe then says data.train=DIR/train",
            "蒸馏语料的目录；配方中写 data.train=DIR/train",
        ),
    )
    _add_data(parser)


def _add_data(parser: argparse.ArgumentParser) -> None:
    """Options for the sentences that are translated."""
    parser.add_argument(
        "--data",
        dest="recipe",
        type=RecipeName,
        metavar="RECIPE",
        help=say(
            "translate the data.train of this recipe (default: the teacher's own recipe)",
            "翻译该配方的 data.train（默认：教师自己的配方）",
        ),
    )
    parser.add_argument(
        "--source",
        nargs="+",
        default=[],
        type=TextFilePath,
        metavar="FILE",
        help=say(
            "translate these files instead: one sentence a line, no translation needed",
            "改为翻译这些文件：每行一句，无需译文",
        ),
    )
    parser.add_argument(
        "--reference",
        nargs="+",
        default=[],
        type=TextFilePath,
        metavar="FILE",
        help=say(
            "human translations of these files, line by line: for --mode closest and for the "
            "comparison with the raw corpus",
            "这些文件的人工译文，逐行对应：用于 --mode closest 以及与原语料比较",
        ),
    )


def _add_choices(parser: argparse.ArgumentParser) -> None:
    """Options for which translations are kept."""
    parser.add_argument(
        "--mode",
        choices=("best", "closest", "sampled"),
        default="best",
        help=say(
            "best: what beam search finds (default); closest: the hypothesis of the beam that is "
            "closest to the reference; sampled: drawn at random from the teacher's distribution",
            "best：束搜索的最佳译文（默认）；closest：束中最接近参考译文的候选；"
            "sampled：按教师的概率分布随机抽取",
        ),
    )
    parser.add_argument(
        "--keep",
        type=positive,
        default=1,
        metavar="N",
        help=say(
            "translations kept of each sentence, each as a pair of its own (default 1)",
            "每句保留的译文数，各成一个句对（默认 1）",
        ),
    )
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="key=value",
        help=say(
            "change one value of the teacher's decoding, e.g. --set size=8 or --set "
            "temperature=0.8; --set kind=greedy is faster than the beam of --mode best",
            "修改教师解码的一个值，例如 --set size=8 或 --set temperature=0.8；"
            "--set kind=greedy 比 --mode best 的束搜索更快",
        ),
    )
    parser.add_argument(
        "--shard",
        type=positive,
        default=1000,
        metavar="N",
        help=say(
            "sentences that are translated before they are saved (default 1000)",
            "每译多少句保存一次（默认 1000）",
        ),
    )


def _add_filters(parser: argparse.ArgumentParser) -> None:
    """Options for translations that become sources of other pairs."""
    parser.add_argument(
        "--drop-worst",
        type=float,
        default=0.0,
        metavar="SHARE",
        help=say(
            "leave out this share of the translations, e.g. 0.1: those with the lowest mean "
            "log-probability of each shard",
            "去掉这一比例的译文，例如 0.1：每个分片中平均对数概率最低的部分",
        ),
    )
    parser.add_argument(
        "--noise",
        action="store_true",
        help=say(
            "leave out, replace and move some words of the translations, as for the synthetic "
            "sources of back-translation",
            "随机删去、替换、移动译文中的部分词语，用于回译所得的源文",
        ),
    )


def _request(arguments: argparse.Namespace) -> "DistillationRequest":
    from headwise.tasks.translation.distillation_request import DistillationRequest

    return DistillationRequest(
        teacher=Path(arguments.teacher),
        output=Path(arguments.output),
        recipe=None if arguments.recipe is None else str(arguments.recipe),
        overrides=tuple(arguments.overrides),
        sources=tuple(map(Path, arguments.source)),
        references=tuple(map(Path, arguments.reference)),
        mode=arguments.mode,
        keep=arguments.keep,
        drop_worst=arguments.drop_worst,
        noise=arguments.noise,
        decoding=tuple(arguments.changes),
        shard=arguments.shard,
        device=arguments.device,
        precision=arguments.precision,
    )


def check(arguments: argparse.Namespace) -> None:
    from headwise.data.pairs.sealed_corpus import DESCRIPTION

    _request(arguments).check()
    if (Path(arguments.output) / DESCRIPTION).is_file():
        # It has a manifest of its own; the command says whether it is the corpus asked for.
        arguments.output = str(arguments.output)


def run(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.tasks.translation.distillation import distil

    request = _request(arguments)
    if not is_first_process():
        distil(request)
        return 0
    with TrainingDisplay() as display:
        corpus = distil(request, events=display)
    if arguments.json:
        sys.stdout.write(json.dumps(corpus.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        _print(corpus)
    return 0


def _print(corpus: "DistilledCorpus") -> None:
    from headwise.cli.terminal.tables import print_table
    from headwise.tasks.translation.distillation_report import ambiguity_rows, count_rows

    print_table((say("corpus", "语料"), say("count", "数量")), count_rows(corpus.description))
    print_table(
        (
            say("how ambiguous it is", "歧义程度"),
            say("raw", "原语料"),
            say("distilled", "蒸馏后"),
        ),
        ambiguity_rows(corpus.description),
    )
    write_line(say(f"the corpus: {corpus.directory}", f"语料：{corpus.directory}"))
    write_line(
        say(
            f"learn from it: headwise train RECIPE --run runs/student data.train={corpus.prefix}",
            f"用它训练：headwise train RECIPE --run runs/student data.train={corpus.prefix}",
        )
    )
