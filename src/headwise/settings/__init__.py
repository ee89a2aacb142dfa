"""Settings: the typed, checked values that a recipe consists of.

A recipe is a tree of settings. They are frozen and accept known keys only: an unknown key is an
error that names the nearest known key. All problems are reported at once with their dotted paths.
Defaults are on the field and nowhere else. A choice is a union of small types that differ in
`kind`. `key.path=value` on the command line changes one value; there is no other way to override.
"""

from headwise.settings.checking import Settings, check_settings, overrides_name
from headwise.settings.overrides import apply_overrides
from headwise.settings.reading import DEFAULT_TASK, MAX_RECIPE_BYTES, read_settings_file, read_yaml
from headwise.settings.writing import write_yaml

__all__ = [
    "DEFAULT_TASK",
    "MAX_RECIPE_BYTES",
    "Settings",
    "apply_overrides",
    "check_settings",
    "overrides_name",
    "read_settings_file",
    "read_yaml",
    "write_yaml",
]
