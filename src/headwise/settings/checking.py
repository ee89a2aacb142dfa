"""The base class of settings, and the error that lists every problem of a recipe with its path.

Tested against: recipes with several mistakes, each of which must be reported in both languages.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import pydantic

from headwise.errors import SettingsError
from headwise.language import say
from headwise.settings.problems import Problem, describe_problems


class Settings(pydantic.BaseModel):
    """Base of every settings type: frozen, known names only, documented by field docstrings."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _read_parts(cls, data: Any) -> Any:
        """`text: {size: 500}` keeps the default kind, so that one value can be changed alone.

        A boolean is not accepted as a number.
        """
        if not isinstance(data, Mapping):
            return data
        filled = dict(data)
        for name, field in cls.model_fields.items():
            part, kind = data.get(name), getattr(field.default, "kind", None)
            if isinstance(part, Mapping) and "kind" not in part and isinstance(kind, str):
                filled[name] = {"kind": kind, **part}
            if isinstance(part, bool) and _is_number(field.annotation):
                filled[name] = str(
                    part
                ).lower()  # pydantic would read `left: true` as 1; a word it refuses
        return filled


def _is_number(annotation: Any) -> bool:
    members = get_args(annotation) or (annotation,)
    return bool not in members and (int in members or float in members)


MAX_SHOWN = 30
SettingsType = TypeVar("SettingsType", bound=pydantic.BaseModel)


def check_settings(
    kind: type[SettingsType],
    data: Mapping[str, Any],
    *,
    file: Path | str | None = None,
    before: Mapping[str, Any] | None = None,
) -> SettingsType:
    """A validated settings value, or one error that lists every problem with its dotted path.

    A validator raises SettingsError(en, zh) for messages in both languages. `before` is the content
    of the file if `data` was changed by overrides: problems that the file does not have are
    reported as mistakes in the overrides.
    """
    try:
        return kind.model_validate(data)
    except pydantic.ValidationError as error:
        problems = describe_problems(kind, error)
        if before is not None:
            file, problems = _attribute(problems, _problems_of(kind, before), file)
        count, shown = len(problems), problems[:MAX_SHOWN]
        more = (
            ("", "")
            if count <= MAX_SHOWN
            else (f"\n  … and {count - MAX_SHOWN} more", f"\n  ……另有 {count - MAX_SHOWN} 处")
        )
        raise SettingsError(
            f"{count} problem{'s' * (count > 1)} in the settings:\n"
            + "\n".join(f"  - {one.en}" for one in shown)
            + more[0],
            f"设置有 {count} 处问题：\n" + "\n".join(f"  - {one.zh}" for one in shown) + more[1],
            file=file,
        ) from error


def overrides_name() -> str:
    """What a message names instead of a file if the mistake is in an override."""
    return say("overrides (key.path=value)", "覆盖项（key.path=value）")


def _problems_of(kind: type[pydantic.BaseModel], data: Mapping[str, Any]) -> set[str]:
    try:
        kind.model_validate(data)
    except pydantic.ValidationError as error:
        return {problem.en for problem in describe_problems(kind, error)}
    return set()


def _attribute(
    problems: list[Problem], old: set[str], file: Path | str | None
) -> tuple[Path | str | None, list[Problem]]:
    """Where the problems are: in the file, in the overrides, or each with its own note."""
    if not any(problem.en in old for problem in problems):
        return overrides_name(), problems
    mark = Problem("in the overrides: ", "覆盖项：")
    return file, [
        one if one.en in old else Problem(mark.en + one.en, mark.zh + one.zh) for one in problems
    ]
