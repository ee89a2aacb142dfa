"""`/v1/exposure`: its continuations are those of the parts of `headwise exposure`,
and what cannot be is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.pocket import sentences
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.schemas.limits import MAX_BEGINNING_CHARACTERS, MAX_LIKELY
from headwise.serving.work.loaded_models import LoadedModel, load_models
from headwise.tasks.translation.forced_states import measure_agreement
from headwise.tasks.translation.token_pair import TokenPair
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.wrong_prefix import continue_after, likely_tokens
from tests.tasks.tiny import train_tiny
from tests.tasks.translation.test_parallel_recipes import CTC
from tests.tasks.translation.test_recurrent import train_recurrent

PAIRS = [(one.text("en"), one.text("de")) for one in sentences("train", 4)]


@pytest.fixture(name="loaded", scope="module")
def _loaded(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedModel]:
    folder = tmp_path_factory.mktemp("exposed")
    train_recurrent(folder / "recurrent")
    train_tiny(folder / "parallel", [*CTC, "training.steps=2"])
    given = [f"mine={tiny_run}", *(f"{one}={folder / one}" for one in ("recurrent", "parallel"))]
    return load_models(given, device="cpu", precision="fp32")


@pytest.fixture(name="exposed", scope="module")
def _exposed(loaded: dict[str, LoadedModel]) -> Iterator[TestClient]:
    with TestClient(create_app(loaded, ServerSettings()), base_url="http://127.0.0.1") as client:
        yield client


def ask(client: TestClient, **body: Any) -> Any:
    reply = client.post("/v1/exposure", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("model", ["mine", "recurrent"])
def test_continuations_are_those_of_the_measurement(
    exposed: TestClient, loaded: dict[str, LoadedModel], model: str
) -> None:
    translator: Translator = loaded[model].value
    for source, target in PAIRS:
        reply = ask(exposed, model=model, text=source, reference=target, likely=4)
        pair = TokenPair(
            tuple(translator.encode(source)), tuple(translator.tokenizers.target.encode(target))
        )
        pool = likely_tokens(translator, [pair], [()])[0]
        wanted = [token for token in pool if token != pair.target[0]][:4]
        assert [one["token"] for one in reply["likely"]] == wanted
        for name, first in (("right", pair.target[0]), ("wrong", wanted[0])):
            (rest,) = continue_after(translator, [pair], [(first,)])
            told = reply[name]
            tokens = [one["token"] for one in told["tokens"]]
            assert tokens[: len(rest) + 1] == [first, *rest]
            assert (told["forced"], told["finished"]) == (1, len(tokens) > len(rest) + 1)
        (own,) = continue_after(translator, [pair], [()])
        agreement = measure_agreement(
            translator.model,
            [pair.source],
            [pair.target],
            [own],
            num_positions=min(len(own), len(pair.target)) + 1,
        )
        numbers = [one["total_variation"] for one in reply["positions"]]
        assert numbers == pytest.approx(agreement.total_variation, abs=1e-5)
        assert reply["positions"][0]["agreement"] is True
        assert reply["target_text"] == translator.tokenizers.target.decode(own)


def test_without_a_reference_the_models_own_words_are_right(exposed: TestClient) -> None:
    source = PAIRS[0][0]
    reply = ask(exposed, model="mine", text=source)
    assert reply["right"]["text"] == reply["target_text"]
    assert reply["positions"] is None
    assert reply["wrong"]["tokens"][0]["token"] == reply["likely"][0]["token"]
    chosen = ask(exposed, model="mine", text=source, wrong_tokens=[reply["likely"][2]["token"]])
    assert chosen["wrong"]["tokens"][0]["token"] == reply["likely"][2]["token"]
    typed = ask(exposed, model="mine", text=source, wrong="zwei")
    assert typed["wrong"]["text"].startswith("zwei")
    assert typed["wrong"]["forced"] == typed["right"]["forced"]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"model": "parallel", "text": "a dog"}, "not_possible", "writes all words at once"),
        ({"text": " "}, "empty", "the sentence is empty"),
        ({"text": "a dog", "wrong": "x" * (MAX_BEGINNING_CHARACTERS + 1)}, "bad_request", "wrong"),
        ({"text": "a dog", "wrong": "e " * 25}, "too_long", "give one word"),
        ({"text": "a dog", "likely": MAX_LIKELY + 1}, "bad_request", "likely"),
        ({"text": "a dog", "wrong_tokens": [10**6]}, "not_possible", "outside the vocabulary"),
        ({"text": "a dog", "wrong_tokens": [1]}, "not_possible", "special token"),
        ({"text": "a dog", "wrong": "der", "reference": "der Hund"}, "not_possible", "right"),
    ],
)
def test_what_cannot_be_is_refused(
    exposed: TestClient, body: dict[str, Any], code: str, words: str
) -> None:
    reply = exposed.post("/v1/exposure", json={"model": "mine", **body})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (422, code), error
    assert words in error["message"]
    assert error["message_zh"]
