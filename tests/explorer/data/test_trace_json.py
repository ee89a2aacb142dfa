"""Weights as whole numbers: read back within half a step, head by head."""

import base64

import numpy as np
import pytest

from headwise.explorer.data.attention_maps import AttentionMap
from headwise.explorer.data.trace_json import Bits, pack_map, pack_side
from tests.explorer.examples import ENGLISH, random_weights


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("heads", [None, (2,), (1, 0)])
def test_weights_come_back(bits: Bits, heads: tuple[int, ...] | None) -> None:
    weights = random_weights(3, 5, 7, key="packing")
    packed = pack_map(AttentionMap("decoder.1.cross", "cross", 1, weights), heads=heads, bits=bits)
    chosen = list(heads or range(3))
    numbers = np.frombuffer(base64.b64decode(packed["weights"]), np.uint8 if bits == 8 else "<u2")
    back = numbers.reshape(packed["shape"]) * packed["scale"] / (2**bits - 1)
    assert packed["heads"] == chosen
    assert np.abs(back - weights[chosen]).max() <= packed["scale"] / (2 ** (bits + 1) - 2) * (
        1 + 1e-9
    )


def test_a_side_tells_words_and_marks() -> None:
    packed = pack_side(ENGLISH, "en")
    assert packed["words"][packed["word_of_piece"][5]] == "tired"
    assert packed["marks"] == [False] * (len(ENGLISH) - 1) + [True]


def test_negative_weights_come_back() -> None:
    weights = random_weights(2, 3, 5, key="signed") - 0.3
    packed = pack_map(AttentionMap("decoder.0.cross", "cross", 0, weights), bits=8)
    numbers = np.frombuffer(base64.b64decode(packed["weights"]), np.uint8).reshape(packed["shape"])
    assert packed["low"] == weights.min() < 0
    assert np.abs(packed["low"] + numbers * packed["scale"] / 255 - weights).max() <= packed[
        "scale"
    ] / 510 * (1 + 1e-9)
    assert pack_map(AttentionMap("decoder.0.cross", "cross", 0, np.abs(weights)))["low"] == 0
