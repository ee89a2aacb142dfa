"""Hand-made traces for the tests of the explorer: weights are a pure function of a key."""

import numpy as np
from numpy.typing import NDArray

from headwise.explorer.data.attention_maps import AttentionMap, Trace
from headwise.randomness import numpy_generator

NUM_LAYERS, NUM_HEADS = 2, 3
ENGLISH = ("▁The", "▁animal", "▁was", "▁too", "▁tir", "ed", "▁because", "▁it", "▁ran", ".", "</s>")
GERMAN = ("▁Das", "▁Tier", "▁war", "▁müde", ",", "▁weil", "▁es", "▁lief", ".", "</s>")
CHINESE = ("▁", "动物", "太", "累", "了", "。", "</s>")
HOSTILE = ("▁<img/src=x/onerror=alert(1)>", "▁</script><!--", "▁$x", "▁\\frac$", "▁&amp;", "</s>")


def random_weights(*shape: int, key: str) -> NDArray[np.float64]:
    """Rows that sum to one."""
    raw = numpy_generator("explorer tests", key).exponential(size=shape)
    return raw / raw.sum(axis=-1, keepdims=True)


def make_trace(
    source: tuple[str, ...] = ENGLISH, target: tuple[str, ...] = GERMAN, *, title: str = "tired"
) -> Trace:
    maps: list[AttentionMap] = []
    for layer in range(NUM_LAYERS):
        sizes = {
            "encoder_self": (len(source), len(source)),
            "decoder_self": (len(target), len(target)),
            "cross": (len(target), len(source)),
        }
        for kind, size in sizes.items():
            weights = random_weights(NUM_HEADS, *size, key=f"{kind} {layer}")
            maps.append(AttentionMap(f"{kind}.{layer}", kind, layer, weights))  # type: ignore[arg-type]
    spell = "".join
    return Trace(
        spell(source),
        spell(target),
        source,
        target,
        ("<s>", *target[:-1]),
        tuple(maps),
        title,
        "en",
        "",
    )
