"""Runs in a copy of the library that has the kind `token_mapping`, and writes what it saw as JSON.

python new_kind_program.py BUNDLE DIRECTORY
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from headwise.cli.main import main
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models

TEXT = "The old dog saw the child."


def run_command(*command: str) -> dict[str, Any]:
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = main(list(command))
    return {"status": status, "out": out.getvalue(), "errors": errors.getvalue()}


def ask_server(bundle: str) -> dict[str, Any]:
    models = load_models([f"tiny={bundle}"], device="cpu", precision="fp32")
    translator = models["tiny"].value
    source = translator.tokenizers.source.encode(TEXT)
    seen: dict[str, Any] = {"expected": translator.tokenizers.target.decode(source)}
    with TestClient(create_app(models, ServerSettings()), base_url="http://127.0.0.1") as client:

        def ask(path: str, **body: Any) -> dict[str, Any]:
            reply = client.post(path, json={"text": TEXT, **body})
            return {"status": reply.status_code, "text": reply.text}

        seen["default"] = ask("/v1/translate")
        seen["explicit"] = ask("/v1/translate", decoding={"kind": "token_mapping"})
        seen["unknown_option"] = ask("/v1/translate", decoding={"kind": "token_mapping", "size": 2})
        seen["stream"] = ask("/v1/translate", stream=True)
        seen["forbid"] = ask("/v1/translate", forbid=["Hund"])
        seen["require"] = ask("/v1/translate", require=["Hund"])
        seen["n_best"] = ask("/v1/translate", n_best=2)
        seen["trace"] = ask("/v1/trace", top=3, tree=True, maps={"kinds": ["cross"]})
        seen["occlude"] = ask("/v1/occlude")
    return seen


def see_all(bundle: str, directory: Path) -> dict[str, Any]:
    seen = ask_server(bundle)
    model = ("--model", bundle)
    seen["cli"] = run_command("translate", *model, "--text", TEXT)
    seen["cli_forbid"] = run_command("translate", *model, "--forbid", "Hund", "--text", TEXT)
    source, reference = directory / "source.en", directory / "reference.de"
    source.write_text(f"{TEXT}\n" * 3, encoding="utf-8")
    reference.write_text(f"{seen['expected']}\n" * 3, encoding="utf-8")
    files = ("--source", str(source), "--reference", str(reference))
    seen["evaluate"] = run_command("evaluate", *model, *files, "--json")
    return seen


if __name__ == "__main__":
    found = see_all(sys.argv[1], Path(sys.argv[2]))
    Path(sys.argv[2], "seen.json").write_text(json.dumps(found), encoding="utf-8")
