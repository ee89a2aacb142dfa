"""Computes the vector of a word in its sentence, for each layer of a model (word2vec, ELMo, BERT).

    model    layers                                                            number of layers
    static   word2vec: the same vector in every sentence                       1
    elmo     the character encoder (layer 0), then the LSTM layers             layers + 1
    encoder  the embedding (layer 0), then each block (BERT); for a word of    blocks + 1
             several pieces, their mean

If a sentence is longer than the model's rows, the part around the word is used. Tested: the vector
of a static model is the word's vector; layer 0 does not depend on the sentence, higher layers do;
a batch = one by one.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from headwise.data.labels.word_senses import Occurrence
from headwise.errors import UsageError
from headwise.initialization import initialize
from headwise.models.elmo import ElmoEncoder
from headwise.models.labeller import build_encoder
from headwise.models.sentence_encoder import SentenceEncoder
from headwise.models.vector_space import VectorSpace
from headwise.randomness import torch_generator
from headwise.settings import read_settings_file
from headwise.storage import verify_directory
from headwise.tasks.accepted_models import check_listed, task_of_bundle
from headwise.tasks.arguments import require_path
from headwise.tasks.bundle_form import KIND
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.pretraining.elmo_recipe import ElmoRecipe
from headwise.tasks.pretraining.encoder_start import PREFIX, REQUIRED
from headwise.tasks.pretraining.forms import WORD_READERS
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.recipe import check_recipe
from headwise.tasks.word_vectors.bundle import load_word_vectors
from headwise.text.choices import load_fitting_tokenizers
from headwise.text.tokenizer import BOS, Tokenizer
from headwise.text.word_characters import BEGIN_WORD, END_WORD, letters_of
from headwise.text.word_tokenizer import WordTokenizer
from headwise.training.precision import choose_device
from headwise.weights import put_weights, read_tensors, weights_of

BATCH_TOKENS = 4096


class WordReader(Protocol):
    """What a model can be asked about words in sentences."""

    @property
    def kind(self) -> str: ...

    @property
    def num_layers(self) -> int: ...

    def read(self, occurrences: Sequence[Occurrence]) -> list[np.ndarray]:
        """For each layer the vectors [occurrence, dim]."""
        ...


class StaticReader:
    """One vector a word."""

    kind, num_layers = "static", 1

    def __init__(self, space: VectorSpace) -> None:
        self.space = space

    def read(self, occurrences: Sequence[Occurrence]) -> list[np.ndarray]:
        numbers = [self.space.number_of(one.sentence[one.position]) for one in occurrences]
        return [self.space.vectors[numbers]]


class ElmoWords:
    """ELMo's layers."""

    kind = "elmo"

    def __init__(self, encoder: ElmoEncoder, *, lowercase: bool, longest: int) -> None:
        self.encoder, self.lowercase, self.longest = encoder, lowercase, longest
        self.num_layers = len(encoder.reader.ahead) + 1

    @torch.inference_mode()
    def read(self, occurrences: Sequence[Occurrence]) -> list[np.ndarray]:
        cut = [_cut(one, self.longest - 2) for one in occurrences]
        device = self.encoder.mixture.gain.device
        found = [
            np.zeros((len(cut), self.encoder.dim), dtype=np.float32) for _ in range(self.num_layers)
        ]
        for group in _groups([len(words) + 2 for words, _ in cut]):
            lines = [
                [word.lower() if self.lowercase else word for word in cut[number][0]]
                for number in group
            ]
            spelled = {
                word: number
                for number, word in enumerate(dict.fromkeys(w for line in lines for w in line))
            }
            letters = torch.tensor([*map(letters_of, spelled), BEGIN_WORD, END_WORD], device=device)
            rows = torch.full((len(group), max(map(len, lines)) + 2), len(spelled) + 1)
            rows[:, 0] = len(spelled)
            for row, line in enumerate(lines):
                rows[row, 1 : len(line) + 1] = torch.tensor([spelled[word] for word in line])
            lengths = torch.tensor([len(line) + 2 for line in lines])
            layers = self.encoder.reader(letters, rows.to(device), lengths.to(device))
            places = torch.tensor([cut[number][1] + 1 for number in group])
            for layer, vectors in enumerate(layers):
                found[layer][group] = (
                    vectors[torch.arange(len(group)), places].float().cpu().numpy()
                )
        return found


