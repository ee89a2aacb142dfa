"""Names of models, and a server without a suitable one."""

from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from headwise.errors import CheckpointError, UsageError
from headwise.models.vector_space import VectorSpace
from headwise.serving.app import create_app
from headwise.serving.work.loaded_models import LoadedModel, load_model
from headwise.serving.work.model_names import split_name
from headwise.storage import write_manifest
from headwise.tasks.bundle_form import KIND
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.word_vectors.bundle import save_word_vectors
from tests.serving.api.test_language import ARPA


@pytest.mark.parametrize(
    ("given", "name", "path"),
    [
        ("runs/demo", "demo", "runs/demo"),
        ("runs/demo/model", "demo", "runs/demo/model"),
        ("pocket=runs/demo", "pocket", "runs/demo"),
        ("runs/my demo!", "my-demo-", "runs/my demo!"),
        ("runs/.hidden", "hidden", "runs/.hidden"),
    ],
)
def test_names(given: str, name: str, path: str) -> None:
    assert split_name(given) == (name, Path(path))


def test_bad_names_and_bundles(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a model's name"):
        split_name("a b=runs/demo")
    with pytest.raises(CheckpointError, match="is not a model"):
        load_model("x", tmp_path)
    for name in TranslationRecipe.bundle_form.required_files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("task: juggling\n", encoding="utf-8")
    write_manifest(tmp_path, kind=KIND)
    with pytest.raises(CheckpointError, match="a model that can be served is needed"):
        load_model("x", tmp_path)


def test_a_model_of_another_kind_is_not_asked_to_translate() -> None:
    models = {"counts": LoadedModel("counts", "language_model", object())}
    with TestClient(create_app(models), base_url="http://localhost") as client:
        reply = client.post("/v1/translate", json={"text": "a"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (422, "wrong_kind")
        reply = client.post("/v1/translate", json={"text": "a", "model": "counts"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (422, "wrong_kind")
        assert client.get("/languages").json() == []


def test_an_arpa_file_and_imported_vectors_are_models_too(tmp_path: Path) -> None:
    (tmp_path / "tiny.arpa").write_text(ARPA, encoding="utf-8")
    assert load_model(*split_name(str(tmp_path / "tiny.arpa"))).kind == "language_model"
    save_word_vectors(tmp_path / "imported", VectorSpace(["a", "b"], np.eye(2)))
    found = load_model("imported", tmp_path / "imported")
    assert (found.kind, found.value.words) == ("word_vectors", ("a", "b"))
