"""The unfinished distilled corpus on disk: finished shards beside the output, until all are there.

    distilled.part/  job.json   00000/  00001/  …   each: source.txt target.txt counts.json MANIFEST
    distilled/       train.en  train.de  distilled.json  MANIFEST.json      only when complete

A shard appears by one rename and carries checksums, so a kill loses only the shard that was being
translated, and damage is noticed: such a shard is translated again. `job.json` has everything that
the text depends on (teacher, sources, search, filters). Other work is not continued in its place.

Tested by killing the process at random moments, flipping bytes, and changing each entry of the job.
"""

import contextlib
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from headwise.data.pairs.sealed_corpus import (
    DESCRIPTION,
    KIND,
    PREFIX,
    check_sealed_corpus,
    read_description,
)
from headwise.errors import CheckpointError, UsageError
from headwise.language import say
from headwise.storage import (
    MANIFEST,
    is_leftover,
    publish_directory,
    read_json,
    read_sealed_json,
    refuse_sealed,
    remove_directory,
    remove_leftovers,
    verify_directory,
    write_json,
    write_sealed_json,
)
from headwise.tasks.translation.distillation_search import Distilled
from headwise.training.run_lock import release_lock, take_lock

logger = logging.getLogger(__name__)

SHARD_KIND = "distilled shard"
JOB, COUNTS = "job.json", "counts.json"
PART = ".part"
SOURCE, TARGET, REFERENCE = "source.txt", "target.txt", "reference.txt"
_LOCK = ".lock"
_WRITTEN = re.compile(rf"{re.escape(JOB)}|\d{{5,}}")
"""What is written into the directory under a temporary name first."""

Job = Mapping[str, Any]


class Shard(NamedTuple):
    """A finished shard."""

    pairs: list[Distilled]
    dropped: Counter[str]


def part_of_output(output: Path) -> Path:
    """Where the shards of an output are kept until it is complete."""
    return output.with_name(output.name + PART)


def check_output(output: Path) -> None:
    """Refuse an output that holds something other than a distilled corpus."""
    if output.name in ("", ".."):
        raise UsageError(
            f"{output} cannot be an --output, because the shards are kept beside it under a like "
            "name; give a directory by its name",
            f"{output} 不能作为 --output，因为分片要以相近的名字存放在其旁边；请给出目录名",
        )
    refuse_sealed(output.absolute().parent)
    if _is_free(output) or (output / DESCRIPTION).is_file():
        return
    raise UsageError(
        f"{output} exists already and is not a distilled corpus; choose another --output or "
        "remove it",
        f"{output} 已存在，且不是蒸馏语料；请换一个 --output 或先删除",
    )


def find_finished(output: Path, job: Job) -> dict[str, Any] | None:
    """The description of the output if the same work has been finished there; an error if it is
    another corpus, None if there is none.
    """
    if _is_free(output):
        return None
    check_sealed_corpus(output / PREFIX)
    description = read_description(output)
    if other := _differences(description, job):
        raise UsageError(
            f"{output} holds another distilled corpus ({other}); choose another --output or "
            "remove it",
            f"{output} 中是另一份蒸馏语料（{other}）；请换一个 --output 或先删除",
        )
    return description


def _is_free(output: Path) -> bool:
    return not output.exists() or (output.is_dir() and not any(output.iterdir()))


LATER: Job = {"drop_worst": 0.0, "noise": False}
"""Entries that older corpora do not have, with what they mean there."""
ENTRIES = {
    "teacher": ("another teacher", "教师模型不同"),
    "source": ("other sentences", "句子不同"),
    "corpora": ("other corpora", "语料不同"),
}


def _differences(found: Job, wanted: Job) -> str:
    """What differs between two jobs; single values with both of them."""
    told = []
    for name in wanted:
        before, now = found.get(name, LATER.get(name)), wanted[name]
        if before == now:
            continue
        if name in ENTRIES:
            told.append(say(*ENTRIES[name]))
        elif isinstance(before, Mapping) and isinstance(now, Mapping):
            told += [
                f"{name}.{key}: {before.get(key)} → {now.get(key)}"
                for key in {**before, **now}
                if before.get(key) != now.get(key)
            ]
        else:
            told.append(f"{name}: {before} → {now}")
    return ", ".join(told)


