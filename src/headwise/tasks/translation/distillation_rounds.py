"""Translates the missing shards of a distilled corpus, one for each process at a time.

In round r process p of n translates the missing shard r·n + p, saves it and waits for the others.
So all processes stop together, progress is that of all, and any number of them can go on. A signal
ends the work at once: only the shards that were being translated are lost.

Tested with one and two processes, and by interrupting at random moments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.errors import TrainingStopped
from headwise.language import say
from headwise.tasks.events import Events
from headwise.tasks.translation.distillation_search import Distiller
from headwise.tasks.translation.distillation_shards import WorkDirectory
from headwise.tasks.translation.distillation_sources import (
    Corpora,
    Sources,
    num_shards,
    shards_of,
)
from headwise.training.process_group import Processes
from headwise.training.signals import Interrupted, StopRequest, name_signal

TRANSLATING = ("sentences translated", "已译句数")


@dataclass(frozen=True)
class Rounds:
    """What has to be translated, and who does it."""

    processes: Processes
    watcher: Events
    sources: Sources
    shard: int
    """Sentences of a shard."""

    @property
    def total(self) -> int:
        return num_shards(self.sources.sentences, self.shard)

    def run(
        self, corpora: Corpora, missing: Sequence[int], work: WorkDirectory, distiller: Distiller
    ) -> None:
        """Translate and save every missing shard."""
        group = self.processes
        blocks = shards_of(corpora, self.shard, missing[group.number :: group.count])
        rounds = [missing[at : at + group.count] for at in range(0, len(missing), group.count)]
        left, done, saved = self._count(missing), 0, self.total - len(missing)
        self._tell_start(len(missing))
        with StopRequest() as stop:
            try:
                with stop.interruptible():
                    for turn, here in enumerate(rounds):
                        if stop.signal_number is not None:  # it came before this block
                            raise Interrupted
                        if group.number < len(here):
                            number, lines = next(blocks)
                            work.write(number, *distiller.translate(lines, shard=number))
                        group.greatest(turn)  # every process has saved its shard of this round
                        done, saved = done + self._count(here), saved + len(here)
                        self.watcher.count(say(*TRANSLATING), done, left)
            except Interrupted:
                raise self._stopped(stop.signal_number or 0, saved) from None

    def _count(self, shards: Sequence[int]) -> int:
        """Sentences in these shards; the last one may be smaller."""
        return sum(min(self.shard, self.sources.sentences - self.shard * one) for one in shards)

    def _tell_start(self, num_missing: int) -> None:
        sentences = self.sources.sentences
        if num_missing < self.total:
            done = self.total - num_missing
            self.watcher.note(
                say(
                    f"going on: {done:,} of {self.total:,} shards are translated already",
                    f"继续：{self.total:,} 个分片中已译 {done:,} 个",
                )
            )
            return
        unusable = self.sources.unusable
        left_out = ("", "")
        if unusable:
            left_out = (
                f"; {unusable:,} lines cannot be translated",
                f"；另有 {unusable:,} 行无法翻译",
            )
        self.watcher.note(
            say(
                f"{sentences:,} sentences in {self.total:,} shards{left_out[0]}",
                f"{sentences:,} 句，分为 {self.total:,} 个分片{left_out[1]}",
            )
        )

    def _stopped(self, number: int, saved: int) -> TrainingStopped:
        name = name_signal(number)
        return TrainingStopped(
            f"stopped by {name} with {saved:,} of {self.total:,} shards translated",
            f"收到 {name} 停止，{self.total:,} 个分片中已译 {saved:,} 个",
            signal_number=number,
            saved=True,
        )
