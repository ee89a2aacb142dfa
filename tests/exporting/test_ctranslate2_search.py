"""A search in CTranslate2's words, and the limit of a sentence as it stands in the exported
README."""

from typing import Any

import pytest

from headwise.decoding.rules.length_limit import LengthLimit, limit_for
from headwise.errors import UsageError
from headwise.exporting.ctranslate2_search import ForeignSearch, translate_search
from tests.decoding.token_mapping import TokenMappingSettings
from tests.tasks.tiny import tiny_recipe


def test_a_search_in_other_words() -> None:
    def search(decoding: str) -> ForeignSearch:
        return translate_search(tiny_recipe(f"decoding={decoding}").decoding)

    shared = {"min_decoding_length": 0, "return_end_token": True, "max_input_length": 0}
    assert search(
        "{kind: greedy, max_length: {factor: 1.5, extra: 3, limit: 60}}"
    ) == ForeignSearch({**shared, "beam_size": 1}, LengthLimit(factor=1.5, extra=3, limit=60), ())
    beam = search(
        "{kind: beam, size: 4, stop: filled, length_penalty: {kind: average, alpha: 0.7}, "
        "max_length: 91}"
    )
    assert beam == ForeignSearch({**shared, "beam_size": 4, "length_penalty": 0.7}, 91, ())
    patient = search(
        "{kind: beam, size: 4, num_best: 3, length_penalty: {kind: none}, min_length: 2, "
        "no_repeat_ngrams: 3, allow_unknown: false}"
    )
    assert patient.options == {
        **shared,
        "beam_size": 4,
        "num_hypotheses": 3,
        "patience": 2,
        "length_penalty": 0,
        "min_decoding_length": 2,
        "no_repeat_ngram_size": 3,
        "disable_unk": True,
    }
    other = search(
        "{kind: beam, length_penalty: {kind: wu}, coverage_penalty: 0.2, at_limit: end, "
        "prefix: Der}"
    )
    assert [name.split(" ")[0].removeprefix("decoding.") for name in other.left_out] == [
        "prefix",
        "at_limit=end",
        "length_penalty.kind=wu",
        "stop=likely",
        "coverage_penalty",
    ]
    drawn = search("{kind: sampling, temperature: 0.8, top_k: 7, top_p: 0.9, num_samples: 2}")
    assert {
        "sampling_topk": 7,
        "sampling_topp": 0.9,
        "sampling_temperature": 0.8,
        "num_hypotheses": 2,
    }.items() <= drawn.options.items()
    assert drawn.left_out == ("decoding.seed (other random numbers)",)
    drafted = search("{kind: drafted, accept: {kind: relaxed}}")
    assert drafted.options == {**shared, "beam_size": 1}
    assert drafted.left_out == (
        "decoding.drafter (greedy search, one token a step)",
        "decoding.accept.kind=relaxed",
    )


@pytest.mark.parametrize(
    "limit", ["7", "{factor: 1.7, extra: 2, limit: 19}", "{factor: 0.01, extra: 0}"]
)
def test_the_limit_that_is_written_is_the_limit(limit: str) -> None:
    search = translate_search(
        tiny_recipe(f"decoding={{kind: greedy, max_length: {limit}}}").decoding
    )
    written = [eval(search.write_limit("count"), {"count": count}) for count in range(40)]
    assert written == [limit_for(search.max_length, count) for count in range(40)]
    assert max(written) <= search.longest_output


def test_a_kind_without_a_counterpart_is_refused() -> None:
    settings: Any = TokenMappingSettings()
    with pytest.raises(UsageError, match=r"no counterpart to decoding\.kind=token_mapping"):
        translate_search(settings)
