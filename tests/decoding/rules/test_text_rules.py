"""Rules hold on decoded text: in English, German and Chinese, whatever pieces and bytes spell a
phrase, in every search."""

import functools
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from headwise.decoding.choices import decode
from headwise.decoding.rules import token_effects
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.needed_tokens import IMPOSSIBLE
from headwise.decoding.rules.phrases import encode_phrases, rules_of, spelling_of
from headwise.decoding.rules.text_rules import TextRules, make_rules
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.length_penalty import NoLength
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import UsageError
from headwise.randomness import numpy_generator
from headwise.text.phrase_matching import occurs
from headwise.text.sentencepiece_tokenizer import learn_pieces
from headwise.text.spelling import Spelling
from headwise.text.tokenizer import Tokenizer
from tests.decoding.conftest import FakeStepper

LINES = {
    "en": [
        "the cat sleeps and the catalogue is old",
        "a cat, a bobcat and the cats",
        "the old book is on the cat",
    ]
    * 3,
    "de": [
        "der müde Hund ist ermüdend müde",
        "die Haustür und das Haus",
        "Häuser, Hunde und ein müder Hund",
    ]
    * 3,
    "zh": [
        "我想喝茶。",
        "他不喝咖啡，喝茶。",
        "我喝了一杯热茶和水。",
        "热茶不热，水热。",
        "我不想喝水。",
    ]
    * 3,
}
PHRASES = {
    "en": ("cat", "the", "catalogue", "old cat", "cats,", "a", "zebra"),
    "de": ("müde", "Hund", "Haus", "und das", "müder Hund", "Zebra"),
    "zh": ("喝", "茶", "喝茶", "咖啡", "我想", "龘"),
}
CASES = [(language, kind) for language in LINES for kind in ("bpe", "unigram")]


@functools.cache
def learn(language: str, kind: str) -> Tokenizer:
    lines = LINES[language]
    # Less than the whole alphabet: some letters are bytes.
    size = 256 + 4 + len({*"".join(lines)}) + 1
    return learn_pieces(
        lines,
        algorithm=kind,
        size=size,
        byte_fallback=True,
        coverage=0.98,
        normalization="identity",
    )


def dream(tokenizer: Tokenizer, phrases: tuple[str, ...], *, seed: int) -> FakeStepper:
    """A model that insists on a text of these phrases: it likes every token, byte or piece, that
    goes on with it."""
    chance = numpy_generator(f"dream {seed}")
    names = (
        [phrases[number] for number in chance.integers(len(phrases), size=4)]
        if phrases
        else ["xyz"]
    )
    text = " ".join(names) if chance.random() < 0.5 else "".join(names) + "."
    dreamt = f" {text}".encode()
    surfaces = tokenizer.surfaces()
    noise = {
        length: numpy_generator(f"{seed} {length}").normal(size=tokenizer.size) * 2
        for length in range(70)
    }

    def write(source, prefix):
        place = 0
        for token in prefix:
            place += len(surfaces[token]) if dreamt.startswith(surfaces[token], place) else 0
        logits = noise[len(prefix)] + 0.01 * len(source)
        logits += [
            6.0 * bool(surface and dreamt.startswith(surface, place)) for surface in surfaces
        ]
        logits[2] += 9.0 * (place >= len(dreamt))
        return logits - np.log(np.exp(logits).sum())

    return FakeStepper(write)


def texts_of(tokenizer, result):
    return [tokenizer.decode(found.tokens) for found in result.hypotheses]


SEARCHES = [
    GreedySettings(max_length=12),
    GreedySettings(max_length=9, at_limit="end", no_repeat_ngrams=3),
    SamplingSettings(max_length=11, num_samples=5, temperature=1.5),
    SamplingSettings(max_length=11, num_samples=3, top_k=3, allow_unknown=False),
    BeamSettings(size=4, num_best=4, max_length=10),
    BeamSettings(size=3, num_best=3, max_length=8, at_limit="end", min_length=4),
]


@pytest.mark.parametrize(
    "search", SEARCHES, ids=lambda search: f"{search.kind}-{search.max_length}"
)
@pytest.mark.parametrize(("language", "kind"), CASES)
@hypothesis_settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_forbidden_phrase_occurs_in_no_output(language, kind, search, data):
    tokenizer = learn(language, kind)
    phrases = tuple(
        data.draw(st.lists(st.sampled_from(PHRASES[language]), min_size=1, max_size=3, unique=True))
    )
    stepper = dream(tokenizer, phrases, seed=data.draw(st.integers(0, 99)))
    settings = search.model_copy(update={"forbidden": phrases})
    for result in decode(
        stepper, [(5,), (6, 7)], settings, phrases=encode_phrases(settings, tokenizer)
    ):
        for text in texts_of(tokenizer, result):
            assert not any(occurs(phrase, text) for phrase in phrases), text


