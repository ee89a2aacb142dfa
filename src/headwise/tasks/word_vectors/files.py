"""Reads and writes word vectors in word2vec's formats; scores them on word pairs and analogies."""

from collections.abc import Sequence
from pathlib import Path

from headwise.errors import DataError
from headwise.evaluation.word_similarity import (
    WordScore,
    parse_analogies,
    parse_pairs,
    score_analogies,
    score_similarity,
)
from headwise.models.vector_space import VectorSpace
from headwise.storage import refuse_existing
from headwise.tasks.text_input import read_text_lines
from headwise.tasks.word_vectors.bundle import save_word_vectors
from headwise.text.word_vector_files import read_vectors, write_vectors


def import_word_vectors(source: Path, directory: Path) -> VectorSpace:
    """A file of word2vec's text or binary format as a bundle."""
    words, vectors = read_vectors(source)
    space = VectorSpace(words, vectors)
    save_word_vectors(directory, space, results={"words": len(words)})
    return space


def export_word_vectors(space: VectorSpace, path: Path, *, binary: bool) -> None:
    """A file that gensim and other tools read; a word with a space in it would read as two. A file
    that exists is left alone.
    """
    refuse_existing(path)
    split = next((word for word in space.words if not word or len(word.split()) != 1), None)
    if split is not None:
        raise DataError(
            f"the word {split!r} holds a space, which the format cannot; leave it out of the model",
            f"词 {split!r} 含有空格，该格式无法表示；请将其从模型中去掉",
        )
    write_vectors(path, space.words, space.vectors, binary=binary)


def score_word_vectors(space: VectorSpace, files: Sequence[Path]) -> list[WordScore]:
    """A score for each list: analogies where lines begin with ":", pairs of words otherwise."""
    scores = []
    for path in files:
        lines = list(read_text_lines(path))
        name = path.name.removesuffix(".gz").removesuffix(".txt")
        if any(line.startswith(":") for line in lines):
            results = score_analogies(parse_analogies(lines, path), space.words, space.unit_vectors)
            scores += [
                WordScore(f"{name} {one.name}", one.value, one.used, one.total) for one in results
            ]
        else:
            pairs = parse_pairs(lines, path)
            if not pairs:
                raise DataError(
                    "holds no pair and no analogy; a line is `tiger cat 7.35`, or four words "
                    "under a line `: group`",
                    "没有词对也没有类比题；每行应为 `tiger cat 7.35`，或在 `: 组名` 行之下写四个词",
                    file=path,
                )
            scores.append(score_similarity(name, pairs, space.words, space.unit_vectors))
    return scores
