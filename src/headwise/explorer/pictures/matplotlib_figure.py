"""Creates and saves matplotlib figures without global state, with fonts that have the characters.

matplotlib draws an empty box and prints a warning for a character that its fonts lack. Here every
text is checked against the installed fonts first. Labels that no font can draw are replaced by
numbers, and the picture says so. pyplot is never imported, so drawing leaves no figure, back end or
setting behind.

Tested against: Chinese labels with and without a font, warnings as errors; "$" in a token is no
mathematics.
"""

import contextlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.errors import UsageError
from headwise.explorer.data.word_grouping import is_wide
from headwise.language import say
from headwise.storage import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

DOTS_PER_INCH = 150
WIDTH_INCHES = 8.0
"""8 inches at 150 dots per inch: 1200 pixels."""

MAX_LABEL_LENGTH = 24
"""Longer words are shortened, so that one word does not shrink the picture."""

PICTURES = (".png", ".svg")
"""The file formats that can be drawn."""

INK, MUTED, FRAME = "#1b1f24", "#5b6470", "#c9d0d8"
BASE_FONT = "DejaVu Sans"  # comes with matplotlib
WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Noto Sans CJK JP",
    "Noto Serif CJK SC",
    "SimHei",
    "Heiti SC",
    "Songti SC",
    "SimSun",
    "Droid Sans Fallback",
    "AR PL UMing CN",
    "Arial Unicode MS",
)


@dataclass(frozen=True)
class Fonts:
    """The font families in order of preference, and the characters that they have together."""

    families: tuple[str, ...]
    characters: frozenset[int]

    def can_draw(self, text: str) -> bool:
        return all(ord(character) in self.characters for character in text)

    def say(self, en: str, zh: str) -> str:
        """The sentence in the current language, or in English if its characters cannot be drawn."""
        sentence = say(en, zh)
        return sentence if self.can_draw(sentence) else en


@dataclass(frozen=True)
class Labels:
    """The labels of rows or columns; `missing` is the first text that no font could draw, or ""."""

    texts: tuple[str, ...]
    missing: str = ""

    @property
    def wide(self) -> bool:
        return any(is_wide(text) for text in self.texts)


def find_fonts() -> Fonts:
    """The base font and the first installed font for Chinese, if any."""
    try:
        from matplotlib import font_manager
    except ImportError as error:
        raise UsageError(
            "drawing pictures needs matplotlib, which is not installed; run: pip install "
            "headwise[plots]",
            "画图需要 matplotlib，但尚未安装；请运行：pip install headwise[plots]",
        ) from error
    wide = _wide_font()
    if wide is None:
        _list_new_fonts()
        wide = _wide_font()
    families = (BASE_FONT,) if wide is None else (BASE_FONT, wide)
    # Ask for the regular face of a family, as it will be drawn, not for the last one in the list.
    files = [
        font_manager.findfont(font_manager.FontProperties(family=[family])) for family in families
    ]
    return Fonts(families, frozenset().union(*(_characters_of(str(file)) for file in files)))


def _wide_font() -> str | None:
    from matplotlib.font_manager import fontManager

    listed = {entry.name for entry in fontManager.ttflist}
    return next((name for name in WIDE_FONTS if name in listed), None)


@lru_cache(maxsize=1)
def _list_new_fonts() -> None:
    """Add fonts that were installed since matplotlib wrote its list, which it never updates. They
    are added for this process only, and searched for once.
    """
    from matplotlib import font_manager

    listed = {entry.fname for entry in font_manager.fontManager.ttflist}
    for file in sorted(set(font_manager.findSystemFonts()) - listed):
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # the file is not a font
            font_manager.fontManager.addfont(file)


@lru_cache(maxsize=8)
def _characters_of(file: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(file).get_charmap())


def make_labels(texts: Sequence[str], fonts: Fonts) -> Labels:
    """The texts, shortened, or their numbers from 1 if no font has one of the characters."""
    printable = tuple(
        _shorten("".join(c if c.isprintable() else "\ufffd" for c in text)) for text in texts
    )
    missing = next((text for text in printable if not fonts.can_draw(text)), "")
    if missing:
        return Labels(tuple(str(number) for number in range(1, len(texts) + 1)), missing)
    return Labels(printable)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_LABEL_LENGTH else text[: MAX_LABEL_LENGTH - 1] + "…"


def explain_missing(
    labels: Iterable[Labels], *, instead: str = "The HTML page shows the characters."
) -> str:
    """The caption of a picture whose labels were replaced by numbers. It is in English, because
    Chinese characters may be missing. `instead` says where the labels can be read.
    """
    missing = [item.missing for item in labels if item.missing]
    if not missing:
        return ""
    reason = (
        "No Chinese font is installed"
        if is_wide(missing[0])
        else "No installed font has all the characters"
    )
    return f"{reason}: the labels are position numbers. {instead}"


def new_figure(*, height: float) -> "Figure":
    """An empty figure of the standard width; the height is in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(
        figsize=(WIDTH_INCHES, height), dpi=DOTS_PER_INCH, facecolor="white", layout=layout
    )
    FigureCanvasAgg(figure)
    return figure


def set_plain_text(texts: Iterable["Text"], fonts: Fonts) -> None:
    """Use fonts that have the characters, and treat "$" as a dollar sign and not as mathematics."""
    for text in texts:
        text.set_fontfamily(list(fonts.families))
        text.set_parse_math(False)


def check_picture(path: Path) -> None:
    """Refuse a file name without a known ending before anything is drawn."""
    if path.suffix.lower() not in PICTURES:
        raise UsageError(
            f"{path.name!r} does not end in {' or '.join(PICTURES)}, which are the formats of "
            f"pictures; name it for example {path.stem or 'picture'}.png",
            f"{path.name!r} 不以 {' 或 '.join(PICTURES)} 结尾，而图片只支持这两种格式；"
            f"请命名为例如 {path.stem or 'picture'}.png",
        )


def save_figure(figure: "Figure", path: Path) -> None:
    """Write the figure as PNG or SVG, depending on its name, atomically."""
    from matplotlib import rc_context

    check_picture(path)
    content = io.BytesIO()
    kind = path.suffix.lower()[1:]
    # The same figure gives the same bytes: no date, and fixed names inside an SVG.
    nameless = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    with rc_context({"svg.hashsalt": "headwise"} if kind == "svg" else {}):
        figure.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata=nameless)
    write_bytes(path, content.getvalue())
