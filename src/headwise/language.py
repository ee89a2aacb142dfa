"""The language of messages: English or Chinese.

Every sentence shown to a person is written where it is needed, in both languages, as
`say("English", "中文")`; the current language decides which one is returned. It comes from
`--lang`, else from the variables `LC_ALL`, `LC_MESSAGES` and `LANG`.
"""

import os
from typing import Literal

Language = Literal["en", "zh"]

_chosen: Language | None = None


def language_of_environment() -> Language:
    """Chinese if the locale variables say so, else English."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def use_language(language: Language | None) -> None:
    """Set the language of messages for this process; None: as in the environment."""
    global _chosen
    _chosen = language


def current_language() -> Language:
    return _chosen or language_of_environment()


def say(en: str, zh: str) -> str:
    """The sentence in the current language."""
    return zh if current_language() == "zh" else en


def clock(seconds: float | None) -> str:
    """1:05 or 2:03:04; a dash if unknown."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
