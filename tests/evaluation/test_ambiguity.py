"""The ambiguity of a corpus: dictionaries and coins by hand, and the estimate written plainly."""

from collections import defaultdict
from math import log2

import numpy as np
import pytest

from headwise.evaluation.ambiguity import NUM_ROUNDS, Ambiguity, WordPair, measure_ambiguity
from headwise.pocket import texts
from headwise.randomness import numpy_generator
from headwise.text.known_words import find_words

WORDS = 11


def dictionary(num_pairs: int, *, senses: int, name: str) -> list[WordPair]:
    """Sentences of 2 to 5 words in which word i becomes t<i>, or one of several forms by chance."""
    chance = numpy_generator(name)
    pairs: list[WordPair] = []
    for _ in range(num_pairs):
        chosen = chance.choice(WORDS, size=int(chance.integers(2, 6)), replace=False)
        forms = chance.integers(senses, size=len(chosen))
        target = [f"t{word}.{form}" for word, form in zip(chosen, forms, strict=True)]
        pairs.append(
            ([f"s{word}" for word in chosen], [target[i] for i in chance.permutation(len(target))])
        )
    return pairs


def test_a_dictionary_leaves_nothing_open() -> None:
    found = measure_ambiguity(dictionary(300, senses=1, name="dictionary"))
    assert found == Ambiguity(0.0, found.order, 1.0, 300)


def test_two_equally_likely_translations_are_one_bit() -> None:
    found = measure_ambiguity(dictionary(3000, senses=2, name="coins"))
    # Of 10,000 words the entropy of a fair coin is below 1 by about (senses - 1) words / 2 N ln 2.
    assert found.words == pytest.approx(1.0, abs=0.01)
    assert found.translations == pytest.approx(2.0, abs=0.01)


def test_two_equally_likely_orders_are_one_bit_of_order() -> None:
    chance = numpy_generator("orders")
    fixed: list[WordPair] = []
    turned: list[WordPair] = []
    for _ in range(997):
        words = chance.choice(WORDS, size=4, replace=False)
        left, right = [f"s{word}" for word in words], [f"t{word}" for word in words]
        fixed.append((left, right))
        # Each word stands at its own place or at the mirrored one.
        turned.append((left, right[::-1] if chance.integers(2) else right))
    assert measure_ambiguity(fixed) == Ambiguity(0.0, 0.0, 1.0, 997)
    found = measure_ambiguity(turned)
    assert (found.words, found.translations) == (0.0, 1.0)
    assert found.order == pytest.approx(1.0, abs=0.02)


def test_the_second_wording_of_the_pocket_corpus_is_an_ambiguity_of_order() -> None:
    one, two = (
        measure_ambiguity(
            [
                (find_words(left), find_words(right))
                for left, right in texts("train", 997, ("en", "de"), second_wording=share)
            ]
        )
        for share in (0.0, 0.5)
    )
    assert two.order > one.order + 0.05
    assert two.words == pytest.approx(one.words, abs=0.02)


def plainly(pairs: list[WordPair]) -> tuple[float, float]:
    """IBM Model 1 with dictionaries; the empty word is None."""
    table: dict[tuple[str | None, str], float] = defaultdict(lambda: 1.0)
    for _ in range(NUM_ROUNDS):
        counts: dict[tuple[str | None, str], float] = defaultdict(float)
        totals: dict[str | None, float] = defaultdict(float)
        for left, right in pairs:
            choices = [None, *dict.fromkeys(left)]
            for word in right:
                whole = sum(table[other, word] for other in choices)
                for other in choices:
                    counts[other, word] += table[other, word] / whole
                    totals[other] += table[other, word] / whole
        table = defaultdict(float, {key: value / totals[key[0]] for key, value in counts.items()})
    links: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for left, right in pairs:
        for word in right:
            best = max([None, *dict.fromkeys(left)], key=lambda other: table[other, word])
            if best is not None:
                links[best][word] += 1
    linked = sum(sum(found.values()) for found in links.values())
    entropy = -sum(
        count / linked * log2(count / sum(found.values()))
        for found in links.values()
        for count in found.values()
    )
    return entropy, sum(map(len, links.values())) / len(links)


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("zh", "en")])
def test_it_is_the_estimate_written_with_dictionaries(source: str, target: str) -> None:
    pairs = [
        (find_words(left), find_words(right))
        for left, right in texts("test", 211, (source, target))
    ]
    found = measure_ambiguity(pairs)
    # Ties are broken by the order of words, which differs; they are few.
    assert (found.words, found.translations) == pytest.approx(plainly(pairs), rel=0.02)


def test_pairs_with_an_empty_side_are_ignored() -> None:
    assert measure_ambiguity([]) == Ambiguity(0.0, 0.0, 0.0, 0)
    assert measure_ambiguity([([], ["x"]), (["a"], [])]) == Ambiguity(0.0, 0.0, 0.0, 0)
    pairs = dictionary(53, senses=2, name="few")
    assert measure_ambiguity([*pairs, ([], ["x"])]) == measure_ambiguity(pairs)


def test_the_order_of_pairs_does_not_matter() -> None:
    pairs = dictionary(199, senses=3, name="order")
    found, turned = measure_ambiguity(pairs), measure_ambiguity(pairs[::-1])
    assert np.isclose(found.words, turned.words, rtol=1e-9)
    assert found.translations == turned.translations
