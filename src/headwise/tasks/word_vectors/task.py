"""The `Task` of word vectors: one table of vectors, learnt in a few passes over the text.

    runs/words/  recipe.yaml   log.jsonl   model/

It uses neither the training loop nor checkpoints. Several threads update one table
(training/hogwild.py), which takes minutes. A run that is stopped begins anew.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from headwise.data.text.word_stream import WordStream
from headwise.language import say
from headwise.models.vector_space import VectorSpace
from headwise.tasks.comparison_metrics import ComparisonMetrics
from headwise.tasks.events import Events
from headwise.tasks.task import SinglePassModel, SinglePassPart, SinglePassTask
from headwise.tasks.training_cost import TrainingCost
from headwise.tasks.word_vectors.bundle import (
    CARD_USE,
    WordVectorBundle,
    load_word_vectors,
    write_words,
)
from headwise.tasks.word_vectors.learning import WordProgress, learn_word_vectors, read_text
from headwise.tasks.word_vectors.recipe import WordVectorRecipe

CHECKED_WORDS = 100_000
"""Words of a text that `--check` learns from."""
MOST_LONE = 0.9
"""A text with a larger share of lines of one word is probably not cut into words."""

UNSCORED = (
    "Word vectors have no test text, so there is no score to test for significance. Score each run "
    "on lists of word pairs: headwise vectors score --model DIR/runs/VARIANT/seed-1 "
    "known:word-vectors-eval/EN-WS-353-ALL.txt",
    "词向量没有测试文本，因而没有可检验显著性的分数。请用词对列表逐个评测："
    "headwise vectors score --model DIR/runs/变体/seed-1 "
    "known:word-vectors-eval/EN-WS-353-ALL.txt",
)
"""What a comparison says instead of a score."""


class WordVectorTask(SinglePassTask[WordVectorRecipe, WordStream]):
    """Learn a vector for each word from the words around it."""

    def prepare(self, recipe: WordVectorRecipe, directory: Path, watcher: Events) -> WordStream:
        stream = read_text(recipe)
        if stream.lone > MOST_LONE:
            share = f"{100 * stream.lone:.0f}"
            watcher.note(
                say(
                    f"{share} % of the lines are one word, which has no neighbours: "
                    "cut the text into words with spaces, or set text.unit=characters",
                    f"{share}% 的行只有一个词，没有相邻的词：请用空格把文本切成词，"
                    "或设 text.unit=characters",
                )
            )
        return stream

    def sizes(self, recipe: WordVectorRecipe, prepared: WordStream) -> dict[str, Any]:
        return {"words": len(prepared.words), "text_words": len(prepared)}

    def learn(
        self, recipe: WordVectorRecipe, prepared: WordStream, watcher: Events
    ) -> SinglePassModel:
        last = WordProgress(0, 1, 0.0)

        def watch(progress: WordProgress) -> None:
            nonlocal last
            last = progress
            rate = say(f"words ({progress.rate:,.0f}/s)", f"词（{progress.rate:,.0f}/秒）")
            watcher.count(rate, progress.words, progress.total)

        tables = learn_word_vectors(prepared, recipe, watch=watch)
        results: Mapping[str, Any] = {
            "parameters": tables.inputs.numel(),
            "epochs": recipe.training.epochs,
            "training_seconds": round(last.seconds, 2),
            "words_per_second": round(last.rate),
        }
        vectors = tables.inputs.numpy()
        space = VectorSpace(prepared.words, vectors, text_words=len(prepared))
        return SinglePassModel({"vectors": torch.from_numpy(space.vectors)}, results, space)

    def predict_cost(self, recipe: WordVectorRecipe, prepared: WordStream) -> TrainingCost:
        """Learn from a part of the text, for the clock alone."""
        cut = int(np.searchsorted(prepared.ends, CHECKED_WORDS)) + 1
        part = replace(
            prepared, ids=prepared.ids[: prepared.ends[:cut][-1]], ends=prepared.ends[:cut]
        )
        epoch = recipe.training.model_copy(update={"epochs": 1})
        began = time.perf_counter()
        learn_word_vectors(part, recipe.model_copy(update={"training": epoch}))
        share = recipe.training.epochs * len(prepared) / max(1, len(part))
        seconds = share * (time.perf_counter() - began)
        parameters = len(prepared.words) * recipe.model.dim  # the second table is not kept
        return TrainingCost(
            parameters, seconds, self.bound_memory(recipe, prepared), stored=4 * parameters
        )

    def bound_memory(self, recipe: WordVectorRecipe, prepared: WordStream) -> int:
        """The two tables and the text, four bytes a number."""
        return 4 * (2 * len(prepared.words) * recipe.model.dim + len(prepared))

    def describe_parts(self, directory: Path) -> tuple[SinglePassPart, ...]:
        """The vectors; the second table of training is not kept."""
        vectors = load_word_vectors(directory).space.vectors
        name = (
            f"vectors: {len(vectors):,} words of {vectors.shape[1]} dimensions",
            f"词向量：{len(vectors):,} 个词，{vectors.shape[1]} 维",
        )
        return (SinglePassPart(name, vectors.size, vectors.nbytes),)

    def describe_start(
        self, recipe: WordVectorRecipe, prepared: WordStream, module: nn.Module | None
    ) -> str:
        kept = len(prepared.words) * recipe.model.dim
        return say(
            f"{len(prepared):,} words of text, {len(prepared.words):,} different; "
            f"{kept:,} parameters are kept, {2 * kept:,} while learning (two tables)",
            f"文本共 {len(prepared):,} 个词，{len(prepared.words):,} 种；"
            f"保留 {kept:,} 个参数，学习时为 {2 * kept:,} 个（两张表）",
        )

    def comparison_metrics(self, recipe: WordVectorRecipe) -> ComparisonMetrics:
        """Parameters and time alone: a recipe of word vectors names no test set."""
        return ComparisonMetrics(
            metrics=(), question={}, read=lambda _: {}, is_scored=False, remark=UNSCORED
        )

    def save_parts(self, recipe: WordVectorRecipe, prepared: WordStream, directory: Path) -> None:
        write_words(directory, prepared.words, prepared.counts)

    def title(self, recipe: WordVectorRecipe) -> str:
        return "Word vectors"

    def card_details(self, recipe: WordVectorRecipe, prepared: WordStream) -> str:
        model = recipe.model
        return (
            f"Trained ({model.kind}, {model.output.kind}): {len(prepared.words):,} words of "
            f"{model.dim} dimensions."
        )

    def card_use(self, recipe: WordVectorRecipe) -> str:
        return CARD_USE

    def load(self, directory: Path) -> WordVectorBundle:
        return load_word_vectors(directory)

    def summarize(self, directory: Path) -> str:
        space = load_word_vectors(directory).space
        return say(
            f"word vectors, {len(space.words):,} words, dimension {space.dim}",
            f"词向量，{len(space.words):,} 个词，{space.dim} 维",
        )
