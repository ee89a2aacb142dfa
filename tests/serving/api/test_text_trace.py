"""`/v1/trace` for a language model: the library's numbers, and refusals that say what to change."""

import base64
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from headwise.errors import UsageError
from headwise.explorer.data import translation_trace
from headwise.explorer.data.language_model_trace import (
    calculate_text_row,
    require_reader,
    trace_text,
)
from headwise.explorer.data.position_tables import DistanceTable, show_own_positions
from headwise.explorer.data.translation_trace import MapChoice
from headwise.models.choices import RecurrentTranslatorSettings
from headwise.models.ngram import NgramModel, TokenStream, count_ngrams, estimate
from headwise.models.ngram.choices import AddK
from headwise.models.vector_space import VectorSpace
from headwise.positions.relative import Relative
from headwise.positions.sinusoidal import sinusoidal_table
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.language.language_model import LanguageModel
from tests.explorer.data.test_language_model_trace import TEXT
from tests.explorer.reading import make_reader


@pytest.fixture(scope="module")
def reading(models: dict[str, LoadedModel]) -> Iterator[TestClient]:
    """A translator and a language model."""
    both = {**models, "gpt": LoadedModel("gpt", "language_model", make_reader(), language="en")}
    with TestClient(create_app(both, ServerSettings()), base_url="http://127.0.0.1") as found:
        yield found


def test_a_text_is_traced_as_the_library_does(reading: TestClient) -> None:
    assert [one["architecture"] for one in reading.get("/v1/models").json()["models"]] == [
        "encoder_decoder",
        "decoder_only",
    ]
    body = {
        "model": "gpt",
        "text": TEXT,
        "top": 3,
        "maps": {"kinds": ["decoder_self"], "heads": [1, 1], "bits": 16},
    }
    reply = reading.post("/v1/trace", json=body).json()
    own = trace_text(make_reader(), TEXT, maps=MapChoice(), num_alternatives=3)
    assert (reply["source"]["pieces"], reply["tree"]) == ([], None)
    assert reply["target"]["pieces"] == list(own.predicted_pieces)
    assert reply["target_input"]["pieces"] == list(own.read_pieces)
    assert reply["target_input"]["marks"][:2] == [True, False]
    assert reply["n_best"][0]["token_log_probabilities"] == pytest.approx(
        own.log_probabilities, abs=1e-5
    )
    assert reply["n_best"][0]["score"] == pytest.approx(np.mean(own.log_probabilities), abs=1e-5)
    assert [step["best"][0]["piece"] for step in reply["steps"]] == [
        step.best[0].piece for step in own.decisions
    ]
    assert [one["layer"] for one in reply["maps"]] == [0, 1, 2]
    for packed, one in zip(reply["maps"], own.maps, strict=True):
        numbers = np.frombuffer(base64.b64decode(packed["weights"]), "<u2").reshape(packed["shape"])
        np.testing.assert_allclose(numbers * packed["scale"] / 65535, one.weights[[1]], atol=1e-4)


def test_a_row_is_opened_up_as_the_library_does(reading: TestClient) -> None:
    body = {"model": "gpt", "text": TEXT, "kind": "decoder_self", "head": 1, "query": 4}
    reply = reading.post("/v1/row", json=body).json()
    own = calculate_text_row(make_reader(), TEXT, head=1, query=4)
    assert reply["weights"] == pytest.approx(own.weights)
    assert (reply["layer"], reply["num_layers"], reply["num_heads"]) == (2, 3, 2)
    for wish in ({"target": "der"}, {"kind": "cross"}):
        refused = reading.post("/v1/row", json={**body, **wish})
        assert refused.status_code == 422
        assert (
            "a language model has no source and no translation"
            in refused.json()["error"]["message"]
        )


