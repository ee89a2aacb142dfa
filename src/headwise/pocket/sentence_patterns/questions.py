"""Sentence patterns of the pocket corpus for questions, requests, abilities and orders.

English and German change the word order; Chinese keeps it and has 谁, 什么, 哪里 and 吗. German
questions about the past are in the perfect, as people speak.
"""

from __future__ import annotations

from headwise.pocket.lexicon import adjectives, names, nouns_of, verb, verbs_of
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase, Speaker
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import Quality, VerbPhrase, fixed
from headwise.pocket.random_draw import Draw
from headwise.pocket.template import TemplateSlot
from headwise.pocket.word_choices import (
    act,
    adjective_phrase,
    people,
    person,
    thing,
    undergoer,
    when,
    when_future,
    when_past,
)

DEFINITE: tuple[str | int, ...] = ("the", "the", "this", "a", 2, 3)


def past(draw: Draw) -> Slots:
    slots = act(draw, draw.choose(("act", "once")), DEFINITE)
    return {**slots, "t": when_past(draw, slots)}


def liking(draw: Draw) -> Slots:
    return act(draw, "state", ("the", "this"), verb(draw.choose(("like", "know", "need"))))


def possible(draw: Draw) -> Slots:
    slots = act(draw, "plan", DEFINITE)
    return {**slots, "t": when_future(draw, slots)}


def wishing(draw: Draw) -> Slots:
    chosen = draw.choose(verbs_of("plan"))
    slots: dict[str, TemplateSlot] = {
        "v": VerbPhrase("v", chosen),
        "o": undergoer(draw, chosen, ("the", "this", "a", 2)),
    }
    return {**slots, "s": Speaker("s", "you"), "t": when_future(draw, slots)}


def who(draw: Draw) -> Slots:
    chosen = draw.choose(verbs_of(draw.choose(("act", "once"))))
    slots: dict[str, TemplateSlot] = {
        "v": VerbPhrase("v", chosen),
        "o": undergoer(draw, chosen, ("the", "this", "my")),
    }
    return {**slots, "t": when_past(draw, slots)}


def what(draw: Draw) -> Slots:
    chosen = verb(
        draw.choose(
            (
                "eat",
                "buy",
                "read",
                "write",
                "paint",
                "find",
                "lose",
                "wash",
                "repair",
                "bake",
                "sell",
            )
        )
    )
    subject = person(draw, "s", chosen.subjects)
    return {
        "s": subject,
        "v": VerbPhrase("v", chosen, subject.agreement),
        "t": when(draw, "recent"),
    }


def where(draw: Draw) -> Slots:
    chosen = verb(
        draw.choose(
            ("buy", "find", "read", "meet", "lose", "photograph", "pick", "seeanimal", "plant")
        )
    )
    return act(draw, "once", ("the", "this"), chosen)


def which_time(draw: Draw) -> Slots:
    chosen = verb(
        draw.choose(
            ("buy", "visit", "write", "repair", "sell", "build", "meet", "invite", "wash", "borrow")
        )
    )
    return act(draw, "once", ("the", "this"), chosen)


