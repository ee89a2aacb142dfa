"""LibreTranslate's own client against a running server: all its calls, with and without a key."""

from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
from benchmarks.made_data import save_untrained
from libretranslatepy import LibreTranslateAPI

from headwise.serving.http.api_keys import add_key
from headwise.tasks.translation.bundle import load_translator_bundle
from tests.serving.conftest import BUNDLE
from tests.serving.server_process import ServerProcess


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    directory = tmp_path_factory.mktemp("libretranslate")
    key = add_key(directory / "keys.txt", "client")
    with ServerProcess("--keys", str(directory / "keys.txt"), log=directory / "log") as server:
        yield f"http://127.0.0.1:{server.port}", key


def test_every_call_of_the_client_is_answered(address: tuple[str, str]) -> None:
    client = LibreTranslateAPI(*address)
    translated = client.translate("The dog is old.", "en", "de")
    assert isinstance(translated, str)
    assert translated
    assert client.translate("The dog is old.", "auto", "de") == translated
    detected = client.detect("Der Hund ist alt und müde.")
    assert detected[0]["language"] == "de"
    assert 90 < detected[0]["confidence"] <= 100
    assert [(one["code"], one["name"]) for one in client.languages()] == [
        ("en", "English"),
        ("de", "German"),
    ]


def test_without_a_key_or_with_a_wrong_one_it_is_told(
    address: tuple[str, str], tmp_path: Path
) -> None:
    url, _ = address
    for key, status in ((None, 401), ("hw_wrong", 403)):
        client = LibreTranslateAPI(url, key)
        with pytest.raises(HTTPError, match=str(status)):
            client.translate("The dog is old.", "en", "de")
        with pytest.raises(HTTPError, match=str(status)):
            client.detect("The dog is old.")
        assert len(client.languages()) == 2


def test_a_language_that_is_not_there_is_refused(address: tuple[str, str]) -> None:
    with pytest.raises(HTTPError, match="400"):
        LibreTranslateAPI(*address).translate("The dog is old.", "en", "zh-Hans")


def test_simplified_chinese_is_asked_for_by_the_clients_own_name(tmp_path: Path) -> None:
    """A model whose recipe writes `zh`: the client finds `zh-Hans` among the languages and asks for
    it."""
    bundle = load_translator_bundle(BUNDLE)
    recipe = bundle.recipe.model_copy(
        update={"data": bundle.recipe.data.model_copy(update={"target": "zh"})}
    )
    parts = {"tokenizers": bundle.tokenizers, "model": bundle.model, "results": bundle.results}
    save_untrained(tmp_path / "chinese", recipe=recipe, **parts)
    with ServerProcess(model=f"chinese={tmp_path / 'chinese'}", log=tmp_path / "log") as server:
        client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}")
        languages = {one["code"]: one["targets"] for one in client.languages()}
        assert languages == {"en": ["zh-Hans"], "zh-Hans": []}
        translated = client.translate("The dog is old.", "en", "zh-Hans")
        assert translated
        assert translated == client.translate("The dog is old.", "auto", "zh-Hans")
        assert translated == client.translate("The dog is old.", "en", "zh")
        assert client.detect("今天天气很好。") == [{"confidence": 100.0, "language": "zh-Hans"}]
        with pytest.raises(HTTPError, match="400"):
            client.translate("The dog is old.", "en", "zh-Hant")
