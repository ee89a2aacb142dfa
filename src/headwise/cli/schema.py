"""`headwise schema`: prints the JSON Schema of recipes, by which an editor completes them."""

import argparse
import json
import sys
from collections.abc import Iterator

from headwise.language import say


class _TaskWords:
    """The names of all tasks, looked up when needed: the table of tasks imports pydantic, which the
    help of other commands does not need."""

    def __iter__(self) -> Iterator[str]:
        from headwise.tasks.table import task_words

        return iter(task_words())

    def __contains__(self, word: object) -> bool:
        return word in tuple(self)


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "schema",
        help=say("print the JSON Schema of a recipe", "打印配方的 JSON Schema"),
        description=say(
            "With the schema an editor completes and checks recipes. Save it, and name it in the "
            "first line of a recipe:\n\n  headwise schema > recipe.schema.json\n  # "
            "yaml-language-server: $schema=recipe.schema.json",
            "编辑器知道该结构后即可补全与检查配方。保存它，并写在配方首行：\n\n"
            "  headwise schema > recipe.schema.json\n"
            "  # yaml-language-server: $schema=recipe.schema.json",
        ),
    )
    parser.add_argument(
        "task",
        nargs="?",
        default="translation",
        choices=_TaskWords(),
        metavar=say("TASK", "任务"),  # the names of the choices are not looked up for the help
        help=say(
            "the task of the recipe (default: translation)", "配方的任务（默认：translation）"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.table import find_entry

    entry = find_entry(arguments.task)
    assert entry is not None, "the parser accepts the words of tasks alone"
    schema = entry.recipe_type.model_json_schema()
    sys.stdout.write(json.dumps(schema, ensure_ascii=False, indent=2) + "\n")
    return 0
