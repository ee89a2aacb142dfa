"""`headwise plan`: predicts memory, speed, duration, disk and layout of a run, for any task."""

import argparse
import contextlib
import json
import sys

from headwise.cli.options.parser import override, positive
from headwise.cli.options.paths import RecipeName
from headwise.language import say

EXAMPLES = (
    "  headwise plan base data.train=my/train\n"
    "  headwise plan big --device h200 --gpus 64 --bandwidth 50\n"
    "  headwise plan base --memory 24 training.batch_tokens=65536\n"
    "  headwise plan english-masked --device h200"
)


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "plan",
        help=say(
            "what a training will take: memory, speed, time, disk",
            "预测一次训练所需的内存、速度、时间与磁盘",
        ),
        description=say(
            "Predict a training of any task before it starts. Without --device this machine is "
            "measured for a few seconds; with it, published figures are used. The aim is memory "
            f"within 15 %, speed within 25 %.\n\n{EXAMPLES}",
            "在训练开始前作出预测，任何任务都可以。不写 --device 时对本机测量几秒；"
            "写了则用公布的参数。目标是内存误差在 15% 以内，速度在 25% 以内。\n\n" + EXAMPLES,
        ),
    )
    parser.add_argument(
        "recipe",
        type=RecipeName,
        metavar="RECIPE",
        help=say("recipe file or recipe name", "配方文件或配方名"),
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        type=override,
        metavar="key.path=value",
        help=say("change one value of the recipe", "修改配方中的一个值"),
    )
    _add_machine(parser)
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def _add_machine(parser: argparse.ArgumentParser) -> None:
    """What the run would be trained on."""
    parser.add_argument(
        "--device",
        metavar="NAME",
        help=say(
            "cpu, h200, h100, a100, l40s, rtx4090 or rtx3090",
            "cpu、h200、h100、a100、l40s、rtx4090 或 rtx3090",
        ),
    )
    parser.add_argument(
        "--gpus",
        type=positive,
        default=1,
        metavar="N",
        help=say("devices that share the batch", "共同分担批次的设备数"),
    )
    parser.add_argument(
        "--memory",
        type=positive_number,
        metavar="GiB",
        help=say("memory of a device", "每个设备的内存"),
    )
    parser.add_argument(
        "--bandwidth",
        type=positive_number,
        metavar="GB/s",
        help=say(
            "bandwidth of each device while all send (GB/s)", "所有设备同时发送时各自的带宽（GB/s）"
        ),
    )


def positive_number(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(
        say(
            f"{text!r} is not a number above 0; give one such as 24",
            f"{text!r} 不是大于 0 的数；请给出例如 24",
        )
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.early_check import refuse_early

    refuse_early(arguments.recipe, arguments.overrides)
    from headwise.tasks.planner import plan_recipe

    plan = plan_recipe(
        arguments.recipe,
        arguments.overrides,
        device=arguments.device,
        gpus=arguments.gpus,
        memory=arguments.memory,
        bandwidth=arguments.bandwidth,
    )
    if arguments.json:
        sys.stdout.write(json.dumps(plan.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        from headwise.cli.terminal.display import print_plan

        print_plan(plan)
    return 0
