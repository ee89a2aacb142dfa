"""The base class of all recipes. It holds the key `task:`, which says what the model is for.

Each task's own recipe (tasks/<task>/recipe.py) is a subclass; `recipe.py` finds the right one.
Nothing here loads torch.
"""

from typing import Any, ClassVar

from headwise.settings import Settings
from headwise.tasks.bundle_form import BundleForm


class AnyRecipe(Settings):
    """A recipe of any task."""

    bundle_form: ClassVar[BundleForm]
    """What the models that it makes are called and consist of."""

    task: str
    """What the model is for."""

    @property
    def corpora_settings(self) -> Any:
        """The `data` section, whatever its type."""
        return getattr(self, "data", None)