class WorkDirectory:
    """The shards of one output, held by the first process while it is open."""

    def __init__(self, output: Path) -> None:
        self.output, self.path = output, part_of_output(output)
        self._lock: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        release_lock(self._lock)

    def begin(self, job: Job, num_shards: int) -> list[int]:
        """Take the directory, compare its job, and return the numbers of the missing shards."""
        if self.path.exists() and not (self.path / JOB).exists() and not self._is_empty():
            raise UsageError(
                f"{self.path} exists already and holds no unfinished distillation; choose another "
                "--output or remove it",
                f"{self.path} 已存在，且不是未完成的蒸馏；请换一个 --output 或先删除",
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self._take()
        remove_leftovers(self.path, _WRITTEN)
        if (self.path / JOB).exists():
            needed = tuple(name for name in job if name not in LATER)
            found = read_sealed_json(self.path / JOB, needed, remedy=_start_again(self.path))
            if other := _differences(found, job):
                raise UsageError(
                    f"{self.path} holds an unfinished distillation of other work ({other}); "
                    "choose another --output, or remove it to start again",
                    f"{self.path} 中有未完成的另一次蒸馏（{other}）；"
                    "请换一个 --output，或删除它重新开始",
                )
        else:
            write_sealed_json(self.path / JOB, job)
        return [number for number in range(num_shards) if not self._is_whole(number)]

    def _is_empty(self) -> bool:
        return self.path.is_dir() and all(
            child.name == _LOCK or is_leftover(child.name, _WRITTEN)
            for child in self.path.iterdir()
        )

    def _take(self) -> None:
        try:
            self._lock = take_lock(self.path)
        except UsageError as error:
            raise UsageError(
                f"another process is distilling into {self.output}; wait for it, stop it, or "
                "choose another --output",
                f"另一个进程正在向 {self.output} 蒸馏；请等待或停止它，或换一个 --output",
            ) from error

    def _is_whole(self, number: int) -> bool:
        if not self._shard(number).is_dir():
            return False
        try:
            verify_directory(self._shard(number), kind=SHARD_KIND)
        except CheckpointError as error:
            logger.warning(
                "%s",
                say(f"{error}; the shard is translated again", f"{error}；将重新翻译该分片"),
            )
            return False
        return True

    def _shard(self, number: int) -> Path:
        return self.path / f"{number:05}"

    def write(self, number: int, pairs: Sequence[Distilled], dropped: Mapping[str, int]) -> None:
        """Publish a finished shard."""
        with publish_directory(self._shard(number), kind=SHARD_KIND, replace=True) as folder:
            _write_lines(folder / SOURCE, [pair.source for pair in pairs])
            _write_lines(folder / TARGET, [pair.target for pair in pairs])
            references = [pair.reference for pair in pairs if pair.reference is not None]
            if references:
                _write_lines(folder / REFERENCE, references)
            write_json(folder / COUNTS, dict(sorted(dropped.items())))

    def read(self, number: int) -> Shard:
        """A finished shard, after its checksums."""
        folder = self._shard(number)
        verify_directory(folder, kind=SHARD_KIND)
        sources, targets = _read_lines(folder / SOURCE), _read_lines(folder / TARGET)
        references: list[Any] = [None] * len(sources)
        if (folder / REFERENCE).is_file():
            references = _read_lines(folder / REFERENCE)
        pairs = map(Distilled, sources, targets, references)
        return Shard(list(pairs), Counter(read_json(folder / COUNTS)))

    def shards(self, num_shards: int) -> Iterator[Shard]:
        return (self.read(number) for number in range(num_shards))

    def publish(
        self, num_shards: int, languages: tuple[str, str], description: Mapping[str, Any]
    ) -> None:
        """Join the shards to the corpus, and remove them."""
        if self.output.is_dir():
            self.output.rmdir()  # it was empty
        with publish_directory(self.output, kind=KIND) as folder:
            paths = [folder / f"{PREFIX}.{language}" for language in languages]
            with (
                paths[0].open("w", encoding="utf-8", newline="\n") as source,
                paths[1].open("w", encoding="utf-8", newline="\n") as target,
            ):
                for shard in self.shards(num_shards):
                    source.writelines(f"{pair.source}\n" for pair in shard.pairs)
                    target.writelines(f"{pair.target}\n" for pair in shard.pairs)
            write_sealed_json(folder / DESCRIPTION, description)
        self.remove()

    def remove_finished(self, job: Job) -> None:
        """Remove what a kill left after the corpus was published; whatever is not surely the rest
        of this job stays.
        """
        if not self.path.exists():
            return
        if self._is_rest_of(job):
            with contextlib.suppress(UsageError):  # another process works in it
                self._take()
                self.remove()
        if self.path.exists():
            logger.warning(
                "%s",
                say(
                    f"{self.path} is not needed for this corpus, and holds more than the rest of "
                    "this distillation: it stays as it is",
                    f"{self.path} 与这份语料无关，其中不只是本次蒸馏的剩余文件：保持原样",
                ),
            )

    def _is_rest_of(self, job: Job) -> bool:
        if self._is_empty():
            return True
        try:
            found = read_sealed_json(self.path / JOB, tuple(job), remedy=_start_again(self.path))
        except (CheckpointError, OSError):
            return False
        return not _differences(found, job)

    def remove(self) -> None:
        """Remove what this class writes, and the directory if nothing else is in it; the lock is
        held. The job goes last, because only with it the rest is known to be ours.
        """
        assert self._lock is not None or os.name != "posix"
        remove_leftovers(self.path, _WRITTEN)
        for child in self.path.iterdir():
            if re.fullmatch(r"\d{5,}", child.name) and (child / MANIFEST).is_file():
                remove_directory(child)
        for name in (JOB, _LOCK):
            (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else put something there
            self.path.rmdir()


def _start_again(path: Path) -> tuple[str, str]:
    return f"move {path} away to start again", f"请移走 {path} 后重新开始"


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _read_lines(path: Path) -> list[str]:
    """Lines ended by newlines only: a sentence may hold other line separators of Unicode."""
    text = path.read_bytes().decode("utf-8")
    return text.split("\n")[:-1]


def describe_json(value: Any) -> Any:
    """A value as JSON reads it back, so that it equals what a file says. A byte of a path that is
    not UTF-8 is named by its number, because a file of JSON cannot hold it.
    """
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(re.sub("[\ud800-\udfff]", lambda one: rf"\\x{ord(one[0]) & 255:02x}", text))
