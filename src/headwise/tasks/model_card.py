"""The model card of a bundle: a README that says what the model is, what it scores, how to use it.

All tasks have the same card except for its title, a sentence about the model, and the lines of code
that use it (`Task.title`, `card_details`, `card_use`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import headwise
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.result_rows import PARTS, card_lines, english


def model_card(
    title: str,
    *,
    details: str,
    use: str,
    results: Mapping[str, Any],
    data: Mapping[str, Any],
    notes: Sequence[str] = (),
    recipe_type: type[AnyRecipe] = AnyRecipe,
) -> str:
    """The text of a bundle's README.md; `data` is the recipe's section of that name, `recipe_type`
    declares the results.
    """
    warnings = "".join(f"\n{note}\n" for note in notes)
    sections = [
        f"# {title}",
        f"Made by headwise {headwise.__version__}. {details} The whole recipe is in `recipe.yaml`.",
        f"## Data\n{_data_lines(data)}",
        f"## Results\n{card_lines(results, recipe_type)}{warnings}",
    ]
    if use:
        sections.append(f"## Use\n{use}")
    sections.append(
        "## Limits\nThe model knows what its training data taught it. Results on other data may "
        "differ."
    )
    return "\n\n".join(sections) + "\n"


def _data_lines(data: Mapping[str, Any]) -> str:
    """One line on the training data, one on the data of the scores."""
    named = {part: name_corpora(data.get(part)) for part in ("train", "valid", "test")}
    trained = f"Trained on {named['train'] or 'data that is not recorded'}."
    measured = [
        f"{named[part]} ({english(*PARTS[part])})" for part in ("valid", "test") if named[part]
    ]
    if not measured:
        return f"{trained}\nNot measured: the recipe names neither validation nor test data."
    return f"{trained}\nMeasured on {', '.join(measured)}."


def name_corpora(given: Any) -> str:
    """The corpora of a part of the data, as a reader would call them; empty for none."""
    corpora = given if isinstance(given, list) else [] if given is None else [given]
    return ", ".join(dict.fromkeys(map(_name_corpus, corpora)))


def _name_corpus(corpus: Any) -> str:
    if not isinstance(corpus, Mapping):
        return f"`{corpus}`"
    return f"`{corpus.get('path') or corpus.get('name') or corpus.get('kind')}`"
