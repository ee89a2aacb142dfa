"""The work behind `headwise memory build`, `add` and `tune`: a finished model reads text once, and
its states are stored or measured.

    model, text  →  blocks of lines with keys and tokens (MemoryReader)  →  shards (EntryWriter)

What a model is and how it reads is known to the reader of its task (memory_reader.py).
Tested: interrupted and continued = in one go, for both tasks; every refusal.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from headwise.errors import DataError
from headwise.language import say
from headwise.neighbours.search import NearestSearch
from headwise.neighbours.store import NeighbourStore, StoredModel, StoreHeader
from headwise.neighbours.tuning import MOST_NEIGHBOURS, Tuning, tune
from headwise.neighbours.writing import EntryWriter, write_tuning
from headwise.tasks.accepted_models import task_of_bundle
from headwise.tasks.events import Events, Silence
from headwise.tasks.memory_models import MEMORY_MODELS
from headwise.tasks.memory_reader import MemoryReader, fingerprint_of

TUNED_PREDICTIONS = 20_000
"""Predictions of the validation text that settings are tuned on, by default."""


def open_reader(model: Path) -> tuple[MemoryReader, Path, str]:
    """The reader of a finished model, its bundle and its task."""
    bundle = MEMORY_MODELS.find(model)
    task = str(task_of_bundle(bundle))
    if task == "translation":
        from headwise.tasks.translation.pair_reader import PairReader

        return PairReader(bundle), bundle, task
    from headwise.tasks.language.memory import TextReader

    return TextReader(bundle), bundle, task


def build(
    model: Path,
    output: Path,
    texts: Sequence[str],
    *,
    key_type: str = "float16",
    events: Events | None = None,
) -> StoreHeader:
    """A store of all states of the model over the texts; an interrupted build goes on."""
    reader, bundle, task = open_reader(model)
    stored = StoredModel(fingerprint_of(bundle), task, reader.key, reader.dim, key_type, str(model))
    total = reader.count(texts)
    writer = EntryWriter.begin(output, stored, {"texts": list(texts), "lines": total})
    return _fill(writer, reader, texts, total, events or Silence())


def add(
    store: Path, texts: Sequence[str], *, model: Path | None = None, events: Events | None = None
) -> StoreHeader:
    """The same store with the states over more texts."""
    own = EntryWriter.read(store)
    reader, bundle, task = open_reader(model or Path(own.path))
    stored = StoredModel(
        fingerprint_of(bundle), task, reader.key, reader.dim, own.key_type, own.path
    )
    total = reader.count(texts)
    writer = EntryWriter.extend(store, stored, {"texts": list(texts), "lines": total})
    return _fill(writer, reader, texts, total, events or Silence())


def _fill(
    writer: EntryWriter, reader: MemoryReader, texts: Sequence[str], total: int, events: Events
) -> StoreHeader:
    before, read = writer.header.num_entries, writer.num_read
    if read:
        events.note(
            say(
                f"going on after line {read:,}: {before:,} entries are stored",
                f"从第 {read:,} 行之后继续：已存 {before:,} 条",
            )
        )
    label = say("lines read", "已读行数")
    for block in reader.read(texts, skip=read):
        read = block.read
        writer.add(block.lines, read=read)
        events.count(label, read, total)
    header = writer.finish(read=read)
    if not header.num_entries:
        raise DataError(
            f"no line of {', '.join(texts)} can be stored; give text with at least one line that "
            "the model can read",
            f"{'、'.join(texts)} 中没有可存储的行；请给出至少一行模型可读的文本",
        )
    return header


def tune_store(
    store: Path,
    texts: Sequence[str],
    *,
    model: Path | None = None,
    most: int = TUNED_PREDICTIONS,
    events: Events | None = None,
) -> Tuning:
    """Choose settings on validation text and write them into the store."""
    opened = NeighbourStore.open(store)
    reader, bundle, task = open_reader(model or Path(opened.header.model.path))
    opened.check_model(fingerprint_of(bundle), task, model=bundle)
    reader.count(texts)
    parts, count = [], 0
    for part in reader.predict(texts):
        parts.append(part)
        count += len(part.tokens)
        if count >= most:
            break
    if not count:
        raise DataError(
            f"{', '.join(texts)} has no line to tune on; give validation text",
            f"{'、'.join(texts)} 中没有可用于调节的行；请给出验证文本",
        )
    scores, tokens, keys = (
        torch.cat([getattr(part, name) for part in parts])[:most]
        for name in ("scores", "tokens", "keys")
    )
    found = NearestSearch(opened).find(keys, MOST_NEIGHBOURS)
    tuning = tune(scores, tokens, found)
    measured = {name: value for name, value in tuning.as_dict().items() if name != "mixing"}
    write_tuning(store, tuning.mixing, {**measured, "texts": list(texts)})
    return tuning
