"""Pictures of attention: heat maps and links as PNG, and one self-contained HTML page to explore
them.
"""

from headwise.explorer.attention_files import write_attention
from headwise.explorer.heat_maps import draw_all, draw_grid, draw_heat_map
from headwise.explorer.html_page import write_page
from headwise.explorer.pronoun_pictures import draw_pronoun_picture
from headwise.explorer.traces import AttentionKind, AttentionMap, HeadChoice, Trace

__all__ = [
    "AttentionKind",
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
