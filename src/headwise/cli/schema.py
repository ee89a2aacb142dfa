"""`headwise schema`: the JSON Schema of a recipe, so that an editor completes and checks it."""

import argparse
import json
import sys

from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    commands.add_parser(
        "schema",
        help=say("print the JSON Schema of a recipe", "打印配方的 JSON Schema"),
        description=say(
            "Save it (headwise schema > recipe.schema.json) and write "
            "`# yaml-language-server: $schema=recipe.schema.json` at the top of a recipe: the editor then completes it.",
            "保存（headwise schema > recipe.schema.json），并在配方首行写 "
            "`# yaml-language-server: $schema=recipe.schema.json`，编辑器即可补全与检查。",
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.recipe import Recipe

    sys.stdout.write(json.dumps(Recipe.model_json_schema(), ensure_ascii=False, indent=2) + "\n")
    return 0
