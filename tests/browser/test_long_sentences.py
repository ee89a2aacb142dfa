"""Long sentences: drawn in time, walked through without waiting, fetched layer by layer where a
reply cannot hold them."""

import base64
from typing import Any

import numpy as np
from playwright.sync_api import Route, expect

from tests.browser.conftest import Visit, Watched
from tests.explorer.examples import random_weights


def synthetic(num_pieces: int, num_heads: int) -> dict[str, Any]:
    """A trace of a long sentence, as the server would send it."""
    side = {
        "language": "en", "pieces": [f"▁word{i}" for i in range(num_pieces)],
        "words": [f"word{i}" for i in range(num_pieces)], "word_of_piece": list(range(num_pieces)),
        "marks": [False] * num_pieces,
    }  # fmt: skip
    weights = random_weights(num_heads, num_pieces, num_pieces, key="long")
    numbers = np.rint(weights / weights.max() * 65535).astype("<u2")
    packed = {
        "name": "decoder.0.cross", "kind": "cross", "layer": 0, "heads": list(range(num_heads)),
        "shape": list(weights.shape), "low": 0.0, "scale": float(weights.max()), "bits": 16,
        "weights": base64.b64encode(numbers.tobytes()).decode(),
    }  # fmt: skip
    return {
        "model": "tiny", "source_text": "", "sentences": [], "target_text": "", "source": side,
        "target": side, "target_input": side, "prefix_length": 0, "n_best": [{"tokens": []}],
        "steps": [], "tree": None, "attention": [{"kind": "cross", "layer": 0, "heads": num_heads}],
        "maps": [packed],
    }  # fmt: skip


def drawing_times(watched: Watched) -> list[float]:
    """Milliseconds of each drawing of all heads, all the work between the reply and the pixels."""
    return watched.page.evaluate(
        "performance.getEntriesByName('headwise-heads').map(entry => entry.duration)"
    )


def test_eight_heads_of_256_by_256_are_drawn_within_100_ms(visit: Visit) -> None:
    watched = visit()
    watched.page.route("**/v1/trace", lambda route: route.fulfill(json=synthetic(256, 8)))
    watched.show("heads?text=long&level=piece")
    for scale in ("logarithmic", "linear", "logarithmic", "linear"):
        watched.page.get_by_role("radio", name=scale).click()
    times = drawing_times(watched)
    assert len(times) == 5
    assert min(times) < 100, times


def test_a_sentence_of_512_pieces_stays_usable(visit: Visit) -> None:
    watched = visit()
    watched.page.route("**/v1/trace", lambda route: route.fulfill(json=synthetic(512, 2)))
    watched.show("heads?text=long&level=piece")
    walking = """() => {
        const matrix = document.querySelector(".matrix");
        const down = {key: "ArrowDown", cancelable: true};
        return [1, 2, 3, 4, 5].map(() => {
            const start = performance.now();
            matrix.dispatchEvent(new KeyboardEvent("keydown", down));
            matrix.getBoundingClientRect();
            return performance.now() - start;
        });
    }"""
    watched.page.locator(".matrix").focus()
    assert min(watched.page.evaluate(walking)) < 50
    assert watched.page.locator(".matrix").evaluate(
        "matrix => matrix.scrollHeight > matrix.clientHeight"
    )
    watched.show("align?text=long&level=piece")
    assert watched.page.locator(".words.query button").count() == 512
    expect(watched.page.get_by_text("sentences of at most 128 pieces")).to_be_visible()
    choosing = """() => [3, 5, 7].map((place) => {
        const start = performance.now();
        document.querySelectorAll(".words.query button")[place].click();
        document.body.getBoundingClientRect();
        return performance.now() - start;
    })"""
    assert min(watched.page.evaluate(choosing)) < 200
    assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_more_weights_than_a_reply_holds_come_layer_by_layer(visit: Visit) -> None:
    watched = visit()
    watched.allowed = ("Failed to load resource",)
    asked: list[Any] = []

    def answer(route: Route) -> None:
        asked.append(route.request.post_data_json["maps"].get("layers"))
        if asked[-1] is None:
            route.fulfill(
                status=422,
                json={
                    "error": {
                        "code": "too_many_values",
                        "message": "ask for fewer",
                        "message_zh": "",
                    }
                },
            )
        else:
            reply = synthetic(61, 2)
            (kind,) = route.request.post_data_json["maps"]["kinds"]
            kinds = ("cross", "encoder_self")
            reply["attention"] = [
                {"kind": one, "layer": layer, "heads": 2} for one in kinds for layer in range(3)
            ]
            reply["maps"][0] |= {"layer": asked[-1][0], "kind": kind}
            route.fulfill(json=reply)

    watched.page.route("**/v1/trace", answer)
    watched.show("heads?text=long&level=piece")
    expect(watched.page.get_by_text("one layer is fetched at a time")).to_be_visible()
    watched.page.locator(".controls .field:has(span:text-is('Layer')) select").select_option("2")
    watched.settle()
    assert asked == [None, [0], [2]]
    watched.page.locator(".controls .field:has(span:text-is('Attention')) select").select_option(
        "encoder_self"
    )
    watched.settle()
    assert asked == [None, [0], [2], None, [0]], "another kind is asked for whole first"
    assert watched.page.locator(".problem:not([hidden])").count() == 0
