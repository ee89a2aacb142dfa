"""Sentence patterns of the pocket corpus about places: where things are, and where people go.

German has the dative for a place, the accusative for a direction, and im, ins, zum. In Chinese the
place stands before the verb, and the localiser (上, 里, 下面) after the noun.
"""

from __future__ import annotations

from headwise.pocket.lexicon import Noun, names, nouns_of, places_of
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import Location, NumberPhrase, PlacePhrase, fixed
from headwise.pocket.random_draw import Draw
from headwise.pocket.word_choices import people, person, thing, when

PLACED = tuple(
    one for one in nouns_of("lie stand") if not one.classes & {"container", "instrument", "drum"}
)
VEHICLES = (
    ("by|P1 bus|N2", "坐|V1 公共汽车|N2", "mit|P1 dem|D1 Bus|N2"),
    ("by|P1 train|N2", "坐|V1 火车|N2", "mit|P1 dem|D1 Zug|N2"),
    ("by|P1 car|N2", "坐|V1 汽车|N2", "mit|P1 dem|D1 Auto|N2"),
    ("by|P1 bicycle|N2", "骑|V1 自行车|N2", "mit|P1 dem|D1 Fahrrad|N2"),
    ("by|P1 plane|N2", "坐|V1 飞机|N2", "mit|P1 dem|D1 Flugzeug|N2"),
    ("by|P1 taxi|N2", "坐|V1 出租车|N2", "mit|P1 dem|D1 Taxi|N2"),
    ("by|P1 underground|N2", "坐|V1 地铁|N2", "mit|P1 der|D1 U-Bahn|N2"),
    ("by|P1 tram|N2", "坐|V1 电车|N2", "mit|P1 der|D1 Straßenbahn|N2"),
)


