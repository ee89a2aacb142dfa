"""The same as test_openapi.py for the routes of the page (S4): traces, attention, positions,
patterns, language models, vectors and runs.
"""

from typing import Any

import pytest
import schemathesis

from headwise.models.vector_space import VectorSpace
from headwise.randomness import numpy_generator
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel, load_models
from headwise.tasks.language.language_model import LanguageModel
from tests.explorer.data.test_run_logs import write_run
from tests.serving.api.test_language import ARPA
from tests.serving.api.test_openapi import examine
from tests.serving.conftest import BUNDLE

ADDRESSES = (
    "/v1/trace",
    "/v1/occlude",
    "/v1/time",
    "/v1/wordings",
    "/v1/memory",
    "/v1/exposure",
    "/v1/demo",
    "/v1/attend",
    "/v1/row",
    "/v1/positions",
    "/v1/patterns",
    "/v1/costs",
    "/v1/score",
    "/v1/predict",
    "/v1/vectors",
    "/v1/runs",
    "/v1/runs/log",
)


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("made-up")
    (path / "tiny.arpa").write_text(ARPA, encoding="utf-8")
    write_run(path / "runs" / "one", 1, 2)
    words = [f"word{number}" for number in range(11)]
    models = {
        **load_models([f"tiny={BUNDLE}"], device="cpu"),
        "spoken": LoadedModel("spoken", "language_model", LanguageModel.load(path / "tiny.arpa")),
        "vectors": LoadedModel(
            "vectors",
            "word_vectors",
            VectorSpace(words, numpy_generator("made up").normal(size=(11, 5))),
        ),
    }
    # Bodies may be long here: the tool takes 413, which is tested elsewhere, for an answer.
    settings = ServerSettings(hosts=("*",), runs=path / "runs", body_bytes=16_777_216)
    app = create_app(models, settings)
    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.filterwarnings("ignore")  # of the tool about itself
def test_made_up_requests_find_no_server_error(description: Any) -> None:
    assert set(examine(description, max_examples=3, addresses=ADDRESSES)) == set(ADDRESSES)


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")
def test_five_hundred_made_up_requests_an_address(description: Any) -> None:
    assert set(examine(description, max_examples=500, addresses=ADDRESSES)) == set(ADDRESSES)


def test_every_body_has_an_example(description: Any) -> None:
    schemas = description.raw_schema["components"]["schemas"]
    for name in (
        "MemoryBody",
        "ExposureBody",
        "AttendBody",
        "RowBody",
        "PositionsBody",
        "PatternsBody",
        "ScoreBody",
        "PredictBody",
        "VectorsBody",
    ):
        assert schemas[name]["examples"], name
