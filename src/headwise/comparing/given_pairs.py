"""Checks that a comparison of translators was given both of its files or none.

Nothing here loads torch. Tested with the commands that compare translators.
"""

from pathlib import Path

from headwise.errors import UsageError


def check_both_given(source: Path | None, reference: Path | None) -> None:
    """Refuse a source without references and references without their source."""
    if (source is None) == (reference is None):
        return
    given, missing = ("--source", "--reference")[:: 1 if reference is None else -1]
    raise UsageError(
        f"{given} was given without {missing}; both are needed, line by line, or neither: then the "
        "test set of the first model's recipe is taken",
        f"给出了 {given} 却没有 {missing}；两者须逐行对应、一起给出，或都不给："
        "那时使用第一个模型配方中的测试集",
    )
