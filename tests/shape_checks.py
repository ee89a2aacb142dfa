"""Checks the shapes and types in the signatures of some packages, under pytest only.

jaxtyping's import hook decorates every function with `jaxtyping.jaxtyped`, which checks each call
with beartype. Tests call these functions millions of times with few different shapes, and a check
depends on shapes and types alone, so its decorator is replaced by one that checks each combination
of them once.
"""

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import is_dataclass
from functools import cache, wraps
from typing import Any

import jaxtyping
from beartype import beartype
from torch import Tensor

_of_jaxtyping: Callable[..., Any] = jaxtyping.jaxtyped


def check_shapes_of(packages: Sequence[str]) -> None:
    """Must be called before the packages are first imported."""
    jaxtyping.jaxtyped = _checked  # type: ignore[assignment]
    jaxtyping.install_import_hook(list(packages), "beartype.beartype")


def _checked(*arguments: Any, typechecker: Any = None) -> Any:
    if typechecker is None:
        return _of_jaxtyping(*arguments)
    of_others = _of_jaxtyping(typechecker=typechecker)

    def check(found: Any) -> Any:
        if inspect.isfunction(found):
            return _check(found)
        if inspect.isclass(found):
            if is_dataclass(found) and "__init__" in vars(found):
                found.__init__ = _check(found.__init__)  # type: ignore[misc]
            return found
        return of_others(found)

    return check


def _check(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which refuses arguments and results that its signature does not allow."""
    if not function.__annotations__:
        return function
    seen: dict[Hashable, set[Hashable]] = {}
    results: list[Any] = []

    @wraps(function)
    def take_result(*_: Any, **__: Any) -> Any:
        return results.pop()

    checked, checked_result = _on_demand(function), _on_demand(take_result)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = tuple([_form_of(value) for value in args])
        if kwargs:
            given += (*kwargs, *map(_form_of, kwargs.values()))
        allowed = seen.get(given)
        if allowed is None:
            with _of_jaxtyping("context"):
                result = checked()(*args, **kwargs)
            seen.setdefault(given, set()).add(_form_of(result))
            return result
        result = function(*args, **kwargs)
        if _form_of(result) not in allowed:
            results.append(result)
            with _of_jaxtyping("context"):
                checked_result()(*args, **kwargs)
            allowed.add(_form_of(result))
        return result

    return call


def _on_demand(function: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    """Functions inside functions are made often and seldom called, and beartype takes a while."""
    return cache(lambda: beartype(function))


def _form_of(value: Any) -> Hashable:
    """What decides whether a signature allows a value."""
    kind = type(value)
    form = _FORMS.get(kind)
    if form is None:
        form = _FORMS[kind] = next(
            (form for base, form in _FORM_OF_BASE.items() if issubclass(kind, base)), type
        )
    return kind if form is type else form(value)


_FORM_OF_BASE: dict[type, Callable[[Any], Hashable]] = {
    Tensor: lambda value: (type(value), value.shape, value.dtype),
    tuple: lambda value: (type(value), *map(_form_of, value)),
    list: lambda value: (list, _form_of(value[0]) if value else None),
    str: lambda value: value,
}
_FORMS: dict[type, Callable[[Any], Hashable]] = {}
