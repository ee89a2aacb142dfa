"""Names the directions of a translator that has several, as a recipe writes them: `en-de`.

    en-de        from English to German
    <2de>        the word before each source that is to become German

The model learns from all directions at once and has one vocabulary. The word before the source
alone tells it which language to write (Johnson et al. 2017); the language of the source it sees for
itself. Whatever reads, learns and translates works on the data of one direction, whose corpora have
this word as their tag (`DataSettings.one_way`).

Tested against: the pieces and batches of a translator of one direction with that tag.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import pydantic

from headwise.errors import SettingsError


def _check_direction(name: str) -> str:
    codes = name.split("-")
    if (
        len(codes) != 2
        or not all(code.replace("_", "").isalnum() for code in codes)
        or codes[0] == codes[1]
    ):
        raise SettingsError(
            f"{name!r} is no direction; write two different language codes with a hyphen between "
            "them, e.g. en-de; within a code write zh_Hans, not zh-Hans",
            f"{name!r} 不是翻译方向；请写两个不同的语言代码，以连字符相连，例如 en-de；代码内部写 "
            "zh_Hans，不写 zh-Hans",
        )
    return name


Direction = Annotated[
    str,
    pydantic.Field(max_length=64, json_schema_extra={"pattern": "^[^-]+-[^-]+$"}),
    pydantic.AfterValidator(_check_direction),
]
"""Of a translation: source and target, as in en-de."""


def languages_of(direction: str) -> tuple[str, str]:
    """Source and target of a direction."""
    source, target = direction.split("-")
    return source, target


def target_tag(target: str) -> str:
    """The word before a source that is to become this language."""
    return f"<2{target}>"


def in_arrows(directions: Iterable[str]) -> str:
    """Directions for people: `en → de, de → en`."""
    return ", ".join(" → ".join(languages_of(one)) for one in directions)


def check_several(directions: tuple[str, ...], zero_shot: tuple[str, ...]) -> None:
    """Refuse directions that are repeated, and unseen ones that nothing learnt can reach."""
    if zero_shot and not directions:
        raise SettingsError(
            "data.zero_shot needs data.directions, the directions that are learnt",
            "data.zero_shot 需要 data.directions，即参与训练的方向",
        )
    listed = (*directions, *zero_shot)
    again = next((one for one in listed if listed.count(one) > 1), None)
    if again is not None:
        raise SettingsError(
            f"{again} is named twice in data.directions and data.zero_shot; name it once: "
            "directions are learnt, those of zero_shot are only measured",
            f"{again} 在 data.directions 与 data.zero_shot 中出现两次；请只写一次：directions "
            "参与训练，zero_shot 只作评测",
        )
    learnt = {code for one in directions for code in languages_of(one)}
    targets = {languages_of(one)[1] for one in directions}
    for one in zero_shot:
        source, target = languages_of(one)
        if source not in learnt or target not in targets:
            raise SettingsError(
                f"data.zero_shot has {one}, but no direction that is learnt "
                + (f"writes {target}" if target not in targets else f"has {source}")
                + "; name a direction between languages of data.directions",
                f"data.zero_shot 中有 {one}，但训练的方向中"
                + (f"没有译入 {target} 的" if target not in targets else f"没有 {source}")
                + "；请写 data.directions 中各语言之间的方向",
            )


def check_named(named: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    """Refuse a corpus with a direction that the recipe has not."""
    wrong = next((one for one in named or () if one not in known), None)
    if wrong is None:
        return
    raise SettingsError(
        f"a corpus has the direction {wrong}, which is in neither data.directions nor "
        "data.zero_shot" + (f" ({', '.join(known)})" if known else "") + "; add it there",
        f"某语料的方向 {wrong} 不在 data.directions 与 data.zero_shot 中"
        + (f"（{'、'.join(known)}）" if known else "")
        + "；请在其中加上",
    )


def check_learnt(without: Sequence[str]) -> None:
    """Refuse directions that no training corpus is read in."""
    if without:
        raise SettingsError(
            f"no corpus of data.train is read in the direction {without[0]}; add one, or move the "
            "direction to data.zero_shot",
            f"data.train 中没有按方向 {without[0]} 读取的语料；请添加，或把该方向移到 "
            "data.zero_shot",
        )
