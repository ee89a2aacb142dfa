"""The memory of a language model (kNN-LM): reads text into a store, attaches a store to a model.

A model of sentences reads every line by itself. A model of a stream reads `BLOCK_LINES` lines as
one text, because a build goes on at the border of a block after a kill.

    p(w | context) = λ p_kNN(w) + (1 - λ) p_model(w)

Khandelwal et al. 2020, *Generalization through Memorization*.
Tested against: brute force over all entries; the model alone at λ = 0; the text itself as memory.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from headwise.data.shards import as_ragged
from headwise.data.text.text_batches import join_lines
from headwise.errors import UsageError
from headwise.models.state_keys import key_width
from headwise.neighbours.memory import TokenMemory
from headwise.neighbours.settings import MemorySettings
from headwise.neighbours.store import NeighbourStore
from headwise.neighbours.writing import StoredLine
from headwise.tasks.language.bundle import LanguageBundle, load_language_bundle
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_token_model import NeuralTokenModel, ReadPart
from headwise.tasks.memory_reader import Predicted, ReadBlock, fingerprint_of
from headwise.tasks.text_input import read_text_lines
from headwise.text.tokenizer import EOS

BLOCK_LINES = 512


class TextReader:
    """A language model that reads text; lines without a character are left out."""

    def __init__(self, bundle: Path) -> None:
        opened = load_language_bundle(bundle)
        self.model, self.tokenizer = _network_of(opened), opened.tokenizer
        self.key, self.dim = self.model.tap.layer, key_width(self.model.network)

    def count(self, texts: Sequence[str]) -> int:
        return sum(1 for text in texts for _ in read_text_lines(Path(text)))

    def read(self, texts: Sequence[str], *, skip: int) -> Iterator[ReadBlock]:
        for lines, read in self._blocks(texts, skip):
            parts, ids = self._parts([text for _, _, text in lines])
            lengths = [len(one) + 1 for one in ids]
            keys = np.zeros((sum(lengths), self.dim), dtype=np.float32)
            for part in parts:
                counts = part.places >= 0
                assert part.keys is not None, "the tap was made"
                keys[part.places[counts]] = part.keys[torch.from_numpy(counts)].cpu().numpy()
            cut = np.split(keys, np.cumsum(lengths)[:-1])
            stored = [
                StoredLine(file, number, "", text, key, np.array([*one, EOS]))
                for (file, number, text), key, one in zip(lines, cut, ids, strict=True)
            ]
            yield ReadBlock(stored, read)

    def predict(self, texts: Sequence[str]) -> Iterator[Predicted]:
        for lines, _ in self._blocks(texts, 0):
            for part in self._parts([text for _, _, text in lines])[0]:
                assert part.keys is not None, "the tap was made"
                counts = part.places >= 0
                kept = torch.from_numpy(counts)
                scores = torch.from_numpy(self.model.log_probabilities(part))
                yield Predicted(scores[kept], part.targets[kept], part.keys.cpu()[kept])

    def _parts(self, texts: Sequence[str]) -> tuple[Iterator[ReadPart], list[list[int]]]:
        ids = self.tokenizer.encode_batch(texts)
        if self.model.first == EOS:
            return self.model.read_running(join_lines(as_ragged(ids))), ids
        return self.model.read_sentences(ids), ids

    def _blocks(
        self, texts: Sequence[str], skip: int
    ) -> Iterator[tuple[list[tuple[str, int, str]], int]]:
        """(file, line, text) of the lines of each block that are not blank, and lines read."""
        every = (
            (text, number, line)
            for text in texts
            for number, line in enumerate(read_text_lines(Path(text)), start=1)
        )
        rest, read = islice(every, skip, None), skip
        while block := list(islice(rest, BLOCK_LINES)):
            read += len(block)
            lines = [(file, number, line.strip()) for file, number, line in block if line.strip()]
            if lines:
                yield lines, read


def load_with_memory(path: Path | str, settings: MemorySettings) -> LanguageModel:
    """A language model that mixes every prediction with those of stored neighbours."""
    store = NeighbourStore.open(settings.store)
    bundle = load_language_bundle(Path(path))
    network = _network_of(bundle)
    fingerprint = fingerprint_of(bundle.directory)
    store.check_model(fingerprint, "language_modeling", model=path)
    network.remember(TokenMemory.open(store, settings))
    return LanguageModel(bundle.tokenizer, network, settings=bundle.recipe.model)


def _network_of(bundle: LanguageBundle) -> NeuralTokenModel:
    match bundle.model:
        case NeuralTokenModel() as network:
            return network
        case _:
            raise UsageError(
                f"{bundle.directory} counts n-grams and has no state that a memory could compare; "
                "use a neural language model, e.g. `headwise train ptb-lstm`",
                f"{bundle.directory} 是 n 元语法，没有可供记忆比较的状态；请用神经语言模型，例如 "
                "`headwise train ptb-lstm`",
            )
