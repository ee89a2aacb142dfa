"""A translator so small that a test can train it: one layer, six steps, three hundred sentences of
the pocket corpus."""

from collections.abc import Sequence
from pathlib import Path

from headwise.tasks.recipe import load_recipe
from headwise.tasks.run import train
from headwise.tasks.run_start import RunSummary
from headwise.tasks.translation.recipe import TranslationRecipe

OVERRIDES = (
    "model.dim=16",
    "model.encoder={layers: 1, heads: 2}",
    "model.decoder={layers: 2, heads: 2}",
    "model.feed_forward.hidden=32",
    "data.train={kind: pocket, split: train, count: 300}",
    "data.valid={kind: pocket, split: valid, count: 11}",
    "data.test={kind: pocket, split: test, count: 13}",
    "text={kind: sentencepiece, size: 500, byte_fallback: false, coverage: 1.0}",
    "training.steps=6",
    "training.batch_tokens=512",
    "training.checkpoint_every=2",
    "training.log_every=2",
    "training.precision=fp32",
    "training.compile=off",
    "decoding={kind: greedy, max_length: {factor: 0.5, extra: 3}}",
    "training.validate_every=null",
    "evaluation.validation_sentences=0",
)


def tiny_recipe(*overrides: str) -> TranslationRecipe:
    return load_recipe("pocket", [*OVERRIDES, *overrides])


def train_tiny(directory: Path, overrides: Sequence[str] = ()) -> RunSummary:
    return train(tiny_recipe(*overrides), run=directory)
