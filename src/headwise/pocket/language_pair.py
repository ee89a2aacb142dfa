"""Reads the option that chooses two languages of the pocket corpus: en-de is English to German."""

from headwise.errors import UsageError
from headwise.pocket.sentence import LANGUAGES


def split_pair(pair: str) -> tuple[str, str]:
    """`en-de` → (en, de)."""
    source, _, target = pair.partition("-")
    if source not in LANGUAGES or target not in LANGUAGES or source == target:
        raise UsageError(
            f"--pair {pair!r} is not a pair of the pocket corpus; give two different ones of "
            f"{', '.join(LANGUAGES)}, e.g. en-de or zh-en",
            f"--pair {pair!r} 不是袖珍语料的语言对；请给出 {'、'.join(LANGUAGES)} 中不同的两种，"
            "例如 en-de 或 zh-en",
        )
    return source, target
