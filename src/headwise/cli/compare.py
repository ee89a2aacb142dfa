"""`headwise compare`: trains variants of a recipe with the same budget and compares them.

`compare attention` measures all attention kernels by length; `compare lineage` compares language
models from n-grams to GPT on one text; `compare parallel` compares finished translators
(parallel_comparison.py), and `compare learning` those that learnt in different ways
(learning_comparison.py).
"""

import argparse
import json
import sys
from pathlib import Path

from headwise.cli import learning_comparison, parallel_comparison
from headwise.cli.options.number_lists import read_numbers
from headwise.cli.options.parser import positive
from headwise.cli.options.paths import OutputDirectory, RecipeName
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "compare",
        help=say(
            "train variants side by side and test the difference", "并排训练多个变体并检验差异"
        ),
        description=say(
            "Train recipes, or alternatives of a value, with the same budget, data and seeds, and "
            "write one table: quality with confidence intervals, parameters, time per step, "
            "memory, speed. For recipes of every task; the task says what is scored (BLEU, "
            "accuracy, perplexity). You can stop at any time; the same command "
            "resumes.\n\n  headwise compare pocket model.norm.kind=layer,rms "
            "--seeds 1,2,3 --directory runs/norms\n  headwise compare pocket "
            "'model.encoder.attention={kind: fused},{kind: full}' --directory runs/kernels\n  "
            "headwise compare base my.yaml training.steps=20000 --directory runs/two\n  headwise "
            "compare ud-ewt-tags model.kind=word,window,encoder model.letters=0 --directory "
            "runs/taggers\n  headwise compare ptb-nnlm model.order=3,6 --directory "
            "runs/orders\n\nProblems that all runs share are reported before the first one "
            "starts; runs with the same data and text prepare it once.\n\n`headwise compare "
            "attention` measures every attention kernel at growing lengths: time, memory, "
            "distance from exact attention (all of them up to 4,096 tokens: 6 minutes on two busy "
            "CPU cores):\n\n  headwise compare attention --directory runs/attention --lengths "
            "512,1024,2048\n\n`headwise compare lineage` trains language models from n-grams to "
            "GPT on one text and asks them the same questions:\n\n  headwise compare lineage "
            "--directory runs/lineage --sentences 'the dog sees the cat' 'the dog the sees cat' "
            "--beginning 'the dog'\n  headwise compare lineage --directory runs/ptb "
            "data.train=known:ptb/train data.valid=known:ptb/valid data.test=known:ptb/test"
            + parallel_comparison.DESCRIPTION[0]
            + learning_comparison.DESCRIPTION[0],
            "以相同的预算、数据与种子训练多个配方或一个值的多种取值，写出一张表：质量及置信区间、"
            "参数、每步用时、内存、速度。任何任务的配方都可比较，以什么评分由任务决定（BLEU、"
            "准确率、困惑度）。可随时停止：同一条命令会接着做。"
            "\n\n  headwise compare pocket model.norm.kind=layer,rms --seeds 1,2,3 --directory "
            "runs/norms\n  headwise compare pocket 'model.encoder.attention={kind: fused},{kind: "
            "full}' --directory runs/kernels\n  headwise compare base my.yaml "
            "training.steps=20000 --directory runs/two\n  headwise compare ud-ewt-tags "
            "model.kind=word,window,encoder model.letters=0 --directory "
            "runs/taggers\n  headwise compare ptb-nnlm model.order=3,6 --directory "
            "runs/orders\n\n所有运行都会拒绝的问题在开始之前就说明；"
            "数据与文本设置相同的运行只准备一次数据。\n\n`headwise compare attention` "
            "在逐渐增大的长度上测量每种注意力内核：用时、内存、与精确注意力的距离（全部测到 4,096 "
            "词元：在两个繁忙的 CPU 核心上用了 6 分钟）：\n\n  headwise compare attention "
            "--directory runs/attention --lengths 512,1024,2048\n\n`headwise compare lineage` "
            "在同一份文本上训练从 n 元语法到 GPT 的语言模型，并问同样的问题：\n\n  headwise "
            "compare lineage --directory runs/lineage --sentences 'the dog sees the cat' 'the dog "
            "the sees cat' --beginning 'the dog'\n  headwise compare lineage --directory runs/ptb "
            "data.train=known:ptb/train data.valid=known:ptb/valid data.test=known:ptb/test"
            + parallel_comparison.DESCRIPTION[1]
            + learning_comparison.DESCRIPTION[1],
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "overrides",
        nargs="*",
        type=Compared,
        metavar="RECIPE|key.path=a,b",
        help=say(
            "recipes; values separated by commas are compared, a single one is the same for all; "
            "after `parallel` and `learning`: translators",
            "配方；以逗号分隔的多个值互相比较，单个值对所有变体相同；`parallel` 与 `learning` "
            "之后：翻译模型",
        ),
    )
    parser.add_argument(
        "--directory",
        type=OutputDirectory,
        metavar="DIR",
        help=say(
            "where the runs, the table and the pictures go (required, but not by `parallel` and "
            "`learning`)",
            "存放各次运行、表格与图片（必须给出，`parallel` 与 `learning` 除外）",
        ),
    )
    parser.add_argument(
        "--seeds",
        metavar="1,2,3",
        help=say("train each variant with each of these seeds", "每个变体分别用这些种子训练"),
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help=say("number of runs at the same time", "同时进行的运行数"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("print the table as JSON", "以 JSON 输出表格")
    )
    _add_attention(parser)
    _add_lineage(parser)
    parallel_comparison.add_options(parser)


def _add_attention(parser: argparse.ArgumentParser) -> None:
    """Options of `compare attention`; for recipes the same is said with key.path=value."""
    group = parser.add_argument_group(
        say("only with `compare attention`", "仅用于 `compare attention`")
    )
    group.add_argument(
        "--kinds",
        metavar="A,B",
        help=say("kernels to measure (default: all)", "要测量的内核（默认：全部）"),
    )
    group.add_argument("--lengths", metavar="512,1024", help=say("sequence lengths", "序列长度"))
    group.add_argument(
        "--heads",
        type=positive,
        metavar="N",
        help=say("attention heads (default: 8)", "注意力头数（默认 8）"),
    )
    group.add_argument(
        "--head-dim",
        type=positive,
        metavar="N",
        help=say("width of a head (default: 64)", "每个头的宽度（默认 64）"),
    )
    group.add_argument(
        "--batch",
        type=positive,
        metavar="N",
        help=say("sequences at once (default: 1)", "一次的序列数（默认 1）"),
    )
    group.add_argument(
        "--causal",
        action="store_true",
        help=say("causal: attend to earlier positions only", "因果：只关注前面的位置"),
    )
    group.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        help=say(
            "auto, cpu or cuda (also `parallel`, `learning`)",
            "auto、cpu 或 cuda（`parallel`、`learning` 亦可）",
        ),
    )
    group.add_argument(
        "--precision",
        choices=("auto", "fp32", "fp16", "bf16", "int8"),
        help=say(
            "precision of q, k and v, fp32 or bf16; auto: bf16 on a GPU (`parallel`: of all "
            "matrix products, auto gives the results of fp32)",
            "q、k、v 的精度，fp32 或 bf16；auto：GPU 上用 bf16（`parallel`：所有矩阵乘积的精度，"
            "auto 保持 fp32 的结果）",
        ),
    )
    group.add_argument(
        "--compile",
        choices=("auto", "on", "off"),
        help=say(
            "torch.compile the kernel; auto: on a GPU",
            "用 torch.compile 编译内核；auto：仅在 GPU 上",
        ),
    )


