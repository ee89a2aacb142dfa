"""Sentence patterns of the pocket corpus with a subordinate clause: because, if, when, although,
that, in order to.

In German the verb of the subordinate clause stands at its end, and a main clause that comes second
begins with its verb.
"""

from __future__ import annotations

from headwise.pocket.lexicon import adjectives, names, nouns_of, places_of, verb
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase, Speaker
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import PlacePhrase, Quality, VerbPhrase, fixed
from headwise.pocket.random_draw import Draw
from headwise.pocket.word_choices import act, people, person, thing, when, when_future, when_past

THINK = (
    ("says|V1", "说|V1", "sagt|V1"),
    ("thinks|V1", "认为|V1", "denkt|V1"),
    ("knows|V1", "知道|V1", "weiß|V1"),
    ("believes|V1", "相信|V1", "glaubt|V1"),
    ("hopes|V1", "希望|V1", "hofft|V1"),
)


def speaker(draw: Draw, name: str) -> NounPhrase | NamePhrase:
    """A third person singular who says or thinks."""
    found = person(draw, name, people("adult"), pronouns=False)
    if isinstance(found, NounPhrase) and found.plural:
        return NounPhrase(name, found.noun)
    assert not isinstance(found, Speaker)
    return found  # type: ignore[return-value]


def second(draw: Draw, avoid: object) -> NamePhrase:
    """Another person, by name."""
    used = avoid.proper.en if isinstance(avoid, NamePhrase) else ""
    return NamePhrase(
        "p", draw.choose([one for one in names("he") + names("she") if one.en != used])
    )


def thinking(draw: Draw) -> Slots:
    slots = act(draw, draw.choose(("act", "once")), ("the", "this", "a", 2), pronouns=False)
    return {
        **slots,
        "p": second(draw, slots["s"]),
        "k": fixed("k", *draw.choose(THINK[:4])),
        "t": when_past(draw, slots),
    }


def thinking_future(draw: Draw) -> Slots:
    slots = act(draw, "plan", ("the", "this", "a", 2), pronouns=False)
    thought = fixed("k", *draw.choose(THINK[:2] + THINK[3:]))
    return {**slots, "p": second(draw, slots["s"]), "k": thought, "t": when_future(draw, slots)}


