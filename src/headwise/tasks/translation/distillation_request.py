"""`DistillationRequest`: what `headwise distil` is asked to make, with a check of its options.

Nothing here loads torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwise.data.pairs.sealed_corpus import PREFIX
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.models.inference import Precision
    from headwise.training.precision import Device

Mode = Literal["best", "closest", "sampled"]
SHARD_SENTENCES = 1_000
"""Sentences that are translated before they are saved. They are decoded together, sorted by length:
more of them waste less on padding, fewer lose less when the work is interrupted."""


@dataclass(frozen=True)
class DistillationRequest:
    """A teacher, the sentences it translates, and which of its translations are kept."""

    teacher: Path
    output: Path
    recipe: str | None = None
    """Whose data.train is translated; None: the teacher's own."""
    overrides: tuple[str, ...] = ()
    """Changes of that recipe."""
    sources: tuple[Path, ...] = ()
    """Files of sentences in place of a recipe's data."""
    references: tuple[Path, ...] = ()
    """A translation of each of these files, line by line."""
    mode: Mode = "best"
    keep: int = 1
    """Translations kept of each sentence."""
    drop_worst: float = 0.0
    """Share of each shard's translations that is left out, the least probable ones."""
    noise: bool = False
    """Whether words of the translations are left out, replaced and moved."""
    decoding: tuple[str, ...] = ()
    """Changes of the teacher's decoding, such as `size=8`."""
    shard: int = SHARD_SENTENCES
    device: "Device" = "auto"
    precision: "Precision" = "auto"

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.sources and self.recipe is not None:
            raise UsageError(
                "--data and --source were both given; give the recipe whose training sources are "
                "translated, or files of sentences, one of them",
                "同时给出了 --data 与 --source；请只给其一：要翻译其训练源文的配方，或句子文件",
            )
        if self.references and len(self.references) != len(self.sources):
            raise UsageError(
                f"--reference names {len(self.references)} file(s), --source {len(self.sources)}; "
                "give one reference for each source, in the same order",
                f"--reference 给出 {len(self.references)} 个文件，--source 给出 "
                f"{len(self.sources)} 个；请按相同顺序为每个源文件给出一个参考文件",
            )
        if not 0 <= self.drop_worst < 1:
            raise UsageError(
                f"--drop-worst is {self.drop_worst:g}; give a share from 0 to below 1, such as 0.1",
                f"--drop-worst 为 {self.drop_worst:g}；请给 0 到 1（不含 1）之间的比例，例如 0.1",
            )
        if self.mode == "closest" and self.sources and not self.references:
            raise UsageError(
                "--mode closest keeps what is closest to a reference, and there is none; give "
                "--reference FILE, or use --mode best",
                "--mode closest 保留最接近参考译文的候选，却没有参考译文；"
                "请给出 --reference FILE，或使用 --mode best",
            )


@dataclass(frozen=True)
class DistilledCorpus:
    """A finished corpus."""

    directory: Path
    description: Mapping[str, Any]
    """The content of `distilled.json`."""

    @property
    def prefix(self) -> Path:
        """What a recipe gives as data.train."""
        return self.directory / PREFIX

    def as_dict(self) -> dict[str, Any]:
        return {"corpus": str(self.prefix), **self.description}
