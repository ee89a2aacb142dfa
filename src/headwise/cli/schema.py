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
            "An editor that knows the schema completes and checks a recipe. Save it, and name it in the recipe's first line:\n\n"
            "  headwise schema > recipe.schema.json\n"
            "  # yaml-language-server: $schema=recipe.schema.json",
            "编辑器知道该结构后即可补全与检查配方。保存它，并写在配方首行：\n\n"
            "  headwise schema > recipe.schema.json\n"
            "  # yaml-language-server: $schema=recipe.schema.json",
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.recipe import Recipe

    sys.stdout.write(json.dumps(Recipe.model_json_schema(), ensure_ascii=False, indent=2) + "\n")
    return 0
