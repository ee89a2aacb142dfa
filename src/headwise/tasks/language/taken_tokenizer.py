"""Takes the tokenizer of another model for a language model (`tokenizer` in its recipe).

    headwise train my-ngram.yaml --run runs/pieces tokenizer=runs/translator

Of a translator it is the tokenizer of the target language. A search for translations can then ask
the language model about the translator's tokens (`decoding.language_model`). Both recipes must have
the same text section, so that the recipe of the language model says what its tokens are.

Tested: every id means the same in both; another text section and what is no model are refused.
"""

from headwise.errors import CheckpointError
from headwise.settings import read_settings_file
from headwise.storage import verify_directory
from headwise.tasks.accepted_models import check_listed
from headwise.tasks.bundle import TOKENIZER
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.bundle_form import KIND, RECIPE
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.recipe import complete_recipe
from headwise.text.choices import load_fitting_tokenizers
from headwise.text.tokenizer import Tokenizer
from headwise.text.tokenizer_pair import PAIR_FILE


def find_tokenizer(recipe: LanguageRecipe) -> Tokenizer | None:
    """The tokenizer that the recipe takes over, checked against its text section; None: a new one
    is learnt."""
    if recipe.tokenizer is None:
        return None
    try:
        path = find_bundle(recipe.tokenizer)
    except CheckpointError as error:
        raise CheckpointError(
            f"is given as tokenizer, but {error.en}",
            f"被用作 tokenizer，但{error.zh}",
            file=error.file,
        ) from error
    check_listed(verify_directory(path, kind=KIND), path, (RECIPE, f"{TOKENIZER}/{PAIR_FILE}"))
    theirs = complete_recipe(read_settings_file(path / RECIPE))["text"]
    ours = recipe.text.model_dump(mode="json")
    differing = sorted(
        key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)
    )
    if differing:
        listed = ", ".join(
            f"text.{key}={theirs.get(key)} there, {ours.get(key)} here" for key in differing
        )
        raise CheckpointError(
            f"is given as tokenizer, but its recipe has another text section ({listed}); give "
            "yours the same one",
            f"被用作 tokenizer，但其配方的 text 部分不同（{listed}）；请使你的配方与之相同",
            file=path,
        )
    return load_fitting_tokenizers(path / TOKENIZER, recipe.text).target
