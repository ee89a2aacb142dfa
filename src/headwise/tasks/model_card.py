"""The model card of a bundle: a README that says what the model is, what it scores, how to use it.

All tasks have the same card except for its title, a sentence about the model, and the lines of code
that use it (`Task.title`, `card_details`, `card_use`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import headwise
from headwise.tasks.result_rows import card_lines


def model_card(
    title: str,
    *,
    details: str,
    use: str,
    results: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> str:
    """The text of a bundle's README.md."""
    warnings = "".join(f"\n{note}\n" for note in notes)
    sections = [
        f"# {title}",
        f"Made by headwise {headwise.__version__}. {details} The whole recipe is in `recipe.yaml`.",
        f"## Results\n{card_lines(results)}{warnings}",
    ]
    if use:
        sections.append(f"## Use\n{use}")
    sections.append(
        "## Limits\nThe model knows what its training text taught it, "
        "and was measured only on the data named above."
    )
    return "\n\n".join(sections) + "\n"
