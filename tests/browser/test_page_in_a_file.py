"""The page in a file, opened from a disk: it counts layers and heads as the live page and the
pictures do."""

from pathlib import Path

from headwise.explorer import write_page
from headwise.explorer.data.attention_maps import describe_head, describe_layer
from tests.browser.conftest import Visit
from tests.explorer.examples import make_trace


def test_layers_and_heads_are_counted_from_one(visit: Visit, tmp_path: Path) -> None:
    trace = make_trace()
    maps = trace.maps_of("cross")
    write_page([trace], tmp_path / "page.html", title="a page")
    watched = visit(at=(tmp_path / "page.html").as_uri())
    page = watched.page
    page.goto(f"{watched.address}#kind=cross&layer={maps[0].layer}&head=1")
    shown = page.locator("#layer option").all_inner_texts()
    assert shown == [str(item.layer + 1) for item in maps]
    assert page.locator("#head option").all_inner_texts()[: len(maps[0].weights)] == [
        str(head + 1) for head in range(len(maps[0].weights))
    ]
    chosen = page.locator("#grid_area button[aria-pressed=true]")
    assert (
        chosen.get_attribute("aria-label")
        == f"{describe_layer(maps[0].layer)[0]}, {describe_head(1)[0]}"
        == "layer 1, head 2"
    )
    with page.expect_download() as download:
        page.locator("#save_svg").click()
    assert download.value.suggested_filename == "attention-cross-layer-1-head-2.svg"
