"""Reads the sentences on which translators are compared: two files that the user names, or the test
set of the first model's recipe.
"""

from pathlib import Path

from headwise.data.pairs.choices import corpus_name
from headwise.data.pairs.parallel_files import Pair
from headwise.data.pairs.preparation import read_part
from headwise.errors import DataError, UsageError
from headwise.tasks.text_input import read_text_lines
from headwise.tasks.translation.recipe import TranslationRecipe


def read_test_pairs(
    source: Path | None, reference: Path | None, *, first: TranslationRecipe, model: Path
) -> tuple[list[Pair], str]:
    """The test sentences and where they come from; `first` is the recipe of `model`."""
    if source is not None and reference is not None:
        sources = list(read_text_lines(source))
        references = list(read_text_lines(reference))
        if len(sources) != len(references):
            raise DataError(
                f"has {len(references):,} lines, but {source} has {len(sources):,}; source "
                "and reference must match line by line",
                f"有 {len(references):,} 行，而 {source} 有 {len(sources):,} 行；"
                "源文与参考译文必须逐行对应",
                file=reference,
            )
        pairs = [
            Pair(*both, str(source), line)
            for line, both in enumerate(zip(sources, references, strict=True), start=1)
        ]
        return pairs, str(source)
    data = first.data
    if not data.test:
        raise UsageError(
            f"the recipe of {model} has no test set (data.test); give one: --source "
            f"test.{data.source} --reference test.{data.target}",
            f"{model} 的配方没有测试集（data.test）；请给出：--source "
            f"test.{data.source} --reference test.{data.target}",
        )
    return list(read_part(data, "test")), ", ".join(map(corpus_name, data.test))
