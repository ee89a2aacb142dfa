"""Search, alternatives, tree and attention of one sentence: each agrees with the others, and with
the translator."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from headwise.decoding.results import Hypothesis, SearchTrace, TracedToken
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import UsageError
from headwise.explorer.data import translation_trace
from headwise.explorer.data.next_token_choices import describe_step, describe_steps, name_token
from headwise.explorer.data.occlusion import occlude
from headwise.explorer.data.search_tree import build_tree
from headwise.explorer.data.translation_trace import (
    MapChoice,
    TooManyValuesError,
    all_maps,
    trace_sentence,
)
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import EOS

TEXT = "The old dog saw the child."
BEAM = BeamSettings(size=3, num_best=3, max_length=11)


def test_the_search_is_the_translators(translator: Translator) -> None:
    trace = trace_sentence(translator, TEXT, BEAM, maps=MapChoice(), num_alternatives=5)
    expected = translator([TEXT], BEAM, attention=True)[0]
    assert list(trace.texts) == [candidate.text for candidate in expected.n_best]
    assert trace.source_pieces == expected.source_pieces
    assert expected.attention is not None
    assert {one.name for one in trace.maps} == expected.attention.maps.keys()
    for one in trace.maps:
        np.testing.assert_array_equal(one.weights, expected.attention.maps[one.name])


def test_every_step_tells_the_log_probability_the_search_found(translator: Translator) -> None:
    trace = trace_sentence(translator, TEXT, BEAM, num_alternatives=7)
    best = trace.hypotheses[0]
    told = [decision.chosen.log_probability for decision in trace.decisions]
    np.testing.assert_allclose(told, best.token_log_probabilities, atol=1e-5)
    for decision in trace.decisions:
        values = [choice.log_probability for choice in decision.best]
        assert values == sorted(values, reverse=True)
        assert len(values) == 7
        if decision.rank <= 7:
            assert decision.best[decision.rank - 1].log_probability == pytest.approx(
                decision.chosen.log_probability
            )


def test_rank_and_entropy_of_a_known_distribution(translator: Translator) -> None:
    size = translator.tokenizers.target.size
    scores = torch.full((size,), float("-inf"))
    scores[[7, 9, EOS]] = torch.tensor([0.5, 0.25, 0.25]).log()
    found = describe_step(translator.tokenizers.target, scores, 9, num_best=2)
    assert found.rank == 2
    assert found.entropy == pytest.approx(1.5 * math.log(2))
    assert found.best[0].token == 7
    assert name_token(translator.tokenizers.target, EOS) == "</s>"


def test_a_forced_beginning_is_kept_and_weighed_as_the_model_sees_it(
    translator: Translator,
) -> None:
    prefix = translator.tokenizers.target.encode("Die Katze")
    trace = trace_sentence(translator, TEXT, BEAM, prefix=prefix, num_alternatives=3)
    assert trace.tokens[: len(prefix)] == tuple(prefix)
    source = translator.tokenizers.source.encode(TEXT)
    again = describe_steps(
        translator, source, trace.tokens, num_best=3, finished=trace.hypotheses[0].finished
    )
    assert again == trace.decisions


def test_paths_of_the_tree_spell_the_hypotheses(translator: Translator) -> None:
    trace = trace_sentence(translator, TEXT, BEAM)
    nodes = {node.number: node for node in trace.tree.nodes}
    for leaf, hypothesis in zip(trace.tree.leaves, trace.hypotheses, strict=True):
        path, number = [], leaf
        while number:
            path.append(nodes[number])
            number = nodes[number].parent
        path.reverse()
        assert tuple(node.token for node in path if node.token != EOS) == hypothesis.tokens
        assert nodes[leaf].fate == "finished"
        assert nodes[leaf].score == pytest.approx(hypothesis.score, abs=1e-5)
        totals = np.cumsum([node.log_probability for node in path])
        np.testing.assert_allclose([node.total for node in path], totals, atol=1e-4)
    for step in range(1, max(node.step for node in trace.tree.nodes)):
        assert (
            sum(node.fate == "kept" for node in trace.tree.nodes if node.step == step) <= BEAM.size
        )


def test_a_tree_worked_by_hand() -> None:
    # a beam of two: "a" and "b" are kept, then "b" ends and "a c" is kept, "a d" pruned
    steps = (
        (
            TracedToken(0, 4, -1.0, -1.0, -1.0, "kept", 0),
            TracedToken(0, 5, -2.0, -2.0, -2.0, "kept", 1),
        ),
        (
            TracedToken(1, EOS, -0.5, -2.5, -1.25, "finished", None),
            TracedToken(0, 6, -1.0, -2.0, -1.0, "kept", 0),
            TracedToken(0, 7, -3.0, -4.0, -2.0, "pruned", None),
        ),
    )
    tree = build_tree(
        SearchTrace(steps), [Hypothesis((5,), -2.5, -1.25, (-2.0, -0.5), finished=True)]
    )
    assert [(node.number, node.parent, node.step) for node in tree.nodes] == [
        (1, 0, 1),
        (2, 0, 1),
        (3, 2, 2),
        (4, 1, 2),
        (5, 1, 2),
    ]
    assert tree.leaves == (3,)


def test_only_what_was_asked_for_is_given_and_not_too_much(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trace_sentence(
        translator, TEXT, BEAM, maps=MapChoice(("cross",), layers=(0,), heads=(1,))
    )
    assert [(found.kind, found.layer) for found in one.maps] == [("cross", 0)]
    assert set(one.present) == {("encoder_self", 0, 2), ("decoder_self", 0, 2), ("cross", 0, 2)}
    with pytest.raises(UsageError, match="there is no layer 7; there are"):
        trace_sentence(translator, TEXT, BEAM, maps=MapChoice(layers=(0, 7)))
    with pytest.raises(UsageError, match="there is no head 2; heads count from 0"):
        trace_sentence(translator, TEXT, BEAM, maps=MapChoice(heads=(0, 2)))
    count = len(one.source_pieces) * len(one.target_pieces)
    monkeypatch.setattr(translation_trace, "MAX_VALUES", count)
    assert trace_sentence(translator, TEXT, BEAM, maps=MapChoice(("cross",), heads=(0,))).maps
    with pytest.raises(
        TooManyValuesError,
        match=f"this asks for {2 * count:,} attention weights, at most {count:,} are sent",
    ):
        trace_sentence(translator, TEXT, BEAM, maps=MapChoice(("cross",)))


def test_what_cannot_be_traced_is_said(translator: Translator) -> None:
    with pytest.raises(UsageError, match="the sentence is empty; give some words"):
        trace_sentence(translator, "  ", BEAM)
    with pytest.raises(
        UsageError, match="the prefix holds a token outside the vocabulary; tokens are 0 to"
    ):
        trace_sentence(translator, TEXT, BEAM, prefix=[translator.tokenizers.target.size])


def test_leaving_a_word_out_is_one_forward_pass_without_it(translator: Translator) -> None:
    source, target = (
        translator.tokenizers.source.encode(TEXT),
        translator.tokenizers.target.encode("Der Hund sah."),
    )
    found = occlude(translator, source, target)
    assert found.words == ("The", "old", "dog", "saw", "the", "child", ".")
    assert found.changes.shape == (7, len(target) + 1)
    dog = [
        piece
        for piece, text in zip(source, translator.tokenizers.source.pieces(source), strict=True)
    ]
    start = len(translator.tokenizers.source.encode("The old"))
    stop = len(translator.tokenizers.source.encode("The old dog"))
    without = describe_steps(
        translator, dog[:start] + dog[stop:], target, num_best=1, finished=True
    )
    whole = describe_steps(translator, source, target, num_best=1, finished=True)
    expected = [
        a.chosen.log_probability - b.chosen.log_probability
        for a, b in zip(whole, without, strict=True)
    ]
    np.testing.assert_allclose(found.changes[2], expected, atol=1e-5)
    assert found.totals[2] == pytest.approx(sum(expected), abs=1e-4)
    assert found.log_probability == pytest.approx(
        sum(step.chosen.log_probability for step in whole), abs=1e-4
    )


def test_the_only_word_can_be_left_out(translator: Translator) -> None:
    source = translator.tokenizers.source.encode("dog")
    assert np.isfinite(occlude(translator, source, [7, 9]).changes).all()


def test_a_model_without_attention_has_no_maps() -> None:
    model = RecurrentTranslatorSettings.model_validate({"attention": {"kind": "none"}})
    blind: Any = SimpleNamespace(recipe=SimpleNamespace(model=model))
    assert all_maps(blind, [7], [9]) == ()
