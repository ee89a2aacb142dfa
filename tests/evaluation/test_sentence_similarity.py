"""Sentence BLEU: equal to sacreBLEU's function, and in the order of hand-made closeness."""

import sacrebleu

from headwise.evaluation.sentence_similarity import sentence_bleu

REFERENCE = "der alte Hund schläft im Garten ."


def test_it_is_sacrebleus() -> None:
    for hypothesis in ("der Hund schläft im Garten .", "ein Hund", "", REFERENCE):
        theirs = sacrebleu.sentence_bleu(hypothesis, [REFERENCE]).score
        assert sentence_bleu("de")(hypothesis, REFERENCE) == theirs


def test_closer_is_greater() -> None:
    closeness = sentence_bleu("de")
    falling = [REFERENCE, "der alte Hund schläft im Haus .", "der Hund liegt im Garten .", "nein"]
    scores = [closeness(one, REFERENCE) for one in falling]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_language_and_case() -> None:
    assert sentence_bleu("zh")("那只狗很老。", "那只猫很老。") > 10
    upper = sentence_bleu("de", lowercase=True)(REFERENCE.upper(), REFERENCE)
    assert upper > 99 > sentence_bleu("de")(REFERENCE.upper(), REFERENCE)
