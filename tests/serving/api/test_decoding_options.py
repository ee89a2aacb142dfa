"""From decoding options to settings: the recipe's own where nothing is given, always within the
limits.
"""

from typing import Any

import pydantic
import pytest

from headwise.decoding.choices import BeamSettings, GreedySettings, SamplingSettings
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.decoding.search.length_penalty import WuLength
from headwise.errors import SettingsError
from headwise.serving.api.decoding_options import add_phrases, choose_settings
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.limits import MAX_BEAM
from headwise.serving.schemas.translation import AnyDecodingOptions, DecodingOptions

RECIPE = BeamSettings(
    size=6,
    length_penalty=WuLength(),
    max_length=LengthLimit(factor=9.0, extra=4),
    forbidden=("no",),
    prefix="So",
)


def options(kind: str, **values: Any) -> DecodingOptions:
    """The options as a request gives them."""
    body: Any = pydantic.TypeAdapter(AnyDecodingOptions)
    found: DecodingOptions = body.validate_python({"kind": kind, **values})
    return found


def test_the_recipe_is_kept_and_bounded() -> None:
    found = choose_settings(RECIPE, None, n_best=1)
    assert isinstance(found, BeamSettings)
    assert (found.size, found.length_penalty, found.forbidden, found.prefix) == (
        6,
        WuLength(),
        ("no",),
        "",
    )
    assert found.max_length == LengthLimit(factor=2.0, extra=4, limit=512)
    assert choose_settings(GreedySettings(max_length=9_999), None, n_best=1).max_length == 512


def test_only_what_is_asked_for_changes() -> None:
    found = choose_settings(RECIPE, options("beam", size=3), n_best=2)
    assert isinstance(found, BeamSettings)
    assert (found.size, found.num_best, found.length_penalty) == (3, 2, WuLength())
    other = choose_settings(RECIPE, options("sampling", seed=5), n_best=2)
    assert other == SamplingSettings(seed=5, num_samples=2, forbidden=("no",))
    assert choose_settings(RECIPE, options("greedy"), n_best=1) == GreedySettings(forbidden=("no",))
    assert choose_settings(SamplingSettings(num_samples=4), None, n_best=1) == SamplingSettings()


def test_several_are_found_where_they_can_be() -> None:
    assert choose_settings(RECIPE, None, n_best=8) == choose_settings(
        RECIPE, None, n_best=1
    ).model_copy(update={"size": 8, "num_best": 8})
    assert choose_settings(GreedySettings(), None, n_best=3) == BeamSettings(size=5, num_best=3)
    with pytest.raises(Refusal, match="greedy search finds one"):
        choose_settings(RECIPE, options("greedy"), n_best=2)
    with pytest.raises(Refusal, match="the beam is narrower"):
        choose_settings(RECIPE, options("beam", size=2), n_best=3)


def test_forbidden_and_required_phrases() -> None:
    greedy = GreedySettings(forbidden=("no",))
    found = add_phrases(greedy, forbid=["喝", "no"], require=[])
    assert found == GreedySettings(forbidden=("no", "喝"))
    assert add_phrases(greedy, forbid=[], require=[]) is greedy
    beam = choose_settings(greedy, None, n_best=1, require=["Tag"])
    assert add_phrases(beam, forbid=[], require=["Tag"]) == BeamSettings(
        forbidden=("no",), required=("Tag",)
    )
    with pytest.raises(
        SettingsError, match="required phrase 'no Tag' holds 'no', which is forbidden"
    ):
        add_phrases(beam, forbid=[], require=["no Tag"])
    asked = choose_settings(RECIPE, options("greedy"), n_best=1, require=["Tag"])
    with pytest.raises(SettingsError, match="because they follow one path; use kind=beam"):
        add_phrases(asked, forbid=[], require=["Tag"])


def test_equal_wishes_are_equal_settings() -> None:
    one, two = (choose_settings(RECIPE, options("beam", size=4), n_best=1) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)


def test_the_widest_beam_of_a_request() -> None:
    assert BeamSettings.request_options["size"].high == MAX_BEAM
