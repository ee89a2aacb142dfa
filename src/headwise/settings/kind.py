"""`Kind`: the base class of the alternatives of a choice, such as `attention: {kind: window, …}`.

A choice in a recipe is a union of settings types. Each of them is a `Kind` in the same file as the
code it builds. It declares what the rest of the program needs to know: its name for people, one
sentence about it, its paper, an example of its settings. Checks, laws, comparisons, descriptions,
the server and the page ask the kind, so no other file has a list of kinds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, get_args

from headwise.settings.checking import Settings

Words = tuple[str, str]
"""The same words in English and Chinese."""


class Kind(Settings):
    """Base of the alternatives of a choice."""

    kind: str
    title: ClassVar[Words]
    """Its name for people."""
    summary: ClassVar[Words]
    """What it does, in one sentence."""
    paper: ClassVar[str]
    """Authors, year and title of the paper it comes from, or "" where there is none."""

    @classmethod
    def word(cls) -> str:
        """What a recipe writes after `kind:`."""
        return str(cls.model_fields["kind"].default)

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """All words for it, where it has several."""
        return get_args(cls.model_fields["kind"].annotation)

    @classmethod
    def example(cls) -> "Kind":
        """Settings that are small enough for a test, a picture or a page."""
        return cls.model_validate({})

    @classmethod
    def declare(cls) -> dict[str, Any]:
        """What the kind says of itself, as plain data in both languages."""
        return {
            "kind": cls.word(),
            "title": by_language(cls.title),
            "summary": by_language(cls.summary),
            "paper": cls.paper,
        }


@dataclass(frozen=True)
class KindOr:
    """Tells pydantic the kind of a choice; that of a mapping without `kind` is the usual one."""

    usual: str

    @property
    def __name__(self) -> str:
        """What pydantic calls it in its errors."""
        return "kind"

    def __call__(self, part: Any) -> Any:
        if isinstance(part, dict):
            return part.get("kind", self.usual)
        return getattr(part, "kind", None)


KindType = TypeVar("KindType", bound=Kind)


def name_kinds(base: type[KindType], setting: str, fits: Callable[[KindType], bool]) -> Words:
    """`attention.kind=full or fused`: the kinds of Headwise under `base` that fit with their
    defaults.
    """
    own = [kind for kind in base.__subclasses__() if kind.__module__.startswith("headwise.")]
    able = sorted(kind.word() for kind in own if fits(kind.model_validate({})))
    return (
        f"{setting}.kind={join_words(able, ' or ')}",
        f"{setting}.kind={join_words(able, ' 或 ', '、')}",
    )


def by_language(words: Words) -> dict[str, str]:
    """Plain data for those who choose the language later."""
    return {"en": words[0], "zh": words[1]}


def join_words(words: Iterable[str], last: str, between: str = ", ") -> str:
    """a, b or c."""
    *first, end = words
    return f"{between.join(first)}{last}{end}" if first else end