class EncoderWords:
    """The blocks of an encoder that was pre-trained or fine-tuned."""

    kind = "encoder"

    def __init__(self, encoder: SentenceEncoder, tokenizer: Tokenizer, *, longest: int) -> None:
        self.encoder, self.tokenizer, self.longest = encoder, tokenizer, longest
        self.num_layers = max(1, len(encoder.blocks)) + 1

    @torch.inference_mode()
    def read(self, occurrences: Sequence[Occurrence]) -> list[np.ndarray]:
        table = self.encoder.embedding.table.weight
        rows, spans = zip(*(self._encode(one) for one in occurrences), strict=True)
        found = [
            np.zeros((len(rows), table.shape[1]), dtype=np.float32) for _ in range(self.num_layers)
        ]
        for group in _groups([len(row) for row in rows]):
            width = max(len(rows[number]) for number in group)
            tokens = torch.tensor(
                [rows[number] + [0] * (width - len(rows[number])) for number in group]
            )
            layers = self._layers(tokens.to(table.device))
            for layer, vectors in enumerate(layers):
                for row, number in enumerate(group):
                    first, last = spans[number]
                    found[layer][number] = vectors[row, first:last].float().mean(0).cpu().numpy()
        return found

    def _layers(self, tokens: Tensor) -> list[Tensor]:
        """The rows of the table, what each block but the last gives on, and the encoder's
        answer."""
        between: list[Tensor] = []

        def keep(module: nn.Module, given: object, output: Tensor) -> None:
            between.append(output)

        hooks = [block.register_forward_hook(keep) for block in list(self.encoder.blocks)[:-1]]
        try:
            position = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
            last = self.encoder(tokens, segment=(tokens != 0).long(), position=position)
        finally:
            for hook in hooks:
                hook.remove()
        return [self.encoder.embedding.table(tokens), *between, last]

    def _encode(self, one: Occurrence) -> tuple[list[int], tuple[int, int]]:
        """<s> and the sentence's tokens, cut around the word; where the word's own tokens stand."""
        pieces = self.tokenizer.encode_batch(list(one.sentence))
        before = sum(map(len, pieces[: one.position]))
        own = max(1, min(len(pieces[one.position]), self.longest - 1))
        tokens = [token for piece in pieces for token in piece]
        start = _start(before + own // 2, len(tokens), self.longest - 1)
        first = before - start + 1
        return [BOS, *tokens[start : start + self.longest - 1]], (first, first + own)


def load_word_reader(directory: Path | str, *, untrained: bool = False) -> WordReader:
    """Word vectors, ELMo, or an encoder (BERT, a classifier, a tagger) from its bundle or run.

    `untrained`: the same network with random weights, to see what the sentence gives without
    anything learnt.
    """
    path = WORD_READERS.find(require_path(directory, "directory", "runs/english-elmo"))
    if task_of_bundle(path) == "word_vectors":
        return StaticReader(load_word_vectors(path).space)
    check_listed(verify_directory(path, kind=KIND), path, REQUIRED)
    recipe_file = path / "recipe.yaml"
    recipe = check_recipe(read_settings_file(recipe_file), file=recipe_file)
    assert isinstance(recipe, ElmoRecipe | MaskedRecipe | LabelRecipe), "by its task"
    tokenizer = load_fitting_tokenizers(path / "tokenizer", recipe.text).source
    encoder = build_encoder(recipe.model, vocabulary_size=tokenizer.size)
    file = path / "weights.safetensors"
    if untrained:
        initialize(encoder, torch_generator("untrained"))
    else:
        held = {
            name: tensor for name, tensor in read_tensors(file).items() if name.startswith(PREFIX)
        }
        put_weights(
            weights_of(encoder), {name.removeprefix(PREFIX): held[name] for name in held}, file=file
        )
    encoder = encoder.to(choose_device("auto")).eval()
    longest = recipe.data.row_tokens
    if isinstance(encoder, ElmoEncoder):
        assert isinstance(tokenizer, WordTokenizer), "ELMo reads words"
        return ElmoWords(encoder, lowercase=tokenizer.lowercase, longest=longest)
    if encoder.letters is not None:
        raise UsageError(
            f"{path}: this tagger reads endings beside its words (model.letters); give one "
            "without, or a pre-trained encoder",
            f"{path}：该标注模型除词外还读词尾（model.letters）；请给出不带它的模型，"
            "或预训练的编码器",
        )
    return EncoderWords(encoder, tokenizer, longest=longest)


def _start(place: int, length: int, longest: int) -> int:
    """Where to begin so that at most `longest` words are left, the one at `place` in the middle of
    them.
    """
    return max(0, min(place - longest // 2, length - longest))


def _cut(one: Occurrence, longest: int) -> tuple[tuple[str, ...], int]:
    start = _start(one.position, len(one.sentence), longest)
    return one.sentence[start : start + longest], one.position - start


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of sentences of like length, at most BATCH_TOKENS with padding."""
    group: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda one: lengths[one]):
        if group and lengths[number] * (len(group) + 1) > BATCH_TOKENS:
            yield group
            group = []
        group.append(number)
    if group:
        yield group
