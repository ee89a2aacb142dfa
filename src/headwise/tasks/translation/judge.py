"""A translator that judges the translations of another one: their log-probabilities, in one pass.

    log p(y, </s> | x) = Σ_t log p(y_t | y_<t, x)

Noisy parallel decoding (decoding/parallel/noisy_pass.py) asks it. The judge must write from left to
right and be of the same languages. If it has the same vocabulary it reads the tokens as they are;
otherwise they are turned into text and encoded again.

Tested against: the sum over the distributions of a search that reads the same target, for equal and
for other vocabularies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from headwise.decoding.batches import plan_batches
from headwise.decoding.generation_settings import Batching
from headwise.errors import CheckpointError, DataError, UsageError
from headwise.models.limits import target_limits
from headwise.models.parallel.choices import is_parallel
from headwise.models.translation_model import TranslationModel
from headwise.tasks.bundle import open_bundle
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.length_limits import longest_source
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.reversed_tokenizer import ReversedTokenizer
from headwise.text.tokenizer import BOS, EOS, PAD, Tokenizer
from headwise.text.tokenizer_pair import TokenizerPair
from headwise.training.parallel.token_scores import score_tokens

Tokens = Sequence[int]
BATCHING = Batching(sentences=256, tokens=8192)


@dataclass(frozen=True)
class TranslatorJudge:
    """A trained translator, and the tokenizers of the one whose translations it judges."""

    model: TranslationModel
    recipe: TranslationRecipe
    own: TokenizerPair
    given: TokenizerPair

    @cached_property
    def shares_source(self) -> bool:
        """Whether both have the same source vocabulary."""
        return have_same_pieces(self.given.source, self.own.source)

    @cached_property
    def shares_target(self) -> bool:
        """Whether both have the same target vocabulary."""
        return have_same_pieces(self.given.target, self.own.target)

    @torch.inference_mode()
    def log_probabilities(
        self, sources: Sequence[Tokens], targets: Sequence[Tokens]
    ) -> Sequence[float]:
        """log p(target, end of sentence | source) of each pair."""
        if not self.shares_source:
            sources = encode_again(sources, self.given.source, self.own.source)
        if not self.shares_target:
            targets = encode_again(targets, self.given.target, self.own.target)
        self._check_lengths(sources, targets)
        found = [0.0] * len(sources)
        sizes = [
            len(source) + len(target) + 2 for source, target in zip(sources, targets, strict=True)
        ]
        for batch in plan_batches(sizes, BATCHING):
            totals = self._score([sources[i] for i in batch], [targets[i] for i in batch])
            for i, total in zip(batch, totals.tolist(), strict=True):
                found[i] = total
        return found

    def _score(self, sources: Sequence[Tokens], targets: Sequence[Tokens]) -> Tensor:
        """The same for one batch."""
        source = self._pad([[*tokens, EOS] for tokens in sources])
        target_input = self._pad([[BOS, *tokens] for tokens in targets])
        target_output = self._pad([[*tokens, EOS] for tokens in targets])
        is_source, is_target = source != PAD, target_output != PAD
        hidden = self.model(
            source,
            target_input,
            source_segment=is_source.long(),
            target_segment=is_target.long(),
            source_position=torch.arange(source.shape[1], device=source.device).expand_as(source),
            target_position=torch.arange(target_input.shape[1], device=source.device).expand_as(
                target_input
            ),
        )
        scores = score_tokens(
            hidden.flatten(0, 1),
            self.model.output.weight,
            candidates=target_output.flatten()[:, None],
            bias=self.model.output.bias,
        )
        return scores.view(target_output.shape).masked_fill(~is_target, 0).sum(1)

    def _pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        width = max(map(len, rows))
        return torch.tensor(
            [[*row, *[PAD] * (width - len(row))] for row in rows],
            device=self.model.output.weight.device,
        )

    def _check_lengths(self, sources: Sequence[Tokens], targets: Sequence[Tokens]) -> None:
        """Refuse what the judge has no positions for."""
        limits = target_limits(self.recipe.model)
        for lengths, limit in (
            (map(len, sources), longest_source(self.recipe.model).tokens),
            (map(len, targets), min((one.tokens for one in limits), default=None)),
        ):
            longest = max(lengths, default=0) + 1
            if limit is not None and longest > limit:
                raise DataError(
                    f"a sentence of {longest:,} tokens is to be judged, but decoding.judge reads "
                    f"at most {limit:,}; lower decoding.max_length, or use another judge",
                    f"要评判的句子有 {longest:,} 个词元，而 decoding.judge 最多读 {limit:,} 个；"
                    "请调小 decoding.max_length，或换用其他评判模型",
                )


def load_judge(
    path: str, recipe: TranslationRecipe, tokenizers: TokenizerPair, *, device: torch.device
) -> TranslatorJudge:
    """The judge of the translations that the recipe's model makes, from its bundle."""
    check_judge(path, recipe)
    bundle = load_translator_bundle(path)
    return TranslatorJudge(
        bundle.model.to(device).eval(), bundle.recipe, bundle.tokenizers, tokenizers
    )


def check_judge(path: str, recipe: TranslationRecipe) -> None:
    """Refuse a path that holds no judge for this recipe; its weights are not loaded."""
    try:
        found = open_bundle(Path(path), TranslationRecipe).recipe
    except CheckpointError as error:
        raise CheckpointError(
            f"is given as decoding.judge, but {error.en}",
            f"被用作 decoding.judge，但{error.zh}",
            file=error.file,
        ) from error
    needed, given = (f"{one.data.source} → {one.data.target}" for one in (recipe, found))
    if given != needed:
        raise UsageError(
            f"decoding.judge={path} translates {given}, but {needed} is to be judged; give a "
            f"translator of {needed}",
            f"decoding.judge={path} 翻译 {given}，而要评判的是 {needed}；请给出 {needed} 的模型",
        )
    if is_parallel(found.model):
        raise UsageError(
            f"decoding.judge={path} is a parallel model, which cannot judge the order of words; "
            "give a translator that writes from left to right (model.kind=encoder_decoder)",
            f"decoding.judge={path} 是并行模型，无法评判词序；请给出从左到右翻译的模型"
            "（model.kind=encoder_decoder）",
        )


def encode_again(sentences: Sequence[Tokens], given: Tokenizer, own: Tokenizer) -> Sequence[Tokens]:
    """The same sentences as tokens of another vocabulary."""
    return own.encode_batch([given.decode(sentence) for sentence in sentences])


def have_same_pieces(first: Tokenizer, second: Tokenizer) -> bool:
    """Whether every id means the same in both, and both write in the same order."""
    every, sides = range(first.size), (first, second)
    is_reversed, other_is = (isinstance(one, ReversedTokenizer) for one in sides)
    return (
        first.size == second.size
        and is_reversed == other_is
        and first.pieces(every) == second.pieces(every)
    )