def _add_lineage(parser: argparse.ArgumentParser) -> None:
    """Options of `compare lineage`: the questions for every model."""
    group = parser.add_argument_group(
        say("only with `compare lineage`", "仅用于 `compare lineage`")
    )
    group.add_argument(
        "--sentences",
        nargs=2,
        metavar=("NATURAL", "ODD"),
        help=say(
            "two sentences that every model compares (default: a test line, and the same line "
            "with two neighbouring words exchanged)",
            "由每个模型比较的两个句子（默认：一行测试文本，及交换其中两个相邻词后的句子）",
        ),
    )
    group.add_argument(
        "--beginning",
        metavar="TEXT",
        help=say(
            "a beginning that every model continues (default: the first half of that line)",
            "由每个模型续写的开头（默认：该行的前半）",
        ),
    )


class Compared(RecipeName):
    """A recipe, a change of recipes, or one of the words of `compare`."""

    def locate(self) -> Path | None:
        is_word = self in ("attention", "lineage", "parallel", "learning")
        return None if "=" in self or is_word else super().locate()


LINEAGE_OPTIONS = ("sentences", "beginning")
ATTENTION_OPTIONS = (
    "kinds",
    "lengths",
    "heads",
    "head_dim",
    "batch",
    "causal",
    "device",
    "precision",
    "compile",
)


