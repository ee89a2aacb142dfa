"""Reads lists of whole numbers in options, such as `--lengths 512,1024`.

Tested through the commands that take them.
"""

from headwise.errors import UsageError


def read_numbers(text: str, option: str) -> tuple[int, ...]:
    """`1,2,3` as a tuple of numbers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(
            f"{option} {text} is not a list of whole numbers; write them with commas between: "
            f"{option} 1,2,3",
            f"{option} {text} 不是整数列表；请用逗号分隔：{option} 1,2,3",
        ) from error
