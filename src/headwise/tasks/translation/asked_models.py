"""Loads the other models that a search asks while it translates, each of them once.

    judge            a translator that chooses among candidates (judge.py)
    language model   takes part in the search of a parallel translator (fused_language_model.py)
    memory           stored examples that vote for the next word (memory.py)

Settings name them by their paths. Nothing is loaded before a search needs it. Tested with each of
the three.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from headwise.neighbours.search import NearestSearch
from headwise.neighbours.settings import MemorySettings
from headwise.tasks.memory_reader import fingerprint_of
from headwise.tasks.translation.fused_language_model import FusedLanguageModel, load_fused
from headwise.tasks.translation.judge import TranslatorJudge, load_judge
from headwise.tasks.translation.memory import TranslatorMemory, open_memory

if TYPE_CHECKING:
    from headwise.tasks.translation.translator import Translator


class AskedModels:
    """The models that the searches of one translator ask."""

    def __init__(self, translator: "Translator") -> None:
        self._translator = translator
        self._judges: dict[str, TranslatorJudge] = {}
        self._language_models: dict[str, FusedLanguageModel] = {}
        self._searches: dict[str, NearestSearch] = {}
        """Of memories, by store: requests to a server ask one store with many settings."""

    def judge(self, path: str) -> TranslatorJudge:
        if path not in self._judges:
            translator = self._translator
            device = translator.model.output.weight.device
            self._judges[path] = load_judge(
                path, translator.recipe, translator.tokenizers, device=device
            )
        return self._judges[path]

    def language_model(self, path: str) -> FusedLanguageModel:
        if path not in self._language_models:
            self._language_models[path] = load_fused(path, self._translator.tokenizers.target)
        return self._language_models[path]

    @cached_property
    def fingerprint(self) -> str:
        """By which a store knows the translator; a worker process reads it before the copy of the
        bundle that it was loaded from is removed."""
        return fingerprint_of(self._translator.bundle.directory)

    def memory(self, asked: MemorySettings) -> TranslatorMemory:
        if asked.store not in self._searches:
            self._searches[asked.store] = open_memory(self._translator, asked)
        return TranslatorMemory(self._translator, self._searches[asked.store], asked)
