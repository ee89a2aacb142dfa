"""Sentence patterns of the pocket corpus with numbers: dates, clock times, prices, ages, distances.

The same number stands in another position and beside another word: German says halb vier for half
past three, Chinese writes the month before the day and counts with 点 and 岁.
"""

from __future__ import annotations

from headwise.pocket.chinese import numeral
from headwise.pocket.lexicon import names, nouns_of, places_of
from headwise.pocket.noun_phrases import NUMBER_WORDS, NamePhrase, NounPhrase
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import NumberPhrase, PlacePhrase, TimePhrase, fixed
from headwise.pocket.random_draw import Draw
from headwise.pocket.word_choices import people, person, thing, when

PRICES = (5, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 80, 90, 100, 150, 200, 300, 500, 800)
EVENTS = (
    ("the|D1 concert|N2", "音乐会|N2", "das|D1 Konzert|N2"),
    ("the|D1 meeting|N2", "会议|N2", "die|D1 Sitzung|N2"),
    ("the|D1 exam|N2", "考试|N2", "die|D1 Prüfung|N2"),
    ("the|D1 wedding|N2", "婚礼|N2", "die|D1 Hochzeit|N2"),
    ("the|D1 party|N2", "聚会|N2", "die|D1 Party|N2"),
    ("the|D1 exhibition|N2", "展览|N2", "die|D1 Ausstellung|N2"),
    ("the|D1 lecture|N2", "讲座|N2", "der|D1 Vortrag|N2"),
)
DAILY = (
    (
        "gets|V1 up|P1",
        "get|V1 up|P1",
        "起床|V1",
        "steht|V1",
        "stehen|V1",
        "stehe|V1",
        "auf|P1",
        5,
        8,
    ),
    (
        "has|V1 breakfast|N2",
        "have|V1 breakfast|N2",
        "吃|V1 早饭|N2",
        "frühstückt|V1,2",
        "frühstücken|V1,2",
        "frühstücke|V1,2",
        "",
        6,
        9,
    ),
    (
        "goes|V1 to|P1 bed|N1",
        "go|V1 to|P1 bed|N1",
        "上床|V1",
        "geht|V1",
        "gehen|V1",
        "gehe|V1",
        "ins|P1 Bett|N1",
        8,
        12,
    ),
    (
        "starts|V1 work|N2",
        "start|V1 work|N2",
        "开始|V1 工作|N2",
        "fängt|V1",
        "fangen|V1",
        "fange|V1",
        "an|V1 zu|T2 arbeiten|V2",
        7,
        10,
    ),
    (
        "goes|V1 home|R2",
        "go|V1 home|R2",
        "回|V1 家|N2",
        "geht|V1",
        "gehen|V1",
        "gehe|V1",
        "nach|P2 Hause|N2",
        3,
        7,
    ),
)
MONTHS = names("month")
HE, SHE = names("he"), names("she")


def clock(draw: Draw, first: int = 1, last: int = 12) -> TimePhrase:
    """A full or a half hour; German counts the half before the next hour."""
    hour = first + draw.below(last - first + 1)
    en, de = NUMBER_WORDS["en"], NUMBER_WORDS["de"]
    if draw.percent(50):
        german = "ein" if hour == 1 else de[hour]
        return fixed(
            "t",
            f"at|P1 {en[hour]}|M2 o'clock|R3",
            f"{numeral(hour)}|M2 点|N3",
            f"um|P1 {german}|M2 Uhr|N3",
        )
    return fixed(
        "t",
        f"at|P1 half|N4 past|P3 {en[hour]}|M2",
        f"{numeral(hour)}|M2 点|N3 半|N4",
        f"um|P1 halb|A3,4 {de[hour % 12 + 1]}|M2",
    )


def date(draw: Draw, name: str = "t") -> TimePhrase:
    """A day of the year."""
    month = draw.choose(MONTHS)
    day = 1 + draw.below(28)
    return fixed(
        name,
        f"on|P1 {month.en}|E2 {day}|M3",
        f"{month.zh}|M2 月|N2 {day}|M3 日|N3",
        f"am|P1 {day}.|A3 {month.de}|N2",
    )


def event(draw: Draw) -> Slots:
    chosen = draw.choose(EVENTS)
    month_day = date(draw)
    draw.pair("event", chosen[0], month_day.time.en[1].word)
    return {"o": fixed("o", *chosen), "t": month_day}


def event_weekday(draw: Draw) -> Slots:
    chosen = draw.choose(EVENTS)
    day = draw.choose(names("weekday"))
    draw.pair("event", chosen[0], day.en)
    return {"o": fixed("o", *chosen), "d": NamePhrase("d", day), "c": clock(draw)}


def born(draw: Draw) -> Slots:
    subject = draw.choose(HE + SHE)
    month_day = date(draw)
    draw.pair("born", subject.en, month_day.time.en[1].word)
    return {
        "s": NamePhrase("s", subject),
        "t": month_day,
        "y": NumberPhrase("y", 1985 + draw.below(30)),
    }


