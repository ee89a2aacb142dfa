"""A translator without self-attention on the page: what it has is shown, what it lacks is not
offered, and nothing is a dead end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from headwise.models.choices import build_model
from headwise.randomness import torch_generator
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.recipe import load_translation_recipe
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.translator import Translator
from tests.browser.conftest import BUNDLE, RunningServer, Visit


def recurrent(attention: str) -> Translator:
    """A recurrent translator that has learned nothing, with the words of the tiny one."""
    own = Translator.load(BUNDLE, device="cpu")
    overrides = [
        "model.dim=16",
        f"model.attention={{kind: {attention}}}",
        "decoding={kind: greedy, max_length: 8}",
    ]
    recipe = load_translation_recipe("pocket-recurrent", overrides)
    sizes = (own.tokenizers.source.size, own.tokenizers.target.size)
    model = build_model(
        recipe.model,
        source_size=sizes[0],
        target_size=sizes[1],
        generator=torch_generator("recurrent on a page"),
    )
    return Translator(
        TranslatorBundle(Path("nowhere"), recipe, own.tokenizers, model, {}), device="cpu"
    )


@pytest.fixture(scope="module")
def remembering() -> Iterator[str]:
    models = {name: LoadedModel(name, "translator", recurrent(name)) for name in ("luong", "none")}
    running = RunningServer(create_app(models, ServerSettings()))
    yield running.address
    running.stop()


def test_only_the_attention_it_has_is_offered(visit: Visit, remembering: str) -> None:
    watched = visit(at=remembering)
    page = watched.page
    for view in ("align", "heads"):
        watched.show(f"{view}?model=luong&text=I+am+old.&kind=encoder_self")
        kinds = page.locator(".controls .field:has(span:text-is('Attention')) option")
        expect(kinds).to_have_text(["translation → source"])
        assert "kind=cross" in page.url
    watched.show("align?model=luong&text=I+am+old.")
    expect(page.locator(".words.query button")).not_to_have_count(0)
    for view in ("align", "heads"):
        watched.show(f"{view}?model=none&text=I+am+old.")
        expect(page.get_by_text("This model has no attention to show.")).to_be_visible()
    watched.show("numbers?show=row")
    expect(page.get_by_text("opened up in Transformers only")).to_be_visible()
    assert page.get_by_role("radio", name="one row of the loaded model").count() == 0
    watched.show("positions")
    assert "luong" not in page.locator("main select").first.inner_text()
