"""Settings: frozen values that refuse what they do not know.

A recipe is a tree of these. Unknown keys are refused with the nearest known name, all problems are listed at
once with their dotted path, defaults live on the field and nowhere else, and a choice is a union of small
types told apart by `kind`. `key.path=value` on the command line changes one value and nothing else can.
"""

from headwise.settings.checking import Settings, check_settings, overrides_name
from headwise.settings.overrides import apply_overrides
from headwise.settings.reading import MAX_RECIPE_BYTES, read_settings_file, read_yaml

__all__ = [
    "MAX_RECIPE_BYTES",
    "Settings",
    "apply_overrides",
    "check_settings",
    "overrides_name",
    "read_settings_file",
    "read_yaml",
]