def test_without_a_name_the_translator_is_asked_and_where_there_is_none_the_language_model(
    reading: TestClient,
) -> None:
    assert reading.post("/v1/trace", json={"text": TEXT}).json()["model"] == "tiny"
    only = {"gpt": LoadedModel("gpt", "language_model", make_reader(), language="en")}
    with TestClient(create_app(only, ServerSettings()), base_url="http://127.0.0.1") as client:
        reply = client.post("/v1/trace", json={"text": TEXT, "maps": {}}).json()
        assert (reply["model"], reply["maps"], len(reply["attention"])) == ("gpt", [], 3)
        assert (
            client.post("/v1/occlude", json={"text": TEXT}).json()["error"]["code"] == "wrong_kind"
        )


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"prefix": "the"}, "prefix belongs to translations"),
        ({"prefix_tokens": [5]}, "prefix_tokens belongs to translations"),
        ({"beam": {"size": 2}}, "beam belongs to translations"),
        ({"tree": True}, "tree belongs to translations"),
        ({"text": " "}, "the text is empty"),
        ({"text": "dog " * 13}, "was trained to read 12 at once"),
        ({"maps": {"kinds": ["decoder_self"], "layers": [3]}}, "there is no layer 3; there are 3"),
    ],
)
def test_what_a_language_model_cannot_do(
    reading: TestClient, wish: dict[str, object], words: str
) -> None:
    reply = reading.post("/v1/trace", json={"model": "gpt", "text": TEXT, **wish})
    assert reply.status_code == 422
    assert reply.json()["error"]["code"] == "not_possible"
    assert words in reply.json()["error"]["message"]


def test_too_many_values_are_told_by_their_code(
    reading: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation_trace, "MAX_VALUES", 2 * 7 * 7)
    body = {"model": "gpt", "text": TEXT, "maps": {"kinds": ["decoder_self"]}}
    assert reading.post("/v1/trace", json=body).json()["error"]["code"] == "too_many_values"
    one_layer = {**body, "maps": {"kinds": ["decoder_self"], "layers": [2]}}
    assert len(reading.post("/v1/trace", json=one_layer).json()["maps"]) == 1


@pytest.fixture(name="several", scope="module")
def _several(models: dict[str, LoadedModel]) -> Iterator[TestClient]:
    """Language models of several kinds, and a model that has no attention to show."""
    relative = make_reader(position=Relative(limit=3, values=False))
    stream = TokenStream.of_sentences([[4, 5]])
    tokens = NgramModel(estimate(count_ngrams(stream, order=2, vocabulary=11), AddK()))
    loaded = [
        LoadedModel("gpt", "language_model", make_reader()),
        LoadedModel("relative", "language_model", relative),
        LoadedModel("ngram", "language_model", LanguageModel(relative.tokenizer, tokens)),
        LoadedModel("vectors", "word_vectors", VectorSpace(["a"], np.ones((1, 3)))),
    ]
    both = {**models, **{one.name: one for one in loaded}}
    with TestClient(create_app(both, ServerSettings()), base_url="http://127.0.0.1") as found:
        yield found


def test_positions_of_a_language_model_are_its_own(several: TestClient) -> None:
    reply = several.post("/v1/positions", json={"model": "gpt", "length": 7}).json()
    table = sinusoidal_table(7, 8)
    np.testing.assert_allclose(reply["table"], table, atol=1e-5)
    assert (reply["kind"], reply["origin"]) == ("sinusoidal", "formula")
    learnt = several.post("/v1/positions", json={"model": "relative", "length": 5}).json()
    assert (learnt["kind"], learnt["origin"], learnt["first_row"]) == ("relative", "model", -4)
    _, network = require_reader(make_reader(position=Relative(limit=3, values=False)))
    relation = network.blocks[0].self_attention.relation
    assert isinstance(relation, DistanceTable)
    own = relation.table_by_distance(torch.arange(-4, 5)).detach()
    np.testing.assert_allclose(learnt["table"], own, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("ngram", "not_possible", "shown of a Transformer, and this model is 'n-gram'; choose"),
        ("vectors", "wrong_kind", "a model of kind translator or language_model"),
    ],
)
def test_models_without_positions_are_refused_with_the_reason(
    several: TestClient, model: str, code: str, said: str
) -> None:
    reply = several.post("/v1/positions", json={"model": model})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], said in error["message"]) == (422, code, True)
    assert "展开" not in error["message_zh"]


def test_a_recurrent_translator_has_no_positions() -> None:
    settings = RecurrentTranslatorSettings(dim=8)
    with pytest.raises(UsageError, match=r"positions are shown of a Transformer, .* 'recurrent'"):
        show_own_positions(None, settings, length=5)
