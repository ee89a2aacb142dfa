"""Vectors of words in sentences and what a probe reads off them: static ones say nothing of the
sense, ELMo's and BERT's do."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from headwise.data.labels.word_senses import Occurrence
from headwise.errors import CheckpointError, UsageError
from headwise.models.vector_space import VectorSpace
from headwise.tasks.pretraining.contextual_vectors import StaticReader, WordReader, load_word_reader
from headwise.tasks.pretraining.senses import MIN_TEST, MIN_TRAIN, hard_pairs, measure_senses
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.tasks.word_vectors.bundle import save_word_vectors
from tests.tasks.labels.test_task import MODEL as ENCODER
from tests.tasks.labels.test_task import TRAINING
from tests.tasks.pretraining.test_elmo_objective import MODEL, TEXT

NEAR = {"river": ("water", "boat", "fish"), "money": ("loan", "coin", "cash")}


def occurrences(count: int, key: int) -> list[Occurrence]:
    """`bank` between words that tell its sense, so that a language model has a reason to remember
    the one for the other."""
    generator = np.random.default_rng(key)
    found = []
    for number in range(2 * count):
        sense = ("river", "money")[number % 2]
        before, after = (str(word) for word in generator.choice(NEAR[sense], size=2))
        words = (str(generator.choice(["the", "a", "my"])), before, "bank", after)
        found.append(Occurrence("bank", sense, 2, words))
    return found


def test_a_static_vector_is_the_words_own() -> None:
    space = VectorSpace(["bank", "the"], np.arange(6.0).reshape(2, 3))
    (found,) = StaticReader(space).read(occurrences(3, 1))
    assert (found == space.vectors[0]).all()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("senses")
    lines = [" ".join(one.sentence) for one in occurrences(20, 2)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {"language": "en", "train": str(folder / "text.txt"), "row_tokens": 8}
    training = TRAINING | {"keep": {"best": "loss"}, "steps": 30, "batch_tokens": 128}
    for task, model in (
        ("bidirectional_language", MODEL),
        ("masked_language", ENCODER | {"layers": 2}),
    ):
        recipe = {"task": task, "data": data, "text": TEXT, "model": model, "training": training}
        train(recipe_from(recipe), run=folder / task)
    words = sorted({word for line in lines for word in line.split()})
    save_word_vectors(
        folder / "words", VectorSpace(words, np.random.default_rng(3).normal(size=(len(words), 7)))
    )
    return {name: folder / name for name in ("words", "bidirectional_language", "masked_language")}


def test_static_vectors_are_at_chance_and_contextual_ones_are_not(models: dict[str, Path]) -> None:
    readers = {name: load_word_reader(path) for name, path in models.items()}
    assert [reader.kind for reader in readers.values()] == ["static", "elmo", "encoder"]
    assert [reader.num_layers for reader in readers.values()] == [1, 3, 3]
    report, vectors = measure_senses(readers, occurrences(MIN_TRAIN, 4), occurrences(MIN_TEST, 5))
    assert report.mean_of_pairs("words") == (0.5,)
    for name in ("bidirectional_language", "masked_language"):
        layers = report.mean_of_pairs(name)
        assert layers[0] == 0.5
        assert layers[-1] > 0.9
    (word,) = report.words
    assert word.most_frequent.balanced == 0.5
    assert word.scores["words"].balanced == 0.5
    assert len(vectors.occurrences) == 2 * MIN_TEST
    plain = report.as_dict()
    assert plain["hard_pairs"]["words"] == [50.0]
    assert plain["words"][0]["chance"] == 50.0


def test_together_is_one_by_one_and_a_long_sentence_is_cut_around_the_word(
    models: dict[str, Path],
) -> None:
    given = occurrences(2, 6)
    for name in ("bidirectional_language", "masked_language"):
        reader = load_word_reader(models[name])
        together = reader.read(given)
        for number, one in enumerate(given):
            for layer, alone in zip(together, reader.read([one]), strict=True):
                np.testing.assert_allclose(layer[number], alone[0], atol=1e-5)
        (cut, same) = (
            reader.read(
                [Occurrence("bank", "", 9 + place, ("a",) * (9 + place) + ("bank",) + ("my",) * 9)]
            )[-1]
            for place in (0, 5)
        )
        np.testing.assert_allclose(cut, same, atol=1e-6)


def test_an_untrained_network_is_the_same_one_with_other_weights(models: dict[str, Path]) -> None:
    given = occurrences(2, 7)
    for name in ("bidirectional_language", "masked_language"):
        trained, fresh, again = (
            load_word_reader(models[name], untrained=one) for one in (False, True, True)
        )
        assert not np.allclose(trained.read(given)[-1], fresh.read(given)[-1], atol=1e-2)
        assert np.array_equal(again.read(given)[-1], fresh.read(given)[-1])


def test_the_rule_of_hard_pairs() -> None:
    def many(sense: str, count: int) -> list[Occurrence]:
        return [Occurrence("seal", sense, 0, ("seal",))] * count

    train_part = [
        *many("animal", 200),
        *many("stamp", 100),
        *many("singer", 99),
        *many("valve", 300),
    ]
    test_part = [*many("animal", 40), *many("stamp", 40), *many("singer", 40), *many("valve", 39)]
    assert hard_pairs("seal", train_part, test_part) == [("animal", "stamp")]


def test_senses_that_were_never_shown_are_left_out_and_counted() -> None:
    """They can only be answered wrongly; so with them, the same numbers and a count."""
    learn, ask = occurrences(5, 1), occurrences(3, 2)
    strange = [
        *(Occurrence("bank", "blood", 0, ("bank",)),) * 4,
        Occurrence("seal", "animal", 0, ("seal",)),  # its word has one sense to learn
        Occurrence("crane", "bird", 0, ("crane",)),  # its word has none
    ]
    alone = [Occurrence("seal", "animal", 0, ("seal",))]
    plain, _ = measure_senses({"nothing": _Nothing()}, learn, ask)
    report, vectors = measure_senses({"nothing": _Nothing()}, [*learn, *alone], [*strange, *ask])
    assert report.num_unlearnt == len(strange)
    assert (report.words, report.pairs) == (plain.words, plain.pairs)
    assert vectors.occurrences == tuple(ask)


class _Nothing:
    kind, num_layers = "nothing", 1

    def read(self, given: Sequence[Occurrence]) -> list[np.ndarray]:
        return [np.zeros((len(given), 2))]


def test_what_cannot_be_measured(models: dict[str, Path], tmp_path: Path) -> None:
    reader: WordReader = _Nothing()
    one = [Occurrence("bank", "river", 0, ("bank",))]
    with pytest.raises(
        UsageError, match="of 1 test occurrences none has a sense that the training part shows"
    ):
        measure_senses({"nothing": reader}, one, one)
    other = [Occurrence("bank", "blood", 0, ("bank",))]
    with pytest.raises(UsageError, match="of 1 test occurrences none"):
        measure_senses({"nothing": reader}, occurrences(2, 8), other)
    with pytest.raises(CheckpointError, match="is not a model"):
        load_word_reader(tmp_path)
    stranger = Occurrence("quay", "river", 0, ("quay",))
    with pytest.raises(UsageError, match="'quay' is not among the"):
        load_word_reader(models["words"]).read([stranger])
