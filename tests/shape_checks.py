"""Checks the shapes and types in the signatures of some packages, under pytest only.

jaxtyping's import hook decorates every function with `jaxtyping.jaxtyped`, which checks each call
with beartype. Tests call these functions millions of times with few different shapes, and a check
depends on shapes and types alone, so its decorator is replaced by one that checks each combination
of them once.
"""

import inspect
from collections.abc import Callable, Hashable, Sequence
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
    of_classes = _of_jaxtyping(typechecker=typechecker)
    return lambda found: _check(found) if inspect.isfunction(found) else of_classes(found)


def _check(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which refuses arguments and results that its signature does not allow."""
    seen: set[Hashable] = set()
    results: list[Any] = []

    @wraps(function)
    def take_result(*_: Any, **__: Any) -> Any:
        return results.pop()

    checked, checked_result = _on_demand(function), _on_demand(take_result)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*map(_form_of, args), *kwargs, *map(_form_of, kwargs.values()))
        if given not in seen:
            with _of_jaxtyping("context"):
                result = checked()(*args, **kwargs)
            seen.update((given, (given, _form_of(result))))
            return result
        result = function(*args, **kwargs)
        both = (given, _form_of(result))
        if both not in seen:
            results.append(result)
            with _of_jaxtyping("context"):
                checked_result()(*args, **kwargs)
            seen.add(both)
        return result

    return call


def _on_demand(function: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    """Functions inside functions are made often and seldom called, and beartype takes a while."""
    return cache(lambda: beartype(function))


def _form_of(value: Any) -> Hashable:
    """What decides whether a signature allows a value."""
    if isinstance(value, Tensor):
        return type(value), value.shape, value.dtype
    if isinstance(value, tuple):
        return type(value), tuple(map(_form_of, value))
    if isinstance(value, list):
        return list, _form_of(value[0]) if value else None
    return value if isinstance(value, str) else type(value)
