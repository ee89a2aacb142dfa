"""Which translations are kept: the modes, and one hand-made case for each filter."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from headwise.data.pairs.filtering import FilterSettings
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import UsageError
from headwise.evaluation.sentence_similarity import sentence_bleu
from headwise.tasks.translation.distillation_search import REASONS, Distiller, choose_search
from headwise.tasks.translation.distillation_sources import SourceLine
from headwise.tasks.translation.source_sentences import Candidate
from tests.tasks.tiny import tiny_recipe

LONGEST = 11


class Teacher:
    """Answers from a table; a word is a token."""

    target_language = "de"
    longest_source = SimpleNamespace(tokens=LONGEST)
    recipe = SimpleNamespace(
        evaluation=SimpleNamespace(pretokenized=False, lowercase=False),
    )
    tokenizers = SimpleNamespace(target=SimpleNamespace(encode=str.split))

    def __init__(self, answers: dict[str, Sequence[tuple[str, bool]]]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, GenerationSettings]] = []

    def encode(self, text: str) -> list[str]:
        return text.split()

    def stream_sentences(self, sentences: Any, settings: GenerationSettings) -> Iterator[Any]:
        for sentence in sentences:
            self.asked.append((sentence.text, settings))
            yield SimpleNamespace(
                n_best=tuple(
                    Candidate(text, -rank, -rank, is_whole=is_whole)
                    for rank, (text, is_whole) in enumerate(self.answers[sentence.text])
                )
            )


def distiller(teacher: Teacher, **changes: Any) -> Distiller:
    settings: dict[str, Any] = {
        "mode": "best",
        "keep": 1,
        "filters": FilterSettings(),
        "row_tokens": 16,
        **changes,
    }
    return Distiller(teacher, BeamSettings(), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "answer", "reason"),
    [
        ("a b c", ("x y z", True), None),
        ("a b c", ("", True), "empty"),
        ("a b c", ("\u200b\x07 ", True), None),
        ("a b c", ("\x07 ", True), "empty"),
        ("a b c", ("x y", False), "unfinished"),
        ("a b c", ("a b c", True), "identical"),
        ("a", (" ".join("x" * 15), True), None),  # 15 + 4 <= 4 (1 + 4)
        ("a", (" ".join("x" * 16), True), "max_tokens"),  # 15 and the end fill the row of 16
        (" ".join("a" * 10), ("x", True), None),
        (" ".join("a" * 11), ("x", True), "unreadable_source"),
    ],
)
def test_every_filter(source: str, answer: tuple[str, bool], reason: str | None) -> None:
    pairs, dropped = distiller(Teacher({source: [answer]})).translate(
        [SourceLine(source, None)], shard=0
    )
    assert dropped == ({} if reason is None else {reason: 1})
    assert len(pairs) == (reason is None)
    assert set(dropped) <= set(REASONS)


def test_the_ratio_of_lengths_is_that_of_the_data() -> None:
    teacher = Teacher({"a": [("x " * 7, True)]})
    for ratio, kept in ((2.0, 0), (2.2, 1), (None, 1)):  # (7 + 4) / (1 + 4) = 2.2
        pairs, dropped = distiller(teacher, filters=FilterSettings(max_ratio=ratio)).translate(
            [SourceLine("a", None)], shard=0
        )
        assert len(pairs) == kept
        assert dropped["max_ratio"] == 1 - kept


def test_the_next_one_takes_the_place_of_one_left_out() -> None:
    answers = [("x", True), ("x", True), ("", True), ("y", True), ("z", True), ("w", True)]
    pairs, dropped = distiller(Teacher({"a": answers}), keep=3).translate(
        [SourceLine("a", None)], shard=0
    )
    assert [pair.target for pair in pairs] == ["x", "y", "z"]
    assert dropped == {"duplicate": 1, "empty": 1}


def test_closest_is_the_highest_sentence_bleu_and_of_equals_the_more_probable() -> None:
    reference = "der alte Hund schläft im Garten"
    answers = ["ein Hund ruht", "der Hund schläft im Garten", reference, "ganz anders", "nichts"]
    teacher = Teacher({"a b c d e": [(text, True) for text in answers]})
    pairs, _ = distiller(teacher, mode="closest", keep=5).translate(
        [SourceLine("a b c d e", reference)], shard=0
    )
    closeness = sentence_bleu("de")
    ranked = sorted(answers, key=lambda text: (-closeness(text, reference), answers.index(text)))
    assert [pair.target for pair in pairs] == ranked
    assert ranked[:2] == [reference, "der Hund schläft im Garten"]
    assert ranked.index("ganz anders") < ranked.index("nichts"), "both have no word of it"
    assert pairs[0].reference == reference


def test_sentences_stay_in_order_with_several_translations_and_some_left_out() -> None:
    teacher = Teacher({"a": [("x", True), ("y", True)], "b": [("", True)] * 2, "c": [("z", True)]})
    lines = [SourceLine(text, None) for text in ("a", "b", "a " * LONGEST, "c")]
    pairs, dropped = distiller(teacher, keep=2).translate(lines, shard=3)
    assert [(pair.source, pair.target) for pair in pairs] == [("a", "x"), ("a", "y"), ("c", "z")]
    assert dropped == {"empty": 2, "unreadable_source": 1}
    assert [text for text, _ in teacher.asked] == ["a", "b", "c"]


def test_each_shard_draws_numbers_of_its_own() -> None:
    teacher = Teacher({"a": [("x", True)]})
    drawn = Distiller(
        teacher,  # type: ignore[arg-type]
        SamplingSettings(seed=5),
        mode="sampled",
        keep=1,
        filters=FilterSettings(),
        row_tokens=16,
    )
    for shard in (0, 1, 0):
        drawn.translate([SourceLine("a", None)], shard=shard)
    first, second, again = (settings for _, settings in teacher.asked)
    assert first == again != second


def test_the_search_of_each_mode() -> None:
    greedy = tiny_recipe()
    limit = greedy.decoding.max_length
    assert isinstance(greedy.decoding, GreedySettings)
    assert choose_search(greedy, "best", 1) == BeamSettings(max_length=limit)
    assert choose_search(greedy, "best", 7) == BeamSettings(max_length=limit, size=7, num_best=7)
    assert choose_search(greedy, "best", 1, ["kind=greedy"]) == greedy.decoding
    assert choose_search(greedy, "closest", 1) == BeamSettings(max_length=limit, num_best=5)
    sampled = choose_search(greedy, "sampled", 3, ["temperature=0.5"])
    assert sampled == SamplingSettings(max_length=limit, num_samples=3, temperature=0.5)
    beam = tiny_recipe("decoding={kind: beam, size: 3, max_length: 17}")
    assert choose_search(beam, "best", 1) == beam.decoding
    assert choose_search(beam, "closest", 1, ["size=4"]).num_hypotheses == 4


def test_a_search_that_cannot_give_several_is_refused() -> None:
    for mode, keep in (("best", 2), ("closest", 1)):
        with pytest.raises(UsageError, match=f"--mode {mode} --keep {keep} needs several"):
            choose_search(tiny_recipe(), mode, keep, ["kind=greedy"])  # type: ignore[arg-type]


class OnePass(GenerationSettings):
    """A kind without steps."""

    kind: str = "one_pass"


def test_a_teacher_without_steps_cannot_be_sampled() -> None:
    recipe = tiny_recipe().model_copy(update={"decoding": OnePass()})
    with pytest.raises(UsageError, match="decodes with kind=one_pass; use --mode best"):
        choose_search(recipe, "sampled", 1)


def test_the_worst_share_is_left_out_and_noise_is_added() -> None:
    class Scored(Teacher):
        def stream_sentences(self, sentences: Any, settings: GenerationSettings) -> Iterator[Any]:
            for sentence, value in zip(sentences, (-3.0, -40.0, -9.0, -2.0), strict=True):
                text = f"x y z {sentence.text} w"
                yield SimpleNamespace(n_best=(Candidate(text, -value, value, is_whole=True),))

    lines = [SourceLine(text, None) for text in ("a", "b", "c", "d")]
    for share, kept in ((0.0, "abcd"), (0.24, "abcd"), (0.25, "acd"), (0.5, "ad"), (0.99, "d")):
        pairs, dropped = distiller(Scored({}), drop_worst=share).translate(lines, shard=3)
        assert "".join(pair.source for pair in pairs) == kept
        assert dropped == ({"worst": 4 - len(kept)} if len(kept) < 4 else {})
    noisy = distiller(Scored({}), noise=True)
    first, again, other = (noisy.translate(lines, shard=one)[0] for one in (1, 1, 2))
    assert first == again != other
    assert [pair.source for pair in first] == list("abcd")
    assert any(pair.target != f"x y z {pair.source} w" for pair in first)
