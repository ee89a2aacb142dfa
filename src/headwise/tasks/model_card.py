"""The model card of a bundle: a README that says what the model is, what it scores, how to use it.

One form for all tasks; what differs is the title, a sentence about the model, and the lines of code
that use it (`Task.title`, `card_details`, `card_use`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import headwise


def model_card(
    title: str,
    *,
    details: str,
    use: str,
    results: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> str:
    """The text of a bundle's README.md."""
    scores = "\n".join(
        f"- {line}" for name, value in results.items() for line in _result_lines(name, value)
    )
    warnings = "".join(f"\n{note}\n" for note in notes)
    sections = [
        f"# {title}",
        f"Made by headwise {headwise.__version__}. {details} The whole recipe is in `recipe.yaml`.",
        f"## Results\n{scores or '- none recorded'}{warnings}",
    ]
    if use:
        sections.append(f"## Use\n{use}")
    sections.append(
        "## Limits\nThe model knows what its training text taught it, "
        "and was measured only on the data named above."
    )
    return "\n\n".join(sections) + "\n"


def _result_lines(name: str, value: Any) -> list[str]:
    """One line for a plain result; one for each metric of a scored set, with its signature."""
    label = name.replace("_", " ")
    if not isinstance(value, Mapping):
        return [f"{label}: {_plain(value)}"]
    signed = [one for one in value.values() if isinstance(one, Mapping) and "signature" in one]
    if signed:
        return [
            f"{label} {one['name']}: {one['value']:.2f} (`{one['signature']}`)" for one in signed
        ]
    return [f"{label}: {_plain(value)}"]


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        parts = {name: one for name, one in value.items() if not isinstance(one, list)}
        return ", ".join(f"{name} {_plain(one)}" for name, one in parts.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}"
