"""Rewards of single sentences, against sacreBLEU and by hand."""

import math
import random

import pytest
import sacrebleu

from headwise.evaluation.rewards.choices import reward_kinds
from headwise.evaluation.rewards.chrf import CharacterF
from headwise.evaluation.rewards.constant import ConstantReward
from headwise.evaluation.rewards.declaration import TextForm
from headwise.evaluation.rewards.exact_match import ExactMatch
from headwise.evaluation.rewards.sentence_bleu import SentenceBleu, Smoothing

WORDS = ["the", "a", "Dog", ",", "don't", "3,5"]


def draw_sentences(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(WORDS, k=generator.randrange(length % 17 + 1)))
        for length in range(count)
    ]


@pytest.mark.parametrize("smoothing", ["exp", "add_k", "floor"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_sentence_bleu_is_that_of_sacrebleu(smoothing: Smoothing, lowercase: bool) -> None:
    ours, theirs = draw_sentences(307, 1), draw_sentences(307, 2)
    form = TextForm("de", lowercase=lowercase)
    reward = SentenceBleu(smoothing=smoothing).build(form)(ours, theirs)
    expected = [
        sacrebleu.sentence_bleu(
            own, [other], smooth_method=smoothing.replace("_", "-"), lowercase=lowercase
        ).score
        for own, other in zip(ours, theirs, strict=True)
    ]
    assert len(set(expected)) > 50
    assert [100 * one for one in reward] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("form", "tokenize"), [(TextForm("zh"), "zh"), (TextForm("de", pretokenized=True), "none")]
)
def test_words_are_those_of_the_language(form: TextForm, tokenize: str) -> None:
    text, reference = "那只狗,很累.", "这只狗很累."
    expected = sacrebleu.sentence_bleu(text, [reference], tokenize=tokenize).score / 100
    assert SentenceBleu().build(form)([text], [reference]) == pytest.approx([expected])


def test_chrf_is_that_of_sacrebleu() -> None:
    ours, theirs = draw_sentences(31, 3), draw_sentences(31, 4)
    expected = [
        sacrebleu.sentence_chrf(own, [other]).score / 100
        for own, other in zip(ours, theirs, strict=True)
    ]
    assert CharacterF().build(TextForm("de"))(ours, theirs) == pytest.approx(expected)


def test_exact_match_and_constant() -> None:
    ours, theirs = [" a b", "a B", "a"], ["a b ", "a b", "b"]
    assert ExactMatch().build(TextForm())(ours, theirs) == [1, 0, 0]
    assert ExactMatch().build(TextForm(lowercase=True))(ours, theirs) == [1, 1, 0]
    assert ConstantReward(value=0.3).build(TextForm())(ours, theirs) == [0.3] * 3


@pytest.mark.parametrize("kind", [*reward_kinds()])
def test_a_right_translation_is_never_worse_than_a_wrong_one(kind: str) -> None:
    reward = reward_kinds()[kind].example().build(TextForm("de"))  # type: ignore[attr-defined]
    texts = ["der Hund schläft .", "die Katze", ""]
    right, wrong, nothing = reward(texts, texts[:1] * 3)
    assert 1 >= right >= wrong >= nothing >= 0
    assert math.isclose(right, 1)
