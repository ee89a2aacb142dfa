"""`BundleForm`: what a task calls its bundles, and which files they consist of.

Each task has one, in the `form.py` of its folder; its recipe class has the same
(`AnyRecipe.bundle_form`). `bundle.py` reads and writes bundles by it, and messages about a model of
the wrong task quote it (accepted_models.py). The command that uses a model is in `table.py`.
Nothing here loads torch.
"""

from dataclasses import dataclass

KIND = "bundle"
"""The kind in a bundle's manifest."""
WORD_VECTORS = "word vectors"
"""The kind of bundles of word vectors, which may have no recipe: vectors can be imported."""
CTRANSLATE2 = "ctranslate2"
"""The kind of an exported directory (exporting/ctranslate2_export.py)."""
RECIPE = "recipe.yaml"
TOKENIZER = "tokenizer/tokenizers.json"


@dataclass(frozen=True)
class BundleForm:
    """The bundles of one task."""

    noun: tuple[str, str]
    """What such a model is called, in English (with its article) and Chinese."""
    example: str
    """A shipped recipe that makes one."""
    is_demo: bool = False
    """Whether `headwise demo` makes one, which is suggested to new users."""
    starts_others: bool = False
    """Whether recipes of other tasks may begin with its encoder (`model.start_from`)."""
    kind: str = KIND
    weights_file: str = "weights.safetensors"
    parts: tuple[str, ...] = (TOKENIZER,)
    """Files beside weights, recipe and results without which the model cannot be used."""

    @property
    def required_files(self) -> tuple[str, ...]:
        return (self.weights_file, RECIPE, "results.json", *self.parts)