@pytest.mark.parametrize(("language", "kind"), CASES)
def test_without_rules_they_would_be_written(language, kind):
    """Else the law above would hold of itself; phrases in whole pieces and in bytes are both
    written."""
    tokenizer, phrases = learn(language, kind), PHRASES[language]
    num_broken, num_bytes = 0, 0
    for seed in range(10):
        (result,) = decode(
            dream(tokenizer, phrases, seed=seed), [(5,)], GreedySettings(max_length=12)
        )
        num_broken += any(occurs(phrase, texts_of(tokenizer, result)[0]) for phrase in phrases)
        num_bytes += any(tokenizer.surfaces()[token] >= b"\x80" for token in result.best.tokens)
    assert num_broken >= 4
    assert num_bytes >= 3 or language == "en"


@pytest.mark.parametrize(("language", "kind"), CASES)
@hypothesis_settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_required_phrases_occur_in_every_output(language, kind, data):
    tokenizer = learn(language, kind)
    names = st.lists(st.sampled_from(PHRASES[language]), min_size=1, max_size=3, unique=True)
    required = tuple(data.draw(names))
    forbidden = tuple(
        phrase
        for phrase in data.draw(names)
        if not any(occurs(phrase, wanted) for wanted in required)
    )
    settings = BeamSettings(
        size=data.draw(st.integers(1, 5)),
        max_length=60,
        required=required,
        forbidden=forbidden,
        at_limit=data.draw(st.sampled_from(["cut", "end"])),
    )
    stepper = dream(
        tokenizer,
        data.draw(st.sampled_from([forbidden, required])),
        seed=data.draw(st.integers(0, 99)),
    )
    for result in decode(
        stepper, [(5,), (6, 7)], settings, phrases=encode_phrases(settings, tokenizer)
    ):
        for text in texts_of(tokenizer, result):
            assert all(occurs(phrase, text, exactly=True) for phrase in required), text
            assert not any(occurs(phrase, text) for phrase in forbidden), text


SPECIAL = [b"", b"", b"", "⁇".encode()]
WHOLE = [*SPECIAL, b" a", b"a", b"b", b" ", b".", b" b", b"ab", "茶".encode(), b"aa"]
BYTES = [
    *SPECIAL,
    b"\xe8",
    b"\x8c",
    b"\xb6",
    "茶".encode(),
    "。".encode(),
    b" a",
    b"\xe5",
    "茶。".encode(),
]


@pytest.mark.parametrize(
    ("surfaces", "forbidden", "required"),
    [
        (WHOLE, ("a",), ()),
        (WHOLE, ("ab",), ("b",)),
        (WHOLE, (), ("a", "aa")),
        (WHOLE, ("b a",), ("b.",)),
        (WHOLE, ("茶",), ("a a",)),
        (BYTES, (), ("茶",)),
        (BYTES, ("茶",), ("。",)),
    ],
)
def test_a_wide_beam_finds_what_exhaustive_search_finds(surfaces, forbidden, required):
    """Every sequence of at most three tokens is written out; the best that keeps to the rules is
    the answer."""
    length, vocab = 4, len(surfaces)
    rules = make_rules(forbidden, required, Spelling.of(surfaces))
    memory: dict[tuple[int, ...], np.ndarray] = {}

    def think(source, prefix):
        if prefix not in memory:
            logits = numpy_generator(str((source, prefix))).normal(size=vocab) * 2
            memory[prefix] = logits - np.log(np.exp(logits).sum())
        return memory[prefix]

    def is_allowed(tokens):
        text = b"".join(surfaces[token] for token in tokens).decode("utf-8", "replace")
        return all(occurs(one, text) for one in required) and not any(
            occurs(one, text) for one in forbidden
        )

    best = max(
        (
            sum(
                think((5,), tokens[:i])[token] for i, token in enumerate((*tokens, 2)[: length - 1])
            ),
            tokens,
        )
        for size in range(length)
        for tokens in product(range(4, vocab), repeat=size)
        if is_allowed(tokens)
    )
    settings = BeamSettings(
        size=729,
        max_length=length,
        length_penalty=NoLength(),
        stop="proven",
        at_limit="end",
        allow_unknown=False,
    )
    (result,) = decode(FakeStepper(think), [(5,)], settings, phrases=SentenceRules(rules=rules))
    assert result.best.tokens == best[1]
    assert result.best.log_probability == pytest.approx(best[0])


