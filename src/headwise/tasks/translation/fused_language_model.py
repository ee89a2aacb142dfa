"""A language model that takes part in the search of a translator (`decoding.language_model`).

A search asks for the probability of the translator's own tokens, so the language model must have
them: each token must mean the same in both. That is so for

    a bundle       whose tokenizer was taken from the translator (`tokenizer` in its recipe)
    an ARPA file   that lists every token of the translator, in whatever order

Every other one is refused, because a sentence cut into other units has no probability token by
token. A row of log-probabilities is kept for each prefix, which a search asks for at every
position.

Tested against: the log-probability of whole sentences by the language model itself, for n-grams, a
network and an ARPA file; other vocabularies are refused.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwise.data.text_lines import find_text_file
from headwise.errors import CheckpointError, UsageError
from headwise.models.ngram import NgramModel
from headwise.models.ngram.arpa import is_arpa
from headwise.tasks.bundle import open_bundle
from headwise.tasks.language.language_model import LanguageModel, TokenModel
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.translation.judge import have_same_pieces
from headwise.text.character_tokenizer import CharacterTokenizer
from headwise.text.tokenizer import NUM_SPECIAL, SPECIAL_PIECES, WORD_START, Tokenizer
from headwise.text.word_tokenizer import WordTokenizer

KEPT_NUMBERS = 1 << 24
"""Log-probabilities that are kept between two questions, 64 MiB of them."""
Ids = NDArray[np.int64]


class FusedLanguageModel:
    """A language model that answers in the tokens of a translator."""

    def __init__(self, model: TokenModel, ids: Ids | None = None) -> None:
        """`ids`: the number that each of the translator's tokens has in the language model; None:
        its own."""
        self.model, self.ids = model, ids
        self._rows: dict[tuple[int, ...], NDArray[np.float32]] = {}

    def score_next(
        self, prefixes: Sequence[tuple[int, ...]], tokens: Sequence[int]
    ) -> list[list[float]]:
        """log p(token | prefix): a row for each prefix, a number for each token."""
        known = self._rows
        found = {prefix: known[prefix] for prefix in prefixes if prefix in known}
        missing = [prefix for prefix in dict.fromkeys(prefixes) if prefix not in found]
        if missing:
            new = dict(zip(missing, self._ask(missing), strict=True))
            found |= new
            if (len(known) + len(new)) * len(new[missing[0]]) > KEPT_NUMBERS:
                known = self._rows = {}
            known |= new
        columns = np.fromiter(tokens, dtype=np.int64, count=len(tokens))
        return [found[prefix][columns].tolist() for prefix in prefixes]

    def _ask(self, prefixes: Sequence[tuple[int, ...]]) -> NDArray[np.float32]:
        if self.ids is None:
            return self.model.next_words(prefixes)
        own = [self.ids[list(prefix)].tolist() for prefix in prefixes]
        return self.model.next_words(own)[:, self.ids]


def load_fused(path: str, target: Tokenizer) -> FusedLanguageModel:
    """The language model at a path, for a translator with this target tokenizer."""
    check_fused(path)
    loaded = LanguageModel.load(Path(path))
    _check_probabilities(path, loaded)
    if not is_arpa(Path(path)):
        if not have_same_pieces(loaded.tokenizer, target):
            raise _explain_other_tokens(path, loaded.tokenizer, target)
        return FusedLanguageModel(loaded.model)
    theirs, ours = _names(loaded.tokenizer), _names(target)
    numbers = {name: number for number, name in enumerate(theirs)}
    missing = [name for name in ours if name not in numbers]
    same_units = isinstance(loaded.tokenizer, CharacterTokenizer) == isinstance(
        target, CharacterTokenizer
    )
    if missing or not same_units:
        raise _explain_missing_tokens(path, missing, len(ours))
    return FusedLanguageModel(loaded.model, np.array([numbers[name] for name in ours]))


def check_fused(path: str) -> None:
    """Refuse a path that holds no language model; its weights are not loaded."""
    if is_arpa(Path(path)):
        find_text_file(Path(path))
        return
    try:
        open_bundle(Path(path), LanguageRecipe)
    except CheckpointError as error:
        raise CheckpointError(
            f"is given as decoding.language_model, but {error.en}",
            f"被用作 decoding.language_model，但{error.zh}",
            file=error.file,
        ) from error


def _names(tokenizer: Tokenizer) -> list[str]:
    """The tokens as an ARPA file names them (exporting/export.py)."""
    names = tokenizer.pieces(range(NUM_SPECIAL, tokenizer.size))
    if isinstance(tokenizer, WordTokenizer):
        names = [name.removeprefix(WORD_START) for name in names]
    return [*SPECIAL_PIECES, *names]


def _check_probabilities(path: str, loaded: LanguageModel) -> None:
    model = loaded.model
    tables = model.tables if isinstance(model, NgramModel) else None
    has_zeros = tables is not None and not tables.falls_back and tables.floor == -np.inf
    if loaded.sums_to_one and not has_zeros:
        return
    raise UsageError(
        f"decoding.language_model={path} gives sentences no probability that could be added to the "
        "translator's: with model.smoothing.kind=maximum_likelihood unseen words have none, and "
        "those of stupid_backoff do not sum to one; use one with "
        "model.smoothing.kind=modified_kneser_ney",
        f"decoding.language_model={path} 给不出可与翻译模型相加的概率："
        "model.smoothing.kind=maximum_likelihood 时未见词没有概率，stupid_backoff "
        "的概率之和不为一；请换用 model.smoothing.kind=modified_kneser_ney 的模型",
    )


_TAKE = (
    "train one with the translator's tokenizer: `tokenizer: RUN OF THE TRANSLATOR` in its recipe",
    "请用翻译模型的分词器训练一个：在其配方中写 `tokenizer: 翻译模型的运行目录`",
)


def _explain_other_tokens(path: str, own: Tokenizer, target: Tokenizer) -> UsageError:
    first = next(
        (
            number
            for number in range(min(own.size, target.size))
            if own.pieces([number]) != target.pieces([number])
        ),
        min(own.size, target.size),
    )
    theirs, ours = (one.pieces([first])[0] if first < one.size else "–" for one in (own, target))
    return UsageError(
        f"decoding.language_model={path} has another vocabulary than the target of the translator "
        f"({own.size:,} and {target.size:,} tokens; number {first} is {theirs!r} and {ours!r}), so "
        f"it cannot say how likely the translator's tokens are; {_TAKE[0]}",
        f"decoding.language_model={path} 的词表与翻译模型的目标语言不同（{own.size:,} 与 "
        f"{target.size:,} 个词元；第 {first} 号是 {theirs!r} 与 {ours!r}），无法给出翻译模型"
        f"词元的概率；{_TAKE[1]}",
    )


def _explain_missing_tokens(path: str, missing: Sequence[str], total: int) -> UsageError:
    lists = (
        (
            f"lacks {len(missing):,} of the translator's {total:,} tokens (such as {missing[0]!r})",
            f"缺少翻译模型 {total:,} 个词元中的 {len(missing):,} 个（例如 {missing[0]!r}）",
        )
        if missing
        else (
            "is a model of other units than the translator's tokens",
            "的单位与翻译模型的词元不同",
        )
    )
    return UsageError(
        f"decoding.language_model={path} {lists[0]}, so it cannot say how likely these are; "
        f"{_TAKE[0]}",
        f"decoding.language_model={path} {lists[1]}，无法给出它们的概率；{_TAKE[1]}",
    )
