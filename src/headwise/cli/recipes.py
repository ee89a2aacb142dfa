"""`headwise recipes`: lists the recipes (settings of a training) that come with Headwise; with a
name, prints the recipe.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence

from headwise.cli.options.paths import RecipeName
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "recipes",
        help=say("list the shipped recipes, or print one", "列出自带配方，或打印其中一个"),
        description=say(
            "A recipe is one YAML file: data, model, training and decoding. Print one, save it, "
            "change it:\n\n  headwise recipes base > my.yaml\n  headwise train my.yaml --run "
            "runs/mine",
            "配方是一个 YAML 文件：读什么、建什么、怎么学、怎么答。打印、保存、修改：\n\n"
            "  headwise recipes base > my.yaml\n"
            "  headwise train my.yaml --run runs/mine",
        ),
    )
    parser.add_argument(
        "name",
        nargs="?",
        type=RecipeName,
        metavar="NAME",
        help=say("print this recipe", "打印该配方"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.recipe_files import read_recipe_text, shipped_recipes
    from headwise.tasks.table import TASKS, added_tasks

    if arguments.name:
        sys.stdout.write(read_recipe_text(arguments.name))
        return 0
    recipes = shipped_recipes()
    if arguments.json:
        summaries = {name: recipe.summary for name, recipe in recipes.items()}
        sys.stdout.write(json.dumps(summaries, ensure_ascii=False, indent=2) + "\n")
        return 0
    groups: dict[str, list[tuple[str, str]]] = {}
    for entry in TASKS:
        own = [(name, one.summary) for name, one in recipes.items() if one.task == entry.word]
        groups.setdefault(say(*entry.group), []).extend(own)
    added = [(one.word, f"{one.package} {one.version}") for one in added_tasks()]
    if added:
        title = say(
            "tasks of installed packages, for recipes of yours",
            "已安装的软件包提供的任务，配方自备",
        )
        groups[title] = added
    _print_groups(groups)
    return 0


def _print_groups(groups: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Names and descriptions under titles, wrapped at the width of a terminal, one line each
    elsewhere.
    """
    from headwise.cli.terminal.tables import print_columns

    width = max(len(name) for rows in groups.values() for name, _ in rows)
    for title, rows in groups.items():
        if sys.stdout.isatty():
            sys.stdout.write(f"\n{title}\n")
            print_columns([(f"{name:<{width}}", summary) for name, summary in rows], indent="  ")
        else:
            sys.stdout.writelines(f"{line}\n" for line in (f"# {title}", *map("\t".join, rows)))
