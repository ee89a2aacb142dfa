"""Writes settings as YAML that `reading.py` reads as equal data.

Tested against: every shipped recipe, read back (tests/tasks/test_recipe.py).
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml


def write_yaml(data: Mapping[str, Any]) -> str:
    """Plain data as YAML, in their order."""
    return _text_of(json.dumps(data))


@lru_cache(maxsize=64)
def _text_of(data: str) -> str:
    """Kept, because a training writes its recipe with every bundle, and PyYAML is slow."""
    return yaml.safe_dump(json.loads(data), sort_keys=False, allow_unicode=True, width=100)
