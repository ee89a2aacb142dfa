"""Where attention may stand in a model, and what each kind refuses there: asked once, when a model is built.

    encoder   among source tokens: everything is there to be seen
    decoder   among target tokens, which are written one by one: nothing ahead may be seen
    cross     from target to source: two sequences, which have no line of neighbours in common

Tested against: every kind in every role, by what is refused and what is named instead.
"""

from typing import Literal

from headwise.errors import SettingsError

Role = Literal["encoder", "decoder", "cross"]
"""Where attention stands: among source tokens, among target tokens (never ahead), from target to source."""


def needs_whole_sentences(role: Role) -> None:
    if role == "decoder":
        raise SettingsError(
            "attention.kind=linformer stands in model.decoder.attention, but a mixture of all words would show a word the ones after it; "
            "use kind=window, linear, performer or fused there (linformer may stand in encoder.attention and decoder.cross_attention)",
            "attention.kind=linformer 出现在 model.decoder.attention，而全句的混合会让一个词看到其后的词；"
            "请在该处使用 kind=window、linear、performer 或 fused（linformer 可用于 encoder.attention 与 decoder.cross_attention）",
        )


def needs_one_line(kind: str, role: Role) -> None:
    """Neighbourhood means something among the tokens of one sequence only."""
    if role == "cross":
        raise SettingsError(
            f"attention.kind={kind} stands in model.decoder.cross_attention, where queries and keys are two sequences without "
            "a common line of neighbours; use kind=fused there",
            f"attention.kind={kind} 出现在 model.decoder.cross_attention；那里查询与键属于两个序列，没有共同的相邻关系；"
            "请在该处使用 kind=fused",
        )


def looks_back(left: int, role: Role) -> None:
    if role == "decoder" and left == 0:
        raise SettingsError(
            "attention.left=0 in model.decoder.attention, where nothing ahead is seen, so a token would see only itself; "
            "set attention.left=1 or more",
            "model.decoder.attention 中 attention.left=0，而解码器看不到后面，词元只能看到自己；请设 attention.left=1 或更大",
        )


def needs_a_whole_sequence(kind: str, role: Role, way: str = "", way_zh: str = "") -> None:
    """Global tokens look ahead, so nothing may still be unwritten."""
    needs_one_line(kind, role)
    if role == "decoder":
        raise SettingsError(
            f"attention.kind={kind} stands in model.decoder.attention, where later tokens are not written yet, but its global "
            f"tokens look ahead; use kind=window or kind=fused there{way}",
            f"attention.kind={kind} 出现在 model.decoder.attention；那里后面的词元尚未写出，而它的全局词元会向后看；"
            f"请在该处使用 kind=window 或 kind=fused{way_zh}",
        )
