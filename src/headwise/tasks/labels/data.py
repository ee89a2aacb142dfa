"""Prepares labelled text for training: learns the tokenizer, lists the labels, encodes each split.

A text to be classified is <s> and its tokens; tokens beyond the row length are cut off. A sentence
to be tagged is its words. If it is longer than a row, the rest becomes another sentence, so every
word gets a tag. Everything is kept in memory: a million words take 50 MB.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from headwise.data.labels.choices import LabelDataSettings, Shape, read_labelled
from headwise.data.labels.labelled_files import Labelled
from headwise.data.labels.labelled_rows import LabelledTokens
from headwise.data.splits import Part
from headwise.errors import DataError
from headwise.language import say
from headwise.models.sentence_encoder import ElmoSettings
from headwise.tasks.events import Events
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.vocabulary_progress import watch_vocabulary
from headwise.text.character_ngrams import run_ids
from headwise.text.choices import learn_tokenizer
from headwise.text.tokenizer import BOS, Tokenizer
from headwise.text.word_affixes import affix_ids
from headwise.text.word_characters import BEGIN_WORD, letters_of, spell_words
from headwise.text.word_tokenizer import WordTokenizer

Spelling = Literal["affixes", "runs"]


@dataclass(frozen=True)
class LabelForm:
    """How labelled text becomes rows."""

    tokenizer: Tokenizer
    labels: tuple[str, ...]
    shape: Shape
    row_tokens: int
    letters: int
    spelling: Spelling = "affixes"
    spelled: bool = False
    """Each word with its letters, for encoders that read those (ELMo)."""

    @staticmethod
    def of(recipe: LabelRecipe, tokenizer: Tokenizer, labels: tuple[str, ...]) -> "LabelForm":
        model = recipe.model
        spelled = isinstance(model, ElmoSettings)
        return LabelForm(
            tokenizer,
            labels,
            recipe.shape,
            recipe.data.row_tokens,
            model.letters,
            model.spelling,
            spelled,
        )

    def encode(
        self, words: Sequence[tuple[str, ...]], labels: Sequence[tuple[str, ...]] | None = None
    ) -> LabelledTokens:
        """Texts or sentences as tokens; a label that is not in the list is no target."""
        numbers = {label: number for number, label in enumerate(self.labels, start=1)}
        targets = (
            [[numbers.get(one, 0) for one in given] for given in labels]
            if labels is not None
            else None
        )
        if self.shape == "one":
            return self._encode_texts([one[0] for one in words], targets)
        return self._encode_words(words, targets)

    def _encode_texts(
        self, texts: Sequence[str], targets: list[list[int]] | None
    ) -> LabelledTokens:
        whole = [[BOS, *ids] for ids in self.tokenizer.encode_batch(list(texts))]
        rows = [row[: self.row_tokens] for row in whole]
        offsets = np.cumsum([0, *map(len, rows)])
        wanted = np.zeros(offsets[-1], dtype=np.int32)
        if targets is not None:
            wanted[offsets[:-1]] = [given[0] for given in targets]
        letters = self._spell_texts(texts) if self.spelled or self.letters else None
        tokens = np.fromiter(chain.from_iterable(rows), np.int32, offsets[-1])
        return LabelledTokens(
            tokens, wanted, offsets, letters, np.array(list(map(len, whole)), dtype=np.int64)
        )

    def _spell_texts(self, texts: Sequence[str]) -> np.ndarray:
        """The letters of each token, or what they tell: of <s>, of the words as they stand."""
        assert isinstance(self.tokenizer, WordTokenizer), "the recipe checks it"
        beginning = BEGIN_WORD if self.spelled else (0,) * self._num_features
        rows = []
        for text in texts:
            words = text.lower().split() if self.tokenizer.lowercase else text.split()
            rows += [
                (beginning, *map(letters_of if self.spelled else self._features, words))[
                    : self.row_tokens
                ]
            ]
        return np.array(
            list(chain.from_iterable(rows)), dtype=np.int16 if self.spelled else np.int32
        )

    def _features(self, word: str) -> tuple[int, ...]:
        return _find_features(word, self.letters, self.spelling)

    @property
    def _num_features(self) -> int:
        return count_features(self.letters, self.spelling)

    def _encode_words(
        self, words: Sequence[tuple[str, ...]], targets: list[list[int]] | None
    ) -> LabelledTokens:
        tokenizer = self.tokenizer
        assert isinstance(tokenizer, WordTokenizer), "the recipe checks it"
        flat = list(chain.from_iterable(words))
        folded = [word.lower() for word in flat] if tokenizer.lowercase else flat
        tokens = np.fromiter(
            (tokenizer.vocabulary.id_of(word) for word in folded), np.int32, len(flat)
        )
        wanted = np.zeros(len(flat), dtype=np.int32)
        if targets is not None:
            wanted[:] = np.fromiter(chain.from_iterable(targets), np.int32, len(flat))
        letters = None
        if self.letters:
            letters = np.array([self._features(word) for word in flat], np.int32).reshape(
                len(flat), self._num_features
            )
        if self.spelled:
            letters = spell_words(folded)
        cuts, end = [0], 0
        for sentence in words:
            start, end = end, end + len(sentence)
            cuts += [*range(start + self.row_tokens, end, self.row_tokens), end]
        return LabelledTokens(tokens, wanted, np.array(cuts), letters)


def count_features(num_rows: int, spelling: Spelling) -> int:
    """Letter features of a word, the same number for every word."""
    return len(_find_features("a", num_rows, spelling))


def _find_features(word: str, num_rows: int, spelling: Spelling) -> tuple[int, ...]:
    return run_ids(word, num_rows) if spelling == "runs" else affix_ids(word, num_rows)


@dataclass(frozen=True)
class PreparedLabels:
    """What a training needs."""

    form: LabelForm
    train: LabelledTokens
    valid: tuple[Labelled, ...]
    test: tuple[Labelled, ...]
    num_examples: int
    fingerprint: str


def prepare_labels(
    recipe: LabelRecipe, watcher: Events, *, tokenizer: Tokenizer | None
) -> PreparedLabels:
    """Read every part, learn the tokenizer (unless one is given) and the list of classes from the
    training part.
    """
    watcher.note(say("reading the labelled text …", "正在读取带标签的文本……"))
    train = read_part(recipe.data, "train", recipe.shape)
    valid, test = (read_part(recipe.data, part, recipe.shape) for part in ("valid", "test"))
    labels = tuple(sorted({label for one in train for label in one.labels}))
    _check_classes(recipe, train, labels, (*valid, *test))
    if tokenizer is None:
        tokenizer = learn_tokenizer(
            recipe.text,
            (" ".join(one.words) for one in train),
            seed=recipe.training.seed,
            watch=watch_vocabulary(watcher),
        )
    form = LabelForm.of(recipe, tokenizer, labels)
    store = form.encode([one.words for one in train], [one.labels for one in train])
    if store.uncut is not None and (num_cut := int((store.uncut > recipe.data.row_tokens).sum())):
        watcher.note(
            say(
                f"{num_cut:,} of {len(store):,} texts are longer than a row of "
                f"{recipe.data.row_tokens:,} tokens and cut (the longest has "
                f"{int(store.uncut.max()):,}; data.row_tokens)",
                f"{len(store):,} 条文本中有 {num_cut:,} 条长于每行 {recipe.data.row_tokens:,} "
                f"个词元，已截断（最长 {int(store.uncut.max()):,}；data.row_tokens）",
            )
        )
    digest = hashlib.blake2b(digest_size=16)
    for array in (store.tokens, store.targets, store.offsets):
        digest.update(np.ascontiguousarray(array).tobytes())
    return PreparedLabels(form, store, valid, test, len(train), digest.hexdigest())


def read_part(data: LabelDataSettings, part: Part, shape: Shape) -> tuple[Labelled, ...]:
    """All examples of a part; a part that is named but holds nothing is an error."""
    corpora = data.corpora(part)
    found = tuple(
        chain.from_iterable(
            read_labelled(one, language=data.language, shape=shape) for one in corpora
        )
    )
    if corpora and not found:
        raise DataError(
            f"data.{part} has nothing to learn from or measure; give another file, or another "
            "split",
            f"data.{part} 没有任何内容；请换一个文件或划分",
        )
    return found


def _check_classes(
    recipe: LabelRecipe,
    train: Sequence[Labelled],
    labels: tuple[str, ...],
    measured: Sequence[Labelled],
) -> None:
    if len(labels) < 2:
        raise DataError(
            f"every label of data.train is {labels[0]!r}; at least two classes are needed to "
            "learn a difference",
            f"data.train 的标签全是 {labels[0]!r}；至少需要两个类别才能学习差别",
            file=train[0].file,
        )
    if recipe.shape == "one" and len(labels) > max(2, len(train) // 2):
        raise DataError(
            f"{len(train):,} texts have {len(labels):,} different labels; set label_column and "
            "text_column to the right columns",
            f"{len(train):,} 条文本有 {len(labels):,} 种标签；请把 label_column 与 text_column "
            "设为正确的列",
            file=train[0].file,
        )
    known = set(labels)
    for one in measured if recipe.shape == "one" else ():
        if one.labels[0] not in known:
            raise DataError(
                f"the label {one.labels[0]!r:.60} does not occur in data.train, which has "
                f"{', '.join(labels)[:200]}; correct it",
                f"标签 {one.labels[0]!r:.60} 在 data.train 中没有出现，其中有 "
                f"{', '.join(labels)[:200]}；请改正",
                file=one.file,
                line=one.line,
            )
