"""Scores of translations against sacreBLEU's own functions."""

import json

import numpy as np
import pytest
import sacrebleu

from headwise.errors import DataError
from headwise.evaluation.metric_statistics import SentenceStatistics
from headwise.evaluation.translation import build_metrics, score_translations, tokenizer_for

CHINESE = (["猫坐在垫子上。", "我们明天去北京。"], ["猫坐在垫子上。", "明天我们去上海。"])


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_are_sacrebleus(references, systems, lowercase):
    hypotheses = [text.capitalize() for text in systems["good"]]
    found = score_translations(
        hypotheses, references, language="de", lowercase=lowercase, num_resamples=0
    )
    bleu = sacrebleu.BLEU(lowercase=lowercase)
    assert found.bleu.value == pytest.approx(bleu.corpus_score(hypotheses, [references]).score)
    assert found.bleu.signature == str(bleu.get_signature())
    assert found.chrf.value == pytest.approx(
        sacrebleu.CHRF(lowercase=lowercase).corpus_score(hypotheses, [references]).score
    )
    assert found.ter.value == pytest.approx(
        sacrebleu.TER(case_sensitive=not lowercase).corpus_score(hypotheses, [references]).score
    )
    if not lowercase:
        assert found.bleu.value == pytest.approx(
            sacrebleu.corpus_bleu(hypotheses, [references]).score
        )
    assert (found.bleu.low, found.bleu.high) == (None, None)
    assert "tok:13a" in found.bleu.signature
    assert f"version:{sacrebleu.__version__}" in found.bleu.signature


def test_chinese_is_cut_as_sacrebleu_cuts_it():
    found = score_translations(*CHINESE, language="zh", num_resamples=0)
    expected = sacrebleu.corpus_bleu(CHINESE[0], [CHINESE[1]], tokenize="zh")
    assert found.bleu.value == pytest.approx(expected.score)
    assert "tok:zh" in found.bleu.signature
    assert (
        found.bleu.value > score_translations(*CHINESE, language="en", num_resamples=0).bleu.value
    )


def test_tokenised_text_is_taken_as_it_stands():
    hypotheses, references = ["a b-c , d e f"], ["a b-c , d e g"]
    found = score_translations(hypotheses, references, pretokenized=True, num_resamples=0)
    assert found.bleu.value == pytest.approx(
        sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none").score
    )
    assert "tok:none" in found.bleu.signature


@pytest.mark.parametrize(
    ("language", "expected"),
    [("de", "13a"), ("zh", "zh"), ("zh-TW", "zh"), ("zh_CN", "zh"), ("ja", "char"), (None, "13a")],
)
def test_tokenizers_follow_the_language(language, expected):
    assert tokenizer_for(language) == expected
    assert tokenizer_for(language, pretokenized=True) == "none"


def test_several_references(references, systems):
    sets = [references, systems["also_good"]]
    found = score_translations(systems["good"], sets, num_resamples=0)
    assert found.bleu.value == pytest.approx(sacrebleu.corpus_bleu(systems["good"], sets).score)
    assert "nrefs:2" in found.bleu.signature


def test_interval_holds_the_score_and_follows_the_seed(references, systems):
    one = score_translations(systems["good"], references, num_resamples=300)
    for score in (one.bleu, one.chrf, one.ter):
        assert score.low < score.value < score.high
        assert score.num_resamples == 300
    assert one == score_translations(systems["good"], references, num_resamples=300)
    assert (
        one.bleu.low
        != score_translations(systems["good"], references, num_resamples=300, seed=7).bleu.low
    )


def test_interval_agrees_with_sacrebleus_own(references, systems):
    found = score_translations(systems["good"], references, num_resamples=1000).bleu
    theirs = sacrebleu.BLEU().corpus_score(systems["good"], [references], n_bootstrap=1000)
    assert (found.high - found.low) / 2 == pytest.approx(theirs._ci, rel=0.2)


def test_statistics_add_up(references, systems):
    for metric in build_metrics().values():
        statistics = SentenceStatistics.of(metric, systems["bad"], [references])
        assert len(statistics.rows) == len(references)
        assert statistics.score() == pytest.approx(
            metric.corpus_score(systems["bad"], [references]).score
        )
        twice = np.repeat(statistics.rows, 2, axis=0).sum(0)[None]
        assert statistics.score_sums(twice)[0] == pytest.approx(statistics.score())


def test_exact_match_counts_whole_sentences():
    found = score_translations(["a b", "c ", "d"], ["a b", "c", "e"], num_resamples=0)
    assert found.exact_match == pytest.approx(2 / 3)
    assert found.num_sentences == 3


def test_perfect_translation():
    found = score_translations(["a b c d e"] * 3, ["a b c d e"] * 3, num_resamples=50)
    assert (found.bleu.value, found.bleu.low, found.bleu.high) == pytest.approx((100, 100, 100))
    assert (found.ter.value, found.exact_match) == (0, 1)


def test_scores_are_plain_data(references, systems):
    found = score_translations(systems["good"], references, num_resamples=20)
    assert json.loads(json.dumps(found.as_dict()))["bleu"] == found.bleu.as_dict()
    assert str(found.bleu).startswith(f"BLEU {found.bleu.value:.1f} [")
    assert str(score_translations(["a"], ["a"], num_resamples=0).ter).startswith("TER 0.0 (nrefs")


def test_nothing_to_score_is_refused():
    with pytest.raises(DataError, match="no translations to score; give at least one"):
        score_translations([], [])


def test_unequal_numbers_are_refused():
    with pytest.raises(
        DataError, match="2 translations but 1 references; give one reference line for each"
    ):
        score_translations(["a", "b"], ["a"])
