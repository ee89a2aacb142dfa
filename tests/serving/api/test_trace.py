"""`/v1/trace`, `/v1/occlude` and the page: the library's numbers, limits, and no file outside the
folder.
"""

import base64

import numpy as np
import pytest
from fastapi.testclient import TestClient

from headwise.explorer.data import translation_trace
from headwise.explorer.data.translation_maps import trace_translation
from headwise.serving.api.page import page_files
from headwise.serving.api.trace import answer_occlusion, answer_trace
from headwise.serving.schemas.trace import OccludeBody, TraceBody
from headwise.serving.work.jobs import JobAbandoned
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.translation.translator import Translator
from tests.explorer.conftest import BUNDLE

TEXT = "The old dog saw the child."
ALL = ["encoder_self", "decoder_self", "cross"]


def test_a_trace_is_the_librarys(client: TestClient) -> None:
    translator = Translator.load(BUNDLE, device="cpu")
    body = {
        "text": TEXT,
        "beam": {"size": 3},
        "top": 4,
        "tree": True,
        "maps": {"kinds": ALL, "bits": 16},
    }
    reply = client.post("/v1/trace", json=body).json()
    settings = translator.settings(
        ["kind=beam", "size=3", "num_best=3", "max_length={factor: 2.0, extra: 20}"]
    )
    expected = translator([TEXT], settings)[0]  # type: ignore[arg-type]
    assert [one["text"] for one in reply["n_best"]] == [one.text for one in expected.n_best]
    assert reply["n_best"][0]["score"] == pytest.approx(expected.score, abs=1e-5)
    assert len(reply["steps"]) == len(reply["n_best"][0]["token_log_probabilities"])
    told = [step["chosen"]["log_probability"] for step in reply["steps"]]
    np.testing.assert_allclose(told, reply["n_best"][0]["token_log_probabilities"], atol=1e-4)
    assert reply["tree"]["nodes"][reply["tree"]["leaves"][0] - 1]["fate"] == "finished"
    source = translator.tokenizers.source.encode(TEXT)
    maps = translator.trace(source, reply["n_best"][0]["tokens"]).maps
    for packed in reply["maps"]:
        numbers = np.frombuffer(base64.b64decode(packed["weights"]), "<u2").reshape(packed["shape"])
        np.testing.assert_allclose(
            numbers * packed["scale"] / 65535, maps[packed["name"]], atol=1e-4
        )
    assert {(one["kind"], one["layer"], one["heads"]) for one in reply["attention"]} == {
        (kind, 0, 2) for kind in ALL
    }
    assert trace_translation(translator, TEXT).source_pieces == tuple(reply["source"]["pieces"])


@pytest.mark.parametrize("address", ["/v1/trace", "/v1/occlude", "/v1/row"])
def test_several_sentences_read_as_one_are_told(client: TestClient, address: str) -> None:
    two = ["The dog is old.", "Where is the cat?"]
    assert client.post(address, json={"text": " ".join(two)}).json()["sentences"] == two


def test_a_prefix_in_words_or_tokens(client: TestClient) -> None:
    words = client.post("/v1/trace", json={"text": TEXT, "prefix": "Die Katze"}).json()
    assert words["sentences"] == [TEXT]
    assert words["target_text"].startswith("Die Katze")
    tokens = words["n_best"][0]["tokens"][: words["prefix_length"]]
    again = client.post("/v1/trace", json={"text": TEXT, "prefix_tokens": tokens}).json()
    assert again["n_best"] == words["n_best"]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"text": " "}, "empty", "the sentence is empty"),
        ({"text": "cat " * 499}, None, None),
        ({"text": "x y " * 500}, "too_long", "pieces, at most 512 are traced"),
        ({"text": TEXT, "beam": {"size": 9}}, "bad_request", "beam.size"),
        ({"text": TEXT, "top": 11}, "bad_request", "top"),
        ({"text": TEXT, "maps": {"heads": [2]}}, "not_possible", "there is no head 2"),
        (
            {"text": TEXT, "maps": {"layers": [0, 255]}},
            "not_possible",
            "there is no layer 255; there are 1",
        ),
        ({"text": TEXT, "prefix_tokens": [10**6]}, "not_possible", "outside the vocabulary"),
        ({"text": TEXT, "maps": {"kinds": ["all"]}}, "bad_request", "maps.kinds.0"),
    ],
)
def test_limits(
    client: TestClient, body: dict[str, object], code: str | None, words: str | None
) -> None:
    reply = client.post("/v1/trace", json=body)
    if code is None:
        assert reply.status_code in (200, 422)
        return
    assert reply.status_code == 422
    assert reply.json()["error"]["code"] == code
    assert words is not None
    assert words in reply.json()["error"]["message"]


def test_too_many_weights_are_refused_with_a_way_out(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation_trace, "MAX_VALUES", 100)
    error = client.post("/v1/trace", json={"text": TEXT, "maps": {"kinds": ALL}}).json()["error"]
    assert error["code"] == "too_many_values"
    assert "ask for fewer kinds, layers or heads" in error["message"]
    assert client.post("/v1/trace", json={"text": TEXT}).status_code == 200


def test_leaving_words_out(client: TestClient) -> None:
    reply = client.post("/v1/occlude", json={"text": TEXT}).json()
    assert reply["words"] == ["The", "old", "dog", "saw", "the", "child", "."]
    assert np.shape(reply["changes"]) == (7, len(reply["pieces"]))
    np.testing.assert_allclose(np.sum(reply["changes"], axis=1), reply["totals"], atol=1e-4)
    error = client.post("/v1/occlude", json={"text": "x y " * 60, "tokens": [7] * 129}).json()[
        "error"
    ]
    assert error["code"] == "too_long"
    assert "at most 128 pieces" in error["message"]
    short = client.post("/v1/occlude", json={"text": TEXT, "tokens": [7, 9]}).json()
    assert len(short["pieces"]) == 3


def test_every_file_of_the_page_is_served_under_the_policy(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    head = client.head("/")
    assert (head.status_code, head.headers["content-length"]) == (
        200,
        page.headers["content-length"],
    )
    for name in page_files():
        reply = client.get(f"/static/{name}")
        assert reply.status_code == 200, name
        assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    ["../traces.py", "..%2ftraces.py", "%2e%2e/en.json", "/etc/passwd", "views", "nothing.js"],
)
def test_nothing_else_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


def test_nobody_waits_any_more(models: dict[str, LoadedModel]) -> None:
    translator = models["tiny"].value
    asked: list[None] = []

    def is_over() -> bool:
        asked.append(None)
        return len(asked) > 3

    with pytest.raises(JobAbandoned):
        answer_trace("tiny", translator, TraceBody(text=TEXT), is_over=is_over)
    assert len(asked) == 4
    with pytest.raises(JobAbandoned):
        answer_occlusion(
            "tiny", translator, OccludeBody(text=TEXT, tokens=[7, 9]), is_over=lambda: True
        )
