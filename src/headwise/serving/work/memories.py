"""Gives memories to the translators of a server: stores of neighbours, which take part in what they
write (`headwise serve MODEL --memory STORE`).

A store names its model by the fingerprint of weights and tokenizers, so nobody has to say which
store is for which model: each goes to the translators that it was built with. All files are read
and compared with their checksums here, before the server listens. Requests then only choose how
much the memory counts (`api/memory_options.py`).

Tested: one model and several; stores of other models, damaged ones, two for one model.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from headwise.decoding.generation_settings import GenerationSettings
from headwise.errors import UsageError
from headwise.neighbours.settings import MemorySettings
from headwise.neighbours.store import NeighbourStore
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.translation.translator import Translator


def attach_memories(
    models: Mapping[str, LoadedModel], stores: Sequence[str]
) -> dict[str, LoadedModel]:
    """The same models, with the memories that were built with them."""
    found = dict(models)
    translators = [one for one in models.values() if isinstance(one.value, Translator)]
    for path in stores:
        owners = [one for one in translators if _owns(one.value, path)]
        if not owners and len(translators) == 1:
            owners = translators  # opening the store says what is wrong
        if not owners:
            raise UsageError(
                f"--memory {path}: none of the models given is the translator that this store was "
                "built with; give that model, or build a store with one of these: `headwise memory "
                "build`",
                f"--memory {path}：所给模型中没有建立该存储的翻译模型；请给出该模型，"
                "或用其中之一建立：`headwise memory build`",
            )
        for one in owners:
            _refuse_second(found[one.name], path)
            found[one.name] = replace(one, memory=_open(one.value, path))
    return found


def _owns(translator: Translator, path: str) -> bool:
    known = NeighbourStore.open(path).header.model.fingerprint
    return known == translator.asked_models.fingerprint


def _open(translator: Translator, path: str) -> MemorySettings | None:
    """The settings of a memory that the translator's own search can ask."""
    store = str(Path(path).resolve())  # a worker process may have another working directory
    settings: GenerationSettings = translator.settings([f"memory.store={json.dumps(store)}"])
    asked = settings.asked_memory
    if asked is not None:
        translator.asked_models.memory(asked)
    return asked


def _refuse_second(model: LoadedModel, path: str) -> None:
    if model.memory is not None:
        raise UsageError(
            f"--memory {path}: {model.name} has the memory {model.memory.store} already, and one "
            "model asks one; put both texts into one store with `headwise memory add`",
            f"--memory {path}：{model.name} 已有记忆 {model.memory.store}，一个模型只查询一个；"
            "请用 `headwise memory add` 把两份文本放进同一存储",
        )
