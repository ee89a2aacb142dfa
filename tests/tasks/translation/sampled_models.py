"""A translator of seven tokens, and all translations that it can write, one by one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.data.packing import PackedBatch, build_rows
from headwise.data.shards import as_ragged
from headwise.models.choices import build_model
from headwise.models.translation_model import TranslationModel
from headwise.randomness import torch_generator
from headwise.tasks.recipe import load_translation_recipe
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.text.tokenizer_pair import TokenizerPair
from tests.tasks.tiny import OVERRIDES

VOCAB, LONGEST = 7, 2
WORDS = "abcdefg"
PAIRS = (([4, 5], [5, 6]), ([6], [4]), ([5, 6, 4], [6, 6]))
RECURRENT = (
    "model={kind: recurrent, cell: lstm, dim: 16, layers: 1, attention: {kind: luong}, "
    "dropout: {embedding: 0, hidden: 0}}",
)


@dataclass(frozen=True, eq=False)
class Letters:
    """A tokenizer whose tokens are letters."""

    size: int = VOCAB
    reversible: bool = True

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(WORDS[one] for one in ids if one > EOS)


def letters() -> TokenizerPair:
    one = Letters()
    return TokenizerPair(one, one, shared=True)  # type: ignore[arg-type]


def sampled_recipe(objective: str, *words: str, longest: int = LONGEST) -> TranslationRecipe:
    own = [one for one in OVERRIDES if not one.startswith("model.") or words != RECURRENT]
    changes = [f"training.objective={objective}", f"decoding.max_length={longest}", *words]
    return load_translation_recipe("pocket", [*own, *changes])


def build(recipe: TranslationRecipe) -> TranslationModel:
    """With output weights so large that some translations are much more probable than others, and
    padding less probable than words."""
    model = build_model(
        recipe.model, source_size=VOCAB, target_size=VOCAB, generator=torch_generator(3)
    )
    with torch.no_grad():
        model.output.weight.mul_(2)
        model.output.weight[:EOS] *= 0.2
    return model.train()


def without_dropout(*words: str) -> tuple[str, ...]:
    return ("model.dropout={residual: 0, embedding: 0, attention: 0, hidden: 0}", *words)


def batch_of(pairs: Sequence[tuple[list[int], list[int]]] = PAIRS) -> PackedBatch:
    """All pairs in packed rows."""
    sides = [as_ragged([pair[side] for pair in pairs]) for side in (0, 1)]
    return build_rows(*sides, source_row=9, target_row=9).batch()


def log_probability(model: TranslationModel, source: list[int], written: Sequence[int]) -> Tensor:
    """Of each token by itself: the model reads the prefix anew, and padding and the beginning are
    no outputs."""
    found = []
    for number, token in enumerate(written):
        target = torch.tensor([[BOS, *written[:number]]])
        read = torch.tensor([[*source, EOS]])
        hidden = model(
            read,
            target,
            source_segment=torch.ones_like(read),
            target_segment=torch.ones_like(target),
            source_position=torch.arange(read.shape[1])[None],
            target_position=torch.arange(target.shape[1])[None],
        )
        logits = model.logits(hidden)[0, -1]
        allowed = logits.index_fill(0, torch.tensor([PAD, BOS]), -torch.inf)
        found.append(allowed.log_softmax(-1)[token])
    return torch.stack(found)


def all_written(longest: int = LONGEST) -> Iterator[tuple[int, ...]]:
    """Every translation, cut at the longest length."""
    unfinished: list[tuple[int, ...]] = [()]
    for length in range(1, longest + 1):
        yield from ((*one, EOS) for one in unfinished)
        unfinished = [(*one, token) for one in unfinished for token in range(EOS + 1, VOCAB)]
        if length == longest:
            yield from unfinished