def why(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person"))
    mood = draw.choose(
        [one for one in adjectives() if "mood" in one.kinds or one.concept == "tired"]
    )
    if isinstance(subject, NounPhrase):
        draw.pair("mood", mood.concept, subject.noun.concept)
    return {"s": subject, "a": Quality("a", mood)}


def how_many(draw: Draw) -> Slots:
    chosen = verb(
        draw.choose(
            ("eat", "buy", "read", "write", "sell", "bake", "see", "photograph", "plant", "find")[
                :6
            ]
        )
    )
    subject = person(draw, "s", chosen.subjects)
    item = draw.choose(chosen.objects)
    draw.pair("object", chosen.concept, item.concept)
    return {
        "s": subject,
        "v": VerbPhrase("v", chosen, subject.agreement),
        "o": NounPhrase("o", item, "bare", plural=True),
        "m": fixed("m", "many|Ao.d", f"{item.measure}|No.d", "viele|Ao.d"),
        "t": when(draw, "recent"),
    }


def whose(draw: Draw) -> Slots:
    item = draw.choose(nouns_of("portable lost clothes container vehicle"))
    return {
        "o": adjective_phrase(draw, "o", item, "this")
        if draw.percent(70)
        else NounPhrase("o", item, "this")
    }


def ability(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    skill = draw.choose(SKILLS)
    if isinstance(subject, NounPhrase):
        draw.pair("skill", skill[0], subject.noun.concept)
    return {"s": subject, "k": fixed("k", *skill)}


def language(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person"))
    spoken = draw.choose(names("language"))
    if isinstance(subject, NounPhrase):
        draw.pair("language", spoken.en, subject.noun.concept)
    return {"s": subject, "n": NamePhrase("n", spoken)}


def order(draw: Draw) -> Slots:
    concept, en, zh, de, prefix, classes = draw.choose(ORDERS)
    item = draw.choose(nouns_of(classes))
    draw.pair("object", concept, item.concept)
    return {
        "v": fixed("v", en, zh, de),
        "x": fixed("v", "x|V1", "x|V1", prefix) if prefix else fixed("v", "", "", ""),
        "o": thing(draw, "o", item, ("the", "this", "my")),
    }


SKILLS = (
    ("swim|V1", "游泳|V1", "schwimmen|V1"),
    ("cook|V1", "做饭|V1", "kochen|V1"),
    ("dance|V1", "跳舞|V1", "tanzen|V1"),
    ("sing|V1", "唱歌|V1", "singen|V1"),
    ("drive|V1", "开车|V1", "Auto|N1 fahren|V1"),
    ("ride|V1 a|D bicycle|N2", "骑|V1 自行车|N2", "Fahrrad|N2 fahren|V1"),
    ("ride|V1", "骑马|V1", "reiten|V1"),
    ("play|V1 the|D piano|N2", "弹|V1 钢琴|N2", "Klavier|N2 spielen|V1"),
    ("play|V1 the|D violin|N2", "拉|V1 小提琴|N2", "Geige|N2 spielen|V1"),
    ("play|V1 football|N2", "踢|V1 足球|N2", "Fußball|N2 spielen|V1"),
    ("play|V1 chess|N2", "下|V1 国际象棋|N2", "Schach|N2 spielen|V1"),
    ("play|V1 tennis|N2", "打|V1 网球|N2", "Tennis|N2 spielen|V1"),
)
ORDERS = (
    ("open", "open|V1", "打开|V1", "öffne|V1", "", "opened"),
    ("close", "close|V1", "关上|V1", "schließe|V1", "", "door window suitcase drawer fridge"),
    ("wash", "wash|V1", "洗|V1", "wasche|V1", "", "washed"),
    ("read", "read|V1", "看|V1", "lies|V1", "", "readable"),
    ("repair", "repair|V1", "修理|V1", "repariere|V1", "", "repaired"),
    ("switchon", "turn|V1 on|P1", "打开|V1", "schalte|V1", "ein|P1", "switched"),
    ("switchoff", "turn|V1 off|P1", "关掉|V1", "schalte|V1", "aus|P1", "switched"),
    ("sell", "sell|V1", "卖掉|V1", "verkaufe|V1", "", "vehicle furniture instrument"),
    (
        "throwaway",
        "throw|V1 away|P1",
        "扔掉|V1",
        "wirf|V1",
        "weg|P1",
        "clothes newspaper magazine bottle",
    ),
    ("feed", "feed|V1", "喂|V1", "füttere|V1", "", "pet farm"),
    ("visit", "visit|V1", "看望|V1", "besuche|V1", "", "person"),
    ("invite", "invite|V1", "邀请|V1", "lade|V1", "ein|P1", "person"),
)


PATTERNS = worded(
    "questions.txt",
    {
        "ask-past": past,
        "ask-liking": liking,
        "ask-wish": wishing,
        "who": who,
        "what": what,
        "where": where,
        "when": which_time,
        "why": why,
        "how-many": how_many,
        "whose": whose,
        "can": ability,
        "cannot": ability,
        "speaks": language,
        "must": possible,
        "wants": possible,
        "should": possible,
        "please": order,
        "do-not": order,
    },
)
