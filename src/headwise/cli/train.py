"""`headwise train`: trains the model of a recipe, measures it, and writes a run directory."""

import argparse
import json
import re
import sys
from functools import partial
from pathlib import Path

from headwise.cli.launcher import is_first_process
from headwise.cli.options.parser import OVERRIDE, override
from headwise.cli.options.paths import OutputDirectory, RecipeName
from headwise.errors import UsageError
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "train",
        help=say("train a model from a recipe", "按配方训练模型"),
        description=say(
            "Train a model from a recipe. Your own corpus (my/train.en, my/train.de, one sentence "
            "a line):\n\n  headwise train pocket --run runs/mine data.source=en data.target=de \\"
            "\n      data.train=my/train data.valid=my/valid data.test=my/test\n\n`pocket` is "
            "small enough for a laptop. With a GPU and a few hundred thousand pairs use `base`; "
            "`headwise plan base data.train=my/train` estimates the training time. You can stop "
            "at any time and resume with:\n\n  headwise train --run runs/mine --resume\n\n"
            "Progress goes to standard error and runs/mine/log.jsonl; the model to "
            "runs/mine/model.\n\nOn several processors or machines: torchrun --nproc-per-node=2 "
            "-m -- headwise train …",
            "按配方训练模型。自己的语料（my/train.en、my/train.de，每行一句）：\n\n  headwise "
            "train pocket --run runs/mine data.source=en data.target=de \\\n      "
            "data.train=my/train data.valid=my/valid data.test=my/test\n\n`pocket` 很小，"
            "笔记本电脑即可训练。有 GPU 和几十万句对时用 `base`；`headwise plan base "
            "data.train=my/train` 会估计要训练多久。随时可以停止，之后这样继续：\n\n  headwise "
            "train --run runs/mine --resume\n\n进度写到标准错误与 runs/mine/log.jsonl，模型写到 "
            "runs/mine/model。\n\n使用多个处理器或多台机器：torchrun --nproc-per-node=2 -m -- "
            "headwise train …",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recipe",
        nargs="?",
        type=RecipeName,
        metavar="RECIPE",
        help=say(
            "a recipe file, or a shipped name (headwise recipes); with --resume, the recipe of "
            "the run",
            "配方文件，或自带配方名（headwise recipes）；--resume 时取运行自己的配方",
        ),
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        type=override,
        metavar="key.path=value",
        help=say("change one value of the recipe", "修改配方中的一个值"),
    )
    parser.add_argument(
        "--run",
        type=OutputDirectory,
        metavar="DIR",
        help=say("directory of this run (--check needs none)", "本次运行的目录（--check 不需要）"),
    )
    parser.add_argument(
        "--resume", action="store_true", help=say("resume the run in DIR", "继续 DIR 中的运行")
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help=say("check recipe and data, train nothing", "只检查配方与数据，不训练"),
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help=say("start even if it is expected not to fit into memory", "即使预计内存不足也开始"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("print the result as JSON", "以 JSON 输出结果")
    )


def check(arguments: argparse.Namespace) -> None:
    if arguments.run is None and not arguments.check:
        raise UsageError(
            "--run DIR is missing: training needs a directory for its log, checkpoints and model, "
            "e.g. --run runs/first",
            "缺少 --run DIR：训练需要一个目录存放日志、检查点与模型，例如 --run runs/first",
        )
    if arguments.run is None and arguments.resume:
        raise UsageError(
            "--resume needs --run DIR: the directory of the run to go on with, e.g. --run "
            "runs/first",
            "--resume 需要 --run DIR：要继续的运行目录，例如 --run runs/first",
        )
    if (
        arguments.recipe is not None
        and re.fullmatch(OVERRIDE, arguments.recipe)
        and not Path(arguments.recipe).is_file()
    ):
        arguments.overrides = [str(arguments.recipe), *arguments.overrides]
        arguments.recipe = None
    if arguments.recipe is None:
        arguments.recipe = _recipe_of_run(arguments)


def _recipe_of_run(arguments: argparse.Namespace) -> RecipeName:
    """The recipe of the run to resume, if none is given."""
    if not arguments.resume:
        raise UsageError(
            "RECIPE is missing: give a recipe file or a shipped name, e.g. headwise train pocket "
            "--run runs/first",
            "缺少 RECIPE：请给出配方文件或自带配方名，例如 headwise train pocket --run runs/first",
        )
    from headwise.training.run_recipe import require_recipe

    held = Path(arguments.run) / "recipe.yaml"
    require_recipe(held)
    if not held.is_file():
        raise UsageError(
            f"{arguments.run} holds no run to go on with: there is no {held}; give the directory "
            "of one, or a recipe to begin with",
            f"{arguments.run} 中没有可继续的运行：缺少 {held}；请给出运行目录，"
            "或给出配方以开始新的运行",
        )
    return RecipeName(held)


def run(arguments: argparse.Namespace) -> int:
    if is_first_process() and not arguments.resume:
        from headwise.tasks.early_check import refuse_early

        refuse_early(arguments.recipe, arguments.overrides, reads_text=True)
    import tempfile

    from headwise.cli.terminal.display import TrainingDisplay, print_summary
    from headwise.tasks.run import check_run, train

    recipe, overrides = arguments.recipe, arguments.overrides
    start = partial(
        train, recipe, resume=arguments.resume, overrides=overrides, anyway=arguments.anyway
    )
    if not is_first_process():
        if not arguments.check:
            start(run=arguments.run)
        return 0
    with TrainingDisplay() as display:
        if arguments.check:
            with tempfile.TemporaryDirectory(prefix="headwise-check-") as temporary:
                summary = check_run(
                    recipe,
                    overrides,
                    directory=Path(temporary),
                    events=display,
                    run=arguments.run,
                    resume=arguments.resume,
                    anyway=arguments.anyway,
                )
        else:
            summary = start(run=arguments.run, events=display)
    if arguments.json:
        sys.stdout.write(json.dumps(summary.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        print_summary(summary)
    return 0
