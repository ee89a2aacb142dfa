"""The explorer: shows what a model computes, as values, pictures and a web page.

`data` computes traces and tables, `pictures` draws them, `static` is the page.
"""

from headwise.explorer.data.attention_maps import AttentionMap, HeadChoice, MapKind, Trace
from headwise.explorer.pictures.attention_files import write_attention
from headwise.explorer.pictures.heat_maps import draw_all, draw_grid, draw_heat_map
from headwise.explorer.pictures.html_page import write_page
from headwise.explorer.pictures.pronoun_picture import draw_pronoun_picture

__all__ = [
    "MapKind",
    "AttentionMap",
    "HeadChoice",
    "Trace",
    "draw_all",
    "draw_grid",
    "draw_heat_map",
    "draw_pronoun_picture",
    "write_attention",
    "write_page",
]
