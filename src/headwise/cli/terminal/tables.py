"""Tables on standard output: with frames on a terminal, tab-separated for programs.

If a terminal is too narrow for the longest words of a table, each row is written as a list instead,
one `heading: cell` a line, so that no word is broken.
"""

import re
import sys
from collections.abc import Sequence

from headwise.cli.terminal.wrapping import (
    longest_part,
    pad,
    terminal_width,
    text_width,
    wrap,
    write_line,
)
from headwise.language import say

FIGURE = re.compile(r"$|[-+−–±<≤(]?\s?\d|–$")
"""The beginning of a cell that is aligned to the right."""
Rows = Sequence[Sequence[str]]


def print_table(headings: Sequence[str], rows: Rows, *, title: str | None = None) -> None:
    """A table on standard output; tab-separated if that is not a terminal."""
    if not sys.stdout.isatty():
        if title is not None:
            sys.stdout.write(f"# {title}\n")
        for row in (headings, *rows):
            sys.stdout.write("\t".join(row) + "\n")
        return
    if title is not None:
        write_line(title)
    columns = [
        number for number in range(len(headings)) if number == 0 or any(row[number] for row in rows)
    ]
    headings, rows = (
        [headings[one] for one in columns],
        [[row[one] for one in columns] for row in rows],
    )
    widths = column_widths(headings, rows, terminal_width())
    if widths is None:
        _print_list(headings, rows)
    else:
        _print_boxed(headings, rows, widths)


def column_widths(headings: Sequence[str], rows: Rows, width: int) -> list[int] | None:
    """The width of each column; None if the table is wider than `width` even when cells are
    wrapped.
    """
    columns = [[cells[number] for cells in (headings, *rows)] for number in range(len(headings))]
    lowest = [max(map(longest_part, column)) for column in columns]
    widths = [max(map(text_width, column)) for column in columns]
    room = width - 3 * len(columns) - 1
    if sum(lowest) > room:
        return None
    body = [max(map(text_width, column[1:]), default=0) for column in columns]
    while sum(widths) > room:
        # Headings are wrapped before cells, and the widest column first.
        candidates = [one for one in range(len(widths)) if widths[one] > lowest[one]]
        widths[max(candidates, key=lambda one: (widths[one] > body[one], widths[one]))] -= 1
    return widths


def _print_boxed(headings: Sequence[str], rows: Rows, widths: Sequence[int]) -> None:
    from rich.box import HEAVY_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(
        file=sys.stdout, markup=False, highlight=False, emoji=False, width=terminal_width()
    )
    # If most rows take several lines, lines are drawn between rows.
    broken = [
        row
        for row in rows
        if any(text_width(cell) > width for cell, width in zip(row, widths, strict=True))
    ]
    table = Table(box=HEAVY_HEAD, show_lines=2 * len(broken) > len(rows))
    for number, heading in enumerate(headings):
        is_figure = number > 0 and all(_is_figure(row[number]) for row in rows)
        shown = "\n".join(wrap(heading, widths[number]))
        table.add_column(
            shown, justify="right" if is_figure else "left", width=widths[number], no_wrap=True
        )
    for row in rows:
        table.add_row(
            *("\n".join(wrap(cell, width)) for cell, width in zip(row, widths, strict=True))
        )
    console.print(table)


def _is_figure(cell: str) -> bool:
    """Whether a cell is a number, with or without a unit and a remark in brackets, or empty, or a
    dash; not a sentence that begins with a number.
    """
    words = re.findall(r"[^\W\d_]+", re.sub(r"\(.*\)", "", cell))
    return FIGURE.match(cell) is not None and len(words) <= 1


def _print_list(headings: Sequence[str], rows: Rows) -> None:
    mark = say(": ", "：")
    for row in rows:
        write_line(row[0])
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            if cell:
                write_line(f"  {heading}{mark}{cell}", hanging=2)


def print_columns(rows: Rows, *, indent: str = "") -> None:
    """Two columns without lines: names, and descriptions wrapped beside them."""
    left = max((text_width(row[0]) for row in rows), default=0)
    room = terminal_width() - text_width(indent) - left - 2
    for name, said in rows:
        if room < 24:
            write_line(f"{indent}{name}")
            write_line(f"{indent}  {said}")
            continue
        first, *rest = wrap(said, room)
        sys.stdout.write(f"{indent}{pad(name, left)}  {first}\n")
        sys.stdout.writelines(f"{indent}{' ' * left}  {line.lstrip()}\n" for line in rest)
