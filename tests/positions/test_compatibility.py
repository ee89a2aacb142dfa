"""Positions and kernels that cannot stand together are told apart when a model is built."""

import pytest

from headwise.attention.choices import BUILT_IN
from headwise.errors import UsageError
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.settings import check_settings

KERNELS = {"full": {}, "fused": {}, "window": {}, "linear": {}, "reformer": {}}
FITS = {
    "full": {"rotary", "alibi", "t5", "relative", "transformer_xl", "continuous"},
    "fused": {"rotary", "alibi", "t5", "transformer_xl", "continuous"},
    "window": {"rotary", "alibi", "t5", "continuous"},
    "linear": {"rotary", "continuous"},
    "reformer": {"rotary"},
}


def build(kernel: str, position: str, *, decoder: str | None = None) -> None:
    stack = {"layers": 1, "heads": 2, "attention": {"kind": kernel}}
    after = stack | {"attention": {"kind": decoder or kernel}}
    data = {"dim": 8, "encoder": stack, "decoder": after, "position": {"kind": position}}
    settings = check_settings(EncoderDecoderSettings, data)
    build_model(settings, source_size=11, target_size=11, generator=None)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_fits_is_built_and_the_rest_refused(kernel: str) -> None:
    for position in FITS["full"]:
        if position in FITS[kernel]:
            build(kernel, position)
            continue
        with pytest.raises(
            UsageError,
            match=f"position.kind={position} (adds|marks) .* attention.kind={kernel} cannot take; "
            "use",
        ):
            build(kernel, position)


def test_exchanged_scores_are_told_to_be_left_as_they_are() -> None:
    attention = {"kind": "full", "score": {"kind": "additive"}}
    data = {
        "dim": 8,
        "encoder": {"layers": 1, "heads": 2, "attention": attention},
        "position": {"kind": "relative"},
    }
    settings = check_settings(EncoderDecoderSettings, data)
    with pytest.raises(
        UsageError, match=r"leave the score and the weights of attention as they are by default"
    ):
        build_model(settings, source_size=11, target_size=11, generator=None)


def test_a_refusal_names_every_kernel_that_takes_it() -> None:
    """The kernels in the message are those that can be built in an encoder, neither more nor
    fewer."""
    kinds = [kind.word() for kind in BUILT_IN if "encoder" in kind.roles()]
    for position, refused_by in (
        ("alibi", "linear"),
        ("t5", "linformer"),
        ("transformer_xl", "performer"),
        ("continuous", "reformer"),
    ):
        able = []
        for kind in kinds:
            try:
                build(kind, position, decoder="fused")
                able.append(kind)
            except UsageError:
                continue
        with pytest.raises(UsageError, match=r"cannot take; use attention\.kind=") as caught:
            build(refused_by, position)
        named = caught.value.en.partition("use attention.kind=")[2].partition(", or position")[0]
        assert named.replace(" or ", ", ").split(", ") == able, position
