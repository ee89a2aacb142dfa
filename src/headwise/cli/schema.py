"""`headwise schema`: the JSON Schema of a recipe, so that an editor completes and checks it."""

import argparse
import json
import sys

from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "schema",
        help=say("print the JSON Schema of a recipe", "打印配方的 JSON Schema"),
        description=say(
            "An editor that knows the schema completes and checks a recipe. Save it, and name it "
            "in the recipe's first line:\n\n  headwise schema > recipe.schema.json\n  # "
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
        choices=(
            "translation",
            "language_modeling",
            "word_vectors",
            "classification",
            "tagging",
            "masked_language",
            "bidirectional_language",
        ),
        help=say(
            "of a recipe of this task (default: translation)", "该任务的配方（默认：translation）"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.settings import Settings
    from headwise.tasks.labels.recipe import LabelRecipe
    from headwise.tasks.language.recipe import LanguageRecipe
    from headwise.tasks.pretraining.elmo_recipe import ElmoRecipe
    from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
    from headwise.tasks.translation.recipe import TranslationRecipe
    from headwise.tasks.word_vectors.recipe import WordVectorRecipe

    recipes: dict[str, type[Settings]] = {
        "translation": TranslationRecipe,
        "language_modeling": LanguageRecipe,
        "word_vectors": WordVectorRecipe,
        "classification": LabelRecipe,
        "tagging": LabelRecipe,
        "masked_language": MaskedRecipe,
        "bidirectional_language": ElmoRecipe,
    }
    recipe = recipes[arguments.task]
    sys.stdout.write(json.dumps(recipe.model_json_schema(), ensure_ascii=False, indent=2) + "\n")
    return 0
