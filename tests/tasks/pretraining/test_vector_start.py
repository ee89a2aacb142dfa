"""A classifier whose embedding begins as word vectors."""

from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.errors import CheckpointError
from headwise.models.vector_space import VectorSpace
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.run import train
from headwise.tasks.word_vectors.bundle import save_word_vectors
from headwise.weights import read_tensors
from tests.tasks.labels.test_task import review_recipe

WORDS = ("film", "good", "<unk>", "bad", "dull")


@pytest.fixture
def vectors(tmp_path: Path) -> np.ndarray:
    """Good and bad are opposites, and dull stands with bad though no label says so."""
    drawn = np.random.default_rng(3).normal(size=(5, 16)).astype(np.float32)
    drawn[3], drawn[4] = -drawn[1], -0.9 * drawn[1]
    save_word_vectors(tmp_path / "words", VectorSpace(WORDS, drawn))
    return drawn


def test_the_table_begins_as_the_vectors(vectors: np.ndarray, tmp_path: Path) -> None:
    changes = [
        "model={kind: word, dim: 16}",
        f"model.start_from={tmp_path / 'words'}",
        "training.freeze=[encoder.*]",
    ]
    train(review_recipe(tmp_path, *changes), run=tmp_path / "run")
    table = read_tensors(tmp_path / "run" / "model" / "weights.safetensors")[
        "encoder.embedding.table.weight"
    ]
    kept = torch.from_numpy(np.delete(vectors, 2, axis=0))
    kept = kept - kept.mean(0)
    assert table.shape == (8, 16), "four special rows, and <unk> is one of them"
    assert torch.allclose(table[4:], kept / (kept.square().mean().sqrt() * 4), atol=1e-6)
    assert torch.equal(table[3], torch.zeros(16))
    labeller = Labeller.load(tmp_path / "run")
    assert [one.label for one in labeller(["good film", "bad film", "dull film"])] == [
        "yes",
        "no",
        "no",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["model={kind: word, dim: 8}"],
            r"word vectors with model\.dim=16, here model\.dim=8; set model\.dim=16",
        ),
        (
            ["model={kind: word, dim: 16}", "text={kind: characters}"],
            r"with text\.kind=words, here text\.kind=characters",
        ),
    ],
)
def test_vectors_that_do_not_fit(
    vectors: np.ndarray, tmp_path: Path, changes: list[str], message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        train(
            review_recipe(tmp_path, *changes, f"model.start_from={tmp_path / 'words'}"),
            run=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("kind", "recipe"),
    [
        ("word", "word-vectors"),
        ("recurrent", "word-vectors"),
        ("encoder", "english-masked"),
        ("elmo", "english-elmo"),
    ],
)
def test_what_makes_the_start_that_is_not_there(kind: str, recipe: str, tmp_path: Path) -> None:
    there = tmp_path / "nothing"
    with pytest.raises(
        CheckpointError, match=rf"nothing is there; .* `headwise train {recipe} --run {there}`"
    ):
        train(
            review_recipe(tmp_path, f"model={{kind: {kind}}}", f"model.start_from={there}"),
            run=tmp_path / "run",
        )
    with pytest.raises(
        CheckpointError,
        match=r"`headwise train english-masked-large --run runs/english-masked-large`",
    ):
        train(
            review_recipe(tmp_path, "model.start_from=runs/english-masked-large"),
            run=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()


def test_vectors_of_another_case(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a good film a bad film\n" * 9, encoding="utf-8")
    changes = [
        f"data.train={tmp_path / 'text.txt'}",
        "model.dim=16",
        "training.epochs=1",
        "training.threads=1",
    ]
    train("word-vectors", overrides=changes, run=tmp_path / "words")
    start = [
        "model={kind: encoder, dim: 16}",
        f"model.start_from={tmp_path / 'words'}",
        "training.steps=1",
    ]
    with pytest.raises(CheckpointError, match=r"text\.lowercase=True, here text\.lowercase=False"):
        train(review_recipe(tmp_path, *start), run=tmp_path / "run")
    train(review_recipe(tmp_path, *start, "text.lowercase=true"), run=tmp_path / "run")