def aged(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    years = 6 + draw.below(75)
    if isinstance(subject, NounPhrase) and subject.plural:
        subject = NounPhrase("s", subject.noun)
    if isinstance(subject, NounPhrase):
        years = (
            6 + draw.below(9)
            if subject.noun.classes & {"young", "son", "daughter"}
            else 30 + draw.below(40)
        )
        draw.pair("age", subject.noun.concept, str(years))
    return {"s": subject, "n": NumberPhrase("n", years)}


def price(draw: Draw) -> Slots:
    item = draw.choose(
        [one for one in nouns_of("bought") if not one.classes & {"vehicle", "house", "piano"}]
    )
    value = draw.choose(
        PRICES[9:] if item.classes & {"device", "furniture", "instrument"} else PRICES[1:10]
    )
    draw.pair("price", item.concept, str(value))
    return {"o": thing(draw, "o", item, ("the", "this")), "n": NumberPhrase("n", value)}


def unpriced(draw: Draw) -> Slots:
    return {"o": thing(draw, "o", draw.choose(nouns_of("bought")), ("the", "this"))}


def daily(draw: Draw) -> Slots:
    subject = person(draw, "s", people("adult kin"))
    third, plural, zh, de_third, de_plural, de_first, rest, first, last = draw.choose(DAILY)
    german = (de_third, de_plural, de_first)[subject.agreement]
    if isinstance(subject, NounPhrase):
        draw.pair("daily", subject.noun.concept, third)
    return {
        "s": subject,
        "v": fixed("v", plural if subject.agreement else third, zh, german),
        "e": fixed("v", "", "", rest),
        "t": clock(draw, first, last),
    }


def train(draw: Draw) -> Slots:
    cities = names("city")[:6] if draw.percent(85) else names("city")[-2:]
    start = draw.choose(cities)
    goal = draw.choose([one for one in cities if one is not start])
    moment = clock(draw)
    draw.pair("journey", start.en, goal.en)
    return {"a": NamePhrase("a", start), "b": NamePhrase("b", goal), "t": moment}


def opening(draw: Draw) -> Slots:
    place = draw.choose([one for one in places_of("building") if one.noun.concept in OPEN])
    day = draw.choose(names("weekday"))
    draw.pair("opening", place.noun.concept, day.en)
    return {"l": PlacePhrase("l", place), "d": NamePhrase("d", day), "c": clock(draw, 7, 11)}


OPEN = (
    "library",
    "pharmacy",
    "supermarket",
    "bakery",
    "restaurant",
    "cafe",
    "museum",
    "theatre",
    "cinema",
)


def distance(draw: Draw) -> Slots:
    town = places_of("building")
    first = draw.choose(town)
    second = draw.choose([one for one in town if one is not first])
    draw.pair("beside", first.noun.concept, second.noun.concept)
    return {
        "o": PlacePhrase("o", first),
        "l": PlacePhrase("l", second),
        "n": NumberPhrase("n", 2 + draw.below(11)),
    }


def waiting(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    vehicle = draw.choose(
        (
            ("the|D1 bus|N2", "公共汽车|N2", "den|D1 Bus|N2"),
            ("the|D1 train|N2", "火车|N2", "den|D1 Zug|N2"),
            ("the|D1 taxi|N2", "出租车|N2", "das|D1 Taxi|N2"),
            ("the|D1 tram|N2", "电车|N2", "die|D1 Straßenbahn|N2"),
        )
    )
    if isinstance(subject, NounPhrase):
        draw.pair("waiting", subject.noun.concept, vehicle[0])
    return {
        "s": subject,
        "o": fixed("o", *vehicle),
        "n": NumberPhrase("n", 2 + draw.below(3)),
        "t": when(draw, "recent"),
    }


def ago(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    unit = draw.choose(
        (
            ("days", "天", "Tagen"),
            ("weeks", "个星期", "Wochen"),
            ("months", "个月", "Monaten"),
            ("years", "年", "Jahren"),
        )
    )
    city = draw.choose(names("city"))
    if isinstance(subject, NounPhrase):
        draw.pair("living", subject.noun.concept, city.en)
    return {
        "s": subject,
        "n": NumberPhrase("n", 2 + draw.below(10)),
        "u": fixed("u", f"{unit[0]}|N1", f"{unit[1]}|N1", f"{unit[2]}|N1"),
        "c": NamePhrase("c", city),
    }


PATTERNS = worded(
    "numbers_and_dates.txt",
    {
        "event-date": event,
        "event-weekday": event_weekday,
        "born": born,
        "age": aged,
        "price": price,
        "ask-price": unpriced,
        "daily": daily,
        "train-times": train,
        "opening": opening,
        "distance": distance,
        "waited": waiting,
        "ago": ago,
    },
)