@functools.cache
def learn_marks() -> Tokenizer:
    lines = ["the cat ▁cat ▁ 1cat 10 cat1 ▁1", "cat 0 ▁0 ▁▁cat"] * 3
    return learn_pieces(
        lines, algorithm="bpe", size=285, byte_fallback=True, coverage=1.0, normalization="identity"
    )


@functools.cache
def rules_of_marks(forbidden: tuple[str, ...], required: tuple[str, ...]) -> TextRules | None:
    return make_rules(forbidden, required, spelling_of(learn_marks()))


@hypothesis_settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_the_mark_of_a_space_in_the_text_itself_hides_nothing(data):
    """A "▁" is written as an escape and a digit, which may be two tokens; the escape alone may be
    three (its bytes)."""
    tokenizer, phrases = learn_marks(), ("cat", "1", "0 cat")
    surfaces = tokenizer.surfaces()
    telling = [
        b"\xef",
        b"\xa3",
        b"\xbe",
        "\uf8fe".encode(),
        b"1",
        b"0",
        b" 1",
        b"cat",
        b" cat",
        b" ",
        b"c",
        b"at",
    ]
    tokens = data.draw(
        st.lists(
            st.sampled_from([surfaces.index(one) for one in telling if one in surfaces]), max_size=9
        )
    )
    text = tokenizer.decode(tokens)
    for phrase in phrases:
        if rules_of_marks((phrase,), ()).read(tokens) == 0:
            assert not occurs(phrase, text)
        if rules_of_marks((), (phrase,)).read(tokens) == 0:
            assert occurs(phrase, text, exactly=True)


def test_a_longer_word_is_not_forbidden_to_a_beam():
    """Greedy search writes no token after which only a longer word could save it; a beam looks
    further."""
    spelling = Spelling.of([b"", b"", b"", "⁇".encode(), b" cat", b"alogue", b" dog"])
    phrases = SentenceRules(rules=make_rules(("cat",), (), spelling))
    wish = np.log([1e-9, 1e-9, 0.05, 1e-9, 0.6, 0.05, 0.3])

    def write(source, prefix):
        return wish if prefix != (4,) else np.log([1e-9, 1e-9, 0.05, 1e-9, 0.01, 0.9, 0.04])

    def find(settings):
        return decode(FakeStepper(write), [(5,)], settings, phrases=phrases)[0].best.tokens

    assert find(BeamSettings(size=3, max_length=3, min_length=2))[:2] == (4, 5)
    assert 4 not in find(GreedySettings(max_length=3))


def test_no_rules_change_nothing(fake, improvise, sources):
    for settings in (
        GreedySettings(max_length=9),
        BeamSettings(max_length=9),
        SamplingSettings(max_length=9),
    ):
        plain = decode(fake(improvise), sources, settings)
        assert (
            decode(
                fake(improvise),
                sources,
                settings,
                phrases=encode_phrases(settings, learn("en", "bpe")),
            )
            == plain
        )
    assert rules_of(learn("en", "bpe"), (), ()) is None


def test_rules_are_bounded(monkeypatch):
    spelling = Spelling.of(learn("en", "bpe").surfaces())
    with pytest.raises(UsageError, match="9 phrases are required, at most 8 are possible"):
        make_rules((), [f"a{number}" for number in range(9)], spelling)
    with pytest.raises(
        UsageError, match="have 24,000 bytes together, which is too much to watch for"
    ):
        make_rules([f"{number:012}" * 2 for number in range(1000)], (), spelling)
    with monkeypatch.context() as patch:
        patch.setattr(token_effects, "MAX_READ", 100)
        with pytest.raises(
            UsageError,
            match=r"the 2 .* phrases \(6 bytes together\) take too much work to watch for",
        ):
            make_rules(["cat"], ["dog"], spelling)
    many = make_rules(
        [f"{number:04}" for number in range(500)], [f"b{number}" for number in range(8)], spelling
    )
    assert many is not None
    assert many.need.shape[1] == 256
    assert max(many.moves.size, many.need.size) < 1_000_000, (
        "no table of states for every set of phrases and every token"
    )
    assert many.read(learn("en", "bpe").encode("in 0137 B.C.")) == IMPOSSIBLE


def test_tables_are_made_once_for_a_device():
    rules = make_rules(("a",), (), Spelling.of(WHOLE))
    assert rules is not None
    assert rules.on(torch.device("cpu")) is rules.on(torch.device("cpu"))
