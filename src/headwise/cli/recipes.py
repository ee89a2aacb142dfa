"""`headwise recipes`: the recipes that come with Headwise; with a name, the recipe itself."""

import argparse
import json
import sys

from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "recipes",
        help=say("list the shipped recipes, or print one", "列出自带配方，或打印其中一个"),
        description=say(
            "A recipe is one YAML file: what is read, what is built, how it learns, how it answers. "
            "Print one, save it, change it:\n\n"
            "  headwise recipes base > my.yaml\n"
            "  headwise train my.yaml --run runs/mine",
            "配方是一个 YAML 文件：读什么、建什么、怎么学、怎么答。打印、保存、修改：\n\n"
            "  headwise recipes base > my.yaml\n"
            "  headwise train my.yaml --run runs/mine",
        ),
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help=say("print this recipe", "打印该配方"))
    parser.add_argument("--json", action="store_true", help=say("machine-readable output", "输出 JSON"))


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.recipe import read_recipe_text, shipped_recipes

    if arguments.name:
        sys.stdout.write(read_recipe_text(arguments.name))
        return 0
    recipes = shipped_recipes()
    if arguments.json:
        sys.stdout.write(json.dumps(recipes, ensure_ascii=False, indent=2) + "\n")
        return 0
    for name, summary in recipes.items():
        sys.stdout.write(f"{name:<16} {summary}\n")
    return 0
