"""`headwise describe`: lists the parts of a model, with their parameters, memory and operations."""

import argparse
import json
import sys

from headwise.cli.options.model_paths import ModelOrRecipe
from headwise.cli.options.parser import override, positive
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "describe",
        help=say(
            "parameters, memory and FLOPs of a model, part by part",
            "逐部分列出模型的参数、内存与运算量",
        ),
        description=say(
            "MODEL is a bundle (runs/demo/model), a recipe file or a shipped recipe's name, of any "
            "task. A trained model is shown with its scores.\n\n"
            "  headwise describe runs/demo/model\n"
            "  headwise describe base model.dim=256\n"
            "  headwise describe ptb-gpt",
            "MODEL 可为模型目录（runs/demo/model）、配方文件或自带配方名，任何任务都可以。"
            "训练好的模型会连同得分一起显示。\n\n"
            "  headwise describe runs/demo/model\n"
            "  headwise describe base model.dim=256\n"
            "  headwise describe ptb-gpt",
        ),
    )
    parser.add_argument(
        "model",
        type=ModelOrRecipe,
        metavar="MODEL",
        help=say("bundle, recipe file or recipe name", "模型目录、配方文件或配方名"),
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        type=override,
        metavar="key.path=value",
        help=say("change one value of a recipe", "修改配方中的一个值"),
    )
    parser.add_argument(
        "--length",
        type=positive,
        default=25,
        metavar="N",
        help=say("tokens in a sentence, for the FLOPs", "计算运算量所用的句长"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.inspecting.description import describe_model

    description = describe_model(arguments.model, arguments.overrides, length=arguments.length)
    if arguments.json:
        sys.stdout.write(json.dumps(description.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        from headwise.cli.terminal.display import print_description

        print_description(description)
    return 0