def weather(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    plan = draw.choose(PLANS)
    if isinstance(subject, NounPhrase):
        draw.pair("plan", plan[0], subject.noun.concept)
    return {"s": subject, "k": fixed("k", *plan), "t": when(draw, "soon")}


PLANS = (
    ("stay|V1 at|P2 home|N2", "待|V1 在|P2 家里|N2", "zu|P2 Hause|N2 bleiben|V1"),
    ("read|V1 a|D2 book|N3", "看|V1 一|M2 本|N2 书|N3", "ein|D2 Buch|N3 lesen|V1"),
    ("go|V1 to|P2 the|D2 museum|N3", "去|V1 博物馆|N3", "ins|P2 Museum|N3 gehen|V1"),
    ("go|V1 to|P2 the|D2 cinema|N3", "去|V1 电影院|N3", "ins|P2 Kino|N3 gehen|V1"),
    ("watch|V1 a|D2 film|N3", "看|V1 一|M2 部|N2 电影|N3", "einen|D2 Film|N3 anschauen|V1"),
    ("bake|V1 a|D2 cake|N3", "烤|V1 一|M2 个|N2 蛋糕|N3", "einen|D2 Kuchen|N3 backen|V1"),
    ("take|V1 the|D2 umbrella|N3", "带|V1 雨伞|N3", "den|D2 Regenschirm|N3 mitnehmen|V1"),
    ("take|V1 a|D2 taxi|N3", "坐|V1 出租车|N3", "ein|D2 Taxi|N3 nehmen|V1"),
)
WEATHER = (
    ("it|Oz rained|V1", "下雨|V1 了|X", "es|Oz regnete|V1"),
    ("it|Oz snowed|V1", "下雪|V1 了|X", "es|Oz schneite|V1"),
    ("the|D weather|N1 was|X bad|A2", "天气|N1 很|R 不好|A2", "das|D Wetter|N1 schlecht|A2 war|X"),
    (
        "the|D bus|N1 was|X late|A2",
        "公共汽车|N1 晚点|V2 了|X",
        "der|D Bus|N1 Verspätung|N2 hatte|V2",
    ),
)
REACTIONS = (
    (
        "stayed|V1 at|P2 home|N2",
        "待|V1 在|P2 了|X 家里|N2",
        "blieb|V1",
        "blieben|V1",
        "zu|P2 Hause|N2",
    ),
    ("came|V1 late|R2", "来|V1 晚|A2 了|X", "kam|V1", "kamen|V1", "zu|R2 spät|R2"),
    ("took|V1 a|D2 taxi|N3", "坐|V1 了|X 出租车|N3", "nahm|V1", "nahmen|V1", "ein|D2 Taxi|N3"),
    ("went|V1 home|R2", "回|V1 家|N2 了|X", "ging|V1", "gingen|V1", "nach|P2 Hause|N2"),
)


def reaction(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    cause, effect = draw.choose(WEATHER), draw.choose(REACTIONS)
    if isinstance(subject, NounPhrase):
        draw.pair("plan", effect[0], subject.noun.concept)
    german = effect[3] if subject.agreement == 1 else effect[2]
    return {
        "s": subject,
        "w": fixed("w", *cause),
        "k": fixed("k", effect[0], effect[1], german),
        "e": fixed("k", "", "", effect[4]),
        "t": when(draw, "recent"),
    }


def arriving(draw: Draw) -> Slots:
    doer = act(draw, "act", ("the", "a", 2), pronouns=False)
    return {**doer, "p": second(draw, doer["s"])}


def purpose(draw: Draw) -> Slots:
    buy = verb("buy")
    place = draw.choose(places_of("shopping"))
    classes = {"bakery": "baked", "supermarket": "food", "market": "fruit vegetable"}[
        place.noun.concept
    ]
    item = draw.choose(nouns_of(classes))
    subject = person(draw, "s", people("person kin"))
    draw.pair("object", "buy", item.concept)
    return {
        "s": subject,
        "l": PlacePhrase("l", place),
        "v": VerbPhrase("v", buy, subject.agreement),
        "o": thing(draw, "o", item, ("a", 2, 3, 4, 5, "some")),
        "t": when(draw, "recent"),
    }


def contrast(draw: Draw) -> Slots:
    """One likes this, the other that: kinds of things, in the plural."""
    first, other = draw.choose(nouns_of("food pet")), None
    group = nouns_of("food") if "food" in first.classes else nouns_of("pet")
    other = draw.choose([one for one in group if one is not first])
    subject = person(draw, "s", people("person kin"))
    draw.pair("object", "like", first.concept)
    draw.pair("object", "like", other.concept)
    return {
        "s": subject,
        "p": second(draw, subject),
        "o": NounPhrase("o", first, "bare", plural=True),
        "q": NounPhrase("q", other, "bare", plural=True),
    }


def speech(draw: Draw) -> Slots:
    mood = draw.choose(
        [one for one in adjectives() if "mood" in one.kinds or one.concept == "tired"]
    )
    subject = speaker(draw, "s")
    if isinstance(subject, NounPhrase):
        draw.pair("mood", mood.concept, subject.noun.concept)
    return {"s": subject, "a": Quality("a", mood), "d": Speaker("d", draw.choose(("i", "we")))}


PATTERNS = worded(
    "clauses.txt",
    {
        "that-past": thinking,
        "that-future": thinking_future,
        "if-weather": weather,
        "because-weather": reaction,
        "when-arriving": arriving,
        "in-order-to": purpose,
        "contrast": contrast,
        "direct-speech": speech,
    },
)