def going(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    place = draw.choose(places_of("town"))
    if isinstance(subject, NounPhrase):
        draw.pair("going", subject.noun.concept, place.noun.concept)
    return {"s": subject, "l": PlacePhrase("l", place), "t": when(draw, "recent")}


def going_future(draw: Draw) -> Slots:
    return {**going(draw), "t": when(draw, "soon")}


def riding(draw: Draw) -> Slots:
    slots = going(draw)
    return {
        **slots,
        "b": fixed("b", *draw.choose(VEHICLES[:4] + VEHICLES[5:])),
        "t": when(draw, "habit"),
    }


def spot(draw: Draw, item: Noun) -> Location:
    """A place in a room where the item can be."""
    relation = draw.choose(
        ("in", "in", "on", "under") if "small" in item.classes else ("on", "on", "under", "beside")
    )
    classes = {
        "on": "surface",
        "under": "table desk chair bed sofa",
        "beside": "furniture door",
        "in": "container",
    }[relation]
    found = draw.choose([one for one in nouns_of(classes) if one is not item])
    draw.pair(relation, item.concept, found.concept)
    return Location("l", NounPhrase("l", found), relation)


def posture(item: Noun, lies: str, stands: str) -> str:
    """German things lie or stand."""
    return stands if "stand" in item.classes else lies


def located(draw: Draw) -> Slots:
    item = draw.choose(PLACED)
    location = spot(draw, item)
    return {
        "o": thing(draw, "o", item, ("the", "the", "this", "my", "your")),
        "l": location,
        "v": fixed("v", "is|X1", "x|X1", posture(item, "liegt|V1", "steht|V1")),
    }


def existing(draw: Draw) -> Slots:
    item = draw.choose(PLACED)
    location = spot(draw, item)
    phrase = thing(draw, "o", item, ("a", "a", 2, 3, 4, 5, 6, "many", "some"))
    verb = (
        posture(item, "liegen|V1", "stehen|V1")
        if phrase.plural
        else posture(item, "liegt|V1", "steht|V1")
    )
    return {
        "o": phrase,
        "l": location,
        "v": fixed("v", "are|V1" if phrase.plural else "is|V1", "有|V1", verb),
    }


def putting(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    item = draw.choose(PLACED)
    location = spot(draw, item)
    forms = posture(item, "legte/legten", "stellte/stellten").split("/")
    put = fixed("v", "put|V1", "放|V1", forms[1 if subject.agreement == 1 else 0] + "|V1")
    return {
        "s": subject,
        "v": put,
        "o": thing(draw, "o", item, ("the", "this", "my")),
        "l": location,
        "t": when(draw, "recent"),
    }


def being(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    place = draw.choose(places_of("room town outside inside"))
    if isinstance(subject, NounPhrase):
        draw.pair("being", subject.noun.concept, place.noun.concept)
    return {"s": subject, "l": PlacePhrase("l", place)}


def working(draw: Draw) -> Slots:
    subject = person(draw, "s", nouns_of("kin man woman neighbour"))
    place = draw.choose(places_of("workplace"))
    if isinstance(subject, NounPhrase):
        draw.pair("working", subject.noun.concept, place.noun.concept)
    return {"s": subject, "l": PlacePhrase("l", place), "n": NumberPhrase("n", 2 + draw.below(11))}


def origin(draw: Draw) -> Slots:
    subject = person(draw, "s", people("adult"))
    country = draw.choose(names("country"))
    if isinstance(subject, NounPhrase):
        draw.pair("origin", subject.noun.concept, country.en)
    home = draw.choose(names("city"))
    return {"s": subject, "n": NamePhrase("n", country), "c": NamePhrase("c", home)}


def living(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    city = draw.choose(names("city"))
    if isinstance(subject, NounPhrase):
        draw.pair("living", subject.noun.concept, city.en)
    return {"s": subject, "n": NamePhrase("n", city)}


def neighbours(draw: Draw) -> Slots:
    town = [one for one in places_of("building") if one.noun.concept != "castle"]
    first = draw.choose(town)
    second = draw.choose([one for one in town if one is not first])
    draw.pair("beside", first.noun.concept, second.noun.concept)
    relation = draw.choose(("beside", "behind", "before"))
    return {
        "o": PlacePhrase("o", first),
        "l": Location("l", NounPhrase("l", second.noun), relation),
    }


def journey(draw: Draw) -> Slots:
    cities = names("city")[:6] if draw.percent(85) else names("city")[-2:]
    first = draw.choose(cities)
    second = draw.choose([one for one in cities if one is not first])
    draw.pair("journey", first.en, second.en)
    return {"a": NamePhrase("a", first), "b": NamePhrase("b", second), "t": when(draw, "soon")}


def traveller(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    city = draw.choose(names("city"))
    if isinstance(subject, NounPhrase):
        draw.pair("living", subject.noun.concept, city.en)
    return {
        "s": subject,
        "n": NamePhrase("n", city),
        "b": fixed("b", *draw.choose((VEHICLES[1], VEHICLES[4]))),
        "t": when(draw, "past"),
    }


def chasing(draw: Draw) -> Slots:
    item = draw.choose(nouns_of("pet prey frog hedgehog fox snake horse goat"))
    place = draw.choose(places_of("garden park forest"))
    draw.pair("being", item.concept, place.noun.concept)
    return {
        "o": thing(draw, "o", item, ("a", "the", 2, 3, "many")),
        "l": PlacePhrase("l", place),
        "s": person(draw, "s", people("person kin")),
        "t": when(draw, "recent"),
    }


PATTERNS = worded(
    "places.txt",
    {
        "went": going,
        "will-go": going_future,
        "goes-by": riding,
        "travelled": traveller,
        "is-where": located,
        "is-not-where": located,
        "is-it-there": located,
        "there-is": existing,
        "put": putting,
        "is-in": being,
        "works-since": working,
        "comes-from": origin,
        "lives-in": living,
        "beside": neighbours,
        "from-to": journey,
        "saw-somewhere": chasing,
    },
)