def check(arguments: argparse.Namespace) -> None:
    if parallel_comparison.is_asked(arguments):
        parallel_comparison.check(arguments)
        return
    if learning_comparison.is_asked(arguments):
        learning_comparison.check(arguments)
        return
    parallel_comparison.refuse_options(arguments)
    if arguments.directory is None:
        raise UsageError(
            "`headwise compare` was given no --directory; say where the results go: --directory "
            "runs/comparison",
            "`headwise compare` 没有给出 --directory；请指定结果存放处：--directory "
            "runs/comparison",
        )
    is_lineage, is_attention = (
        arguments.overrides[:1] == [word] for word in ("lineage", "attention")
    )
    asked = [name for name in LINEAGE_OPTIONS if getattr(arguments, name) is not None]
    if asked and not is_lineage:
        raise UsageError(
            f"--{asked[0]} belongs to `headwise compare lineage`; leave it out here",
            f"--{asked[0]} 属于 `headwise compare lineage`；请去掉",
        )
    given = [name for name in ATTENTION_OPTIONS if getattr(arguments, name)]
    if given and not is_attention:
        option = f"--{given[0].replace('_', '-')}"
        raise UsageError(
            f"{option} belongs to `headwise compare attention`; a recipe says it as "
            "key.path=value (training.device=cuda)",
            f"{option} 属于 `headwise compare attention`；配方用 键.路径=值 "
            "表示（training.device=cuda）",
        )
    if is_lineage and (arguments.seeds or arguments.jobs != 1):
        raise UsageError(
            "`compare lineage` takes no seeds or jobs; say training.seed=2 for another seed",
            "`compare lineage` 不接受种子列表或并行数；要换种子请写 training.seed=2",
        )
    if is_attention and arguments.precision in ("fp16", "int8"):
        raise UsageError(
            f"--precision {arguments.precision} is not measured for attention; use fp32 or bf16",
            f"注意力不以 --precision {arguments.precision} 测量；请用 fp32 或 bf16",
        )
    if is_attention and (arguments.overrides[1:] or arguments.seeds or arguments.jobs != 1):
        raise UsageError(
            "`compare attention` takes no recipe, seeds or jobs; it measures kernels: --kinds, "
            "--lengths, --device",
            "`compare attention` 不接受配方、种子或并行数；它测量的是内核：--kinds、--lengths、"
            "--device",
        )
    for option in ("seeds", "lengths"):
        if getattr(arguments, option) is not None:
            read_numbers(getattr(arguments, option), f"--{option}")


def run(arguments: argparse.Namespace) -> int:
    match arguments.overrides[:1]:
        case ["lineage"]:
            return _run_lineage(arguments)
        case ["attention"]:
            return _run_attention(arguments)
        case ["parallel"]:
            return parallel_comparison.run(arguments)
        case ["learning"]:
            return learning_comparison.run(arguments)
        case _:
            return _run_recipes(arguments)


def _run_lineage(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.cli.terminal.tables import print_table
    from headwise.comparing.lineage import compare_lineage
    from headwise.explorer.pictures.lineage_plots import draw_lineage

    with TrainingDisplay() as display:
        result = compare_lineage(
            directory=arguments.directory,
            overrides=tuple(arguments.overrides[1:]),
            sentences=None if arguments.sentences is None else tuple(arguments.sentences),
            beginning=arguments.beginning,
            events=display,
        )
        try:
            pictures = draw_lineage(result)
        except UsageError as error:
            pictures = ()
            display.note(str(error))
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    print_table(result.headings(), result.rows())
    for line in (*result.remarks(), *map(str, (result.directory / "lineage.md", *pictures))):
        write_line(line)
    return 0


def _run_attention(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.cli.terminal.tables import print_table
    from headwise.comparing.attention import LENGTHS, compare_attention
    from headwise.comparing.attention_conditions import choose_conditions, choose_kernels
    from headwise.comparing.attention_table import remarks, tables
    from headwise.explorer.pictures.kernel_cost_plots import draw_attention_comparison

    conditions = choose_conditions(
        device=arguments.device or "auto",
        precision=arguments.precision or "auto",
        compiling=arguments.compile or "auto",
        heads=arguments.heads or 8,
        head_dim=arguments.head_dim or 64,
        batch=arguments.batch or 1,
        causal=arguments.causal,
    )
    lengths = (
        read_numbers(arguments.lengths, "--lengths")
        if arguments.lengths
        else LENGTHS[conditions.device]
    )
    with TrainingDisplay() as display:
        result = compare_attention(
            choose_kernels(arguments.kinds),
            lengths=lengths,
            conditions=conditions,
            directory=arguments.directory,
            events=display,
        )
        try:
            pictures = draw_attention_comparison(result)
        except UsageError as error:
            pictures = ()
            display.note(str(error))
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    for title, headings, rows in tables(result):
        print_table(headings, rows, title=title)
    for line in (*remarks(result), *map(str, pictures)):
        write_line(line)
    return 0


def _run_recipes(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.cli.terminal.tables import print_table
    from headwise.comparing.recipes import compare
    from headwise.explorer.pictures.comparison_plots import draw_comparison

    with TrainingDisplay() as display:
        result = compare(
            arguments.overrides,
            directory=Path(arguments.directory),
            seeds=read_numbers(arguments.seeds, "--seeds") if arguments.seeds else (),
            jobs=arguments.jobs,
            events=display,
        )
        try:
            pictures = draw_comparison(result)
        except UsageError as error:  # without matplotlib there are no pictures, but the table
            pictures = ()
            display.note(str(error))
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        print_table(result.headings(), result.rows())
        for line in (*result.remarks(), *map(str, (result.directory / "comparison.md", *pictures))):
            write_line(line)
    return 1 if result.failed else 0
