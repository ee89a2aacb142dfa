"""Takes the attention maps of a translation (attention_maps.py) from a translator."""

from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import AttentionMap, MapKind, Trace
from headwise.tasks.translation.attention_trace import AttentionTrace
from headwise.tasks.translation.translator import Translation, Translator


def trace_translation(translator: Translator, text: str) -> Trace:
    """Translate a sentence and return it with the attention maps of every layer."""
    translation = translator([text], attention=True)[0]
    return trace_from(translation, translator.source_language, translator.target_language)


def trace_from(translation: Translation, source_language: str, target_language: str) -> Trace:
    """The trace of a translation that was made with `attention=True`."""
    attention = translation.attention
    if attention is None:
        raise UsageError(
            "this translation holds no attention; make it with translator([...], attention=True) "
            "from a non-empty text",
            "该译文不含注意力；请用 translator([...], attention=True) 翻译非空文本",
        )
    return Trace(
        source_text=translation.source,
        target_text=translation.text,
        source_pieces=attention.source_pieces,
        target_pieces=attention.target_pieces,
        target_input_pieces=attention.target_input_pieces,
        maps=maps_of(attention),
        title=translation.source,
        source_language=source_language,
        target_language=target_language,
    )


def maps_of(attention: AttentionTrace) -> tuple[AttentionMap, ...]:
    """The maps of a translator under the names of attention_maps.py."""
    kinds: dict[tuple[str, str], MapKind] = {
        ("encoder", "self"): "encoder_self",
        ("decoder", "self"): "decoder_self",
        ("decoder", "cross"): "cross",
    }
    maps = []
    for name, weights in attention.maps.items():
        stack, layer, role = name.split(".")
        maps.append(AttentionMap(name, kinds[stack, role], int(layer), weights))
    return tuple(maps)
