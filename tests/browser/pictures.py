"""Makes the pictures of the page that the guide shows, in both languages, by the browser and server
of its tests.

    python -m tests.browser.pictures runs/demo docs/pictures

needs the run of a finished demo (en → de) in a directory of its own. Each is a PNG of few colours,
`explorer-NAME.png` for the English guide and `explorer-NAME.zh.png` for the Chinese one.
"""

import io
import sys
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from headwise.pocket import NOTES_EXAMPLES
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from tests.browser.conftest import FLAGS, RunningServer, find_chromium

TIRED, WIDE = (one.text("en") for one in NOTES_EXAMPLES)
NUM_COLOURS = 96
MAX_BYTES = 150_000
ROOM_FOR_CHINESE = 80
"""Its lines are a little higher."""
# Name: the view, its state in the address, the theme, and how much of the page's height is shown.
PICTURES: dict[str, tuple[str, dict[str, str], str, int]] = {
    "align": (
        "align",
        {"text": TIRED, "kind": "encoder_self", "layer": "1", "head": "1", "word": "query-7"},
        "light",
        1340,
    ),
    "heads": ("heads", {"text": TIRED, "layer": "1", "head": "2"}, "light", 1516),
    "steps": ("steps", {"text": TIRED, "step": "9"}, "dark", 1568),
    "tree": ("tree", {"text": TIRED}, "light", 1563),
    "numbers": (
        "numbers",
        {"show": "row", "text": WIDE, "layer": "1", "head": "2", "query": "8"},
        "light",
        1450,
    ),
    "positions": ("positions", {"right": "alibi"}, "light", 1180),
    "patterns": ("patterns", {}, "light", 1640),
    "runs": ("runs", {}, "light", 1420),
}


def shoot(page: Page, address: str, height: int) -> bytes:
    page.set_viewport_size({"width": 1280, "height": height})
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html:not([data-asking]) main h1")
    page.wait_for_timeout(1500)
    page.wait_for_selector("html:not([data-asking]) main h1")
    return page.screenshot()


def save(picture: bytes, path: Path) -> None:
    """With as many colours as fit."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in (NUM_COLOURS, 64, 48, 32):
        image.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size < MAX_BYTES:
            break


def make_pictures(model: Path, folder: Path, names: list[str]) -> None:
    models = load_models([f"demo={model}"], device="cpu")
    running = RunningServer(create_app(models, ServerSettings(runs=model.parent)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        for name in names or PICTURES:
            view, state, theme, height = PICTURES[name]
            for language, ending in (("en-US", ""), ("zh-CN", ".zh")):
                context = browser.new_context(
                    locale=language,
                    color_scheme="dark" if theme == "dark" else "light",
                    reduced_motion="reduce",
                )
                address = f"{running.address}/#/{view}?{urlencode(state)}"
                room = ROOM_FOR_CHINESE if ending else 0
                save(
                    shoot(context.new_page(), address, height + room),
                    folder / f"explorer-{name}{ending}.png",
                )
                context.close()
        browser.close()
    running.stop()


if __name__ == "__main__":
    make_pictures(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
