"""Texts the model never learned to read are translated with a warning, by models of any age."""

from pathlib import Path

import pytest

from headwise.data.pairs.parallel_files import Pair
from headwise.language import use_language
from headwise.pocket import sentences
from headwise.tasks.translation import line_translation
from headwise.tasks.translation.input_warning import InputCheck, find_strange_ids
from headwise.tasks.translation.line_translation import Line, translate_lines
from headwise.tasks.translation.translated_part import translate_pairs
from headwise.tasks.translation.translator import Translator
from headwise.text.choices import (
    CharacterSettings,
    SentencePieceSettings,
    WordSettings,
    learn_tokenizer,
)
from headwise.text.known_words import FILE
from headwise.text.tokenizer_pair import TokenizerPair

OLD_BUNDLE = Path(__file__).resolve().parents[2] / "fixtures" / "format-1" / "bundle"
ENGLISH = [one.text("en") for one in sentences("test", 20)]
GERMAN = [one.text("de") for one in sentences("test", 20)]
MADE_UP = "Blicket florps the zorpest wug."
CHINESE = "今天天气很好。"


def codes(translator: Translator, texts: list[str]) -> list[str | None]:
    return [one.warning and one.warning.code for one in translator(texts)]


def test_a_new_model_has_the_words_of_its_training_text(
    translator: Translator, tiny_run: Path
) -> None:
    assert (tiny_run / "model" / "tokenizer" / FILE).is_file()
    assert codes(translator, ENGLISH) == [None] * len(ENGLISH)
    assert codes(translator, GERMAN) == ["target_language"] * len(GERMAN)
    assert codes(translator, [MADE_UP, CHINESE, "", "12 : 4 = 3"]) == [
        "unknown_words",
        "unknown_words",
        None,
        None,
    ]
    assert translator([CHINESE])[0].as_dict()["warning"] == "unknown_words"
    assert "warning" not in translator(ENGLISH[:1])[0].as_dict()


def test_an_old_model_knows_languages() -> None:
    old = Translator.load(OLD_BUNDLE)
    assert old.tokenizers.known_words is None
    assert codes(old, [*ENGLISH, CHINESE]) == [*[None] * len(ENGLISH), "other_language"]
    assert codes(old, GERMAN) == ["target_language"] * len(GERMAN)


@pytest.mark.parametrize(
    ("source", "target", "text", "code", "words"),
    [
        (
            "en",
            "de",
            "Der Hund schläft heute im Garten.",
            "target_language",
            "this looks like de, but the model reads en",
        ),
        (
            "en",
            "zh",
            "Der Hund schläft heute im Garten.",
            "other_language",
            "this looks like de, but the model reads en",
        ),
        (
            "zh",
            "en",
            "The dog sleeps in the garden today.",
            "target_language",
            "this looks like en, but the model",
        ),
        (
            "zh-Hans",
            "en_GB",
            "The dog sleeps in the garden today.",
            "target_language",
            "this looks like en_GB, but",
        ),
        (
            "zh",
            "en",
            "Un homme regarde dans la rue.",
            "other_language",
            "this does not look like zh, the language",
        ),
        (
            "zh",
            "en",
            "今日はとても寒いです。",
            "other_language",
            "this looks like ja, but the model reads zh",
        ),
        (
            "en",
            "de",
            "今天天气很好。",
            "other_language",
            "this looks like zh, but the model reads en",
        ),
        (
            "en",
            "de",
            "Un homme avec un chapeau rouge regarde dans la rue.",
            "other_language",
            "does not look like en",
        ),
        ("en", "de", "xqzzt brlfg wumpf dkjfh.", "other_language", "this does not look like en"),
        ("en", "de", "Nobody has told me about the new law.", None, ""),
        ("en", "de", "12 : 4 = 3", None, ""),
        ("zh", "en", "新增的传给 html.parser.HTMLParser 的 convert_charrefs 参数", None, ""),
        ("ja", "en", "東京都", None, ""),
        (
            "fr",
            "en",
            "Un homme regarde dans la rue.",
            None,
            "",
        ),  # the detector has no samples of French: it cannot say
        ("my-dialect", "en", "The dog sleeps.", None, ""),
    ],
)
def test_without_counts_of_words_the_built_in_detector_judges(
    source: str, target: str, text: str, code: str | None, words: str
) -> None:
    # No character is outside the vocabulary.
    tokenizer = learn_tokenizer(CharacterSettings(), [text])
    check = InputCheck(
        TokenizerPair(tokenizer, tokenizer, shared=True), source=source, target=target
    )
    found = check(text, tokenizer.encode(text))
    assert (found and found.code) == code
    assert words in (found.en if found else "")


EVERYDAY = (
    """
OK|Okay|Thanks|Thank you|Thanks a lot|Yes|No|Hello|Hi|Hi there|Good morning|Good night|Goodbye
Bye|See you soon|Sorry|Excuse me|Please|Welcome|You're welcome|Cheers|Help|Stop|Wait|Never mind
No problem|Of course|Sure|Great|Congratulations|Good luck|Take care|I'm fine|Really?|Maybe later
Settings|Log in|Cancel|Save|Delete|Menu|Error|Loading|Done|Nice|Cool|Good idea|Email
""".strip()
    .replace("\n", "|")
    .split("|")
)


def test_everyday_words_are_no_evidence(translator: Translator) -> None:
    """A small training text has few of them, and they say nothing about the language."""
    warned = [
        text
        for text in EVERYDAY
        if translator.check_input(text, translator.encode(text)) is not None
    ]
    assert warned == []
    known = translator.tokenizers.known_words
    assert known is not None
    assert sum(word.casefold() not in known.source.counts for word in EVERYDAY) > 20, (
        "else this shows nothing"
    )


@pytest.mark.parametrize(
    ("text", "en", "zh"),
    [
        (
            "Blicket florps mump.",
            "3 of the 3 words are rare or missing in the en text",
            "3 个词中有 3 个在",
        ),
        (
            "我",
            "the only character is outside the vocabulary of the model",
            "1 个字符中有 1 个不在该模型的词表内",
        ),
        ("我们喝茶", "4 of the 4 characters are rare", "4 个字中有 4 个在"),
        ("我们 blicket", "3 of the 3 words or characters are rare", "3 个词或字中有 3 个在"),
    ],
)
def test_what_was_counted_is_named(translator: Translator, text: str, en: str, zh: str) -> None:
    found = translator.check_input(text, translator.encode(text))
    assert found is not None
    assert found.en.startswith(en)
    assert found.zh.startswith(zh)


def test_bytes_and_the_unknown_token_are_strange() -> None:
    pieces = learn_tokenizer(SentencePieceSettings(size=300, byte_fallback=True), ENGLISH)
    assert len(find_strange_ids(pieces)) == 257
    assert set(pieces.encode("猫")[-3:]) < find_strange_ids(pieces)
    assert find_strange_ids(learn_tokenizer(WordSettings(), ENGLISH)) == {3}


def test_lines_are_told_with_their_places_and_then_counted(
    translator: Translator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_translation, "MAX_TOLD", 2)
    texts = [ENGLISH[0], MADE_UP, GERMAN[0], CHINESE, CHINESE]
    lines = [Line(text, "in.txt", number) for number, text in enumerate(texts, start=1)]
    found = [one.warning for one in translate_lines(translator, lines)]
    assert [one is None for one in found] == [True, False, False, False, False]
    assert caplog.messages == [
        (
            "in.txt:2: 4 of the 5 words are rare or missing in the en text that the model learned "
            "from; the translation may be nonsense"
        ),
        (
            "in.txt:3: this looks like de, but the model reads en and writes de; the translation "
            "may be nonsense"
        ),
        (
            "2 more lines were unlike the text that this model learned from: the translation may "
            "be nonsense"
        ),
    ]
    caplog.clear()
    use_language("zh")
    list(translate_lines(translator, lines))
    assert caplog.messages == [
        "in.txt:2: 5 个词中有 4 个在该模型的 en 训练文本中罕见或没有；译文可能毫无意义",
        "in.txt:3: 这像是 de，而该模型读 en、写 de；译文可能毫无意义",
        "另有 2 行与该模型的训练文本不相像：译文可能毫无意义",
    ]


def test_lines_of_a_test_set_are_counted_once(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [ENGLISH[0], MADE_UP, GERMAN[0], CHINESE]
    pairs = [Pair(text, "x", "in.txt", number) for number, text in enumerate(texts, start=1)]
    recipe = translator.recipe
    translate_pairs(translator, recipe, pairs, num_resamples=0)
    assert caplog.messages == [
        "3 of the 4 lines are unlike the text that this model learned from: the translation may be "
        "nonsense"
    ]
    caplog.clear()
    use_language("zh")
    translate_pairs(translator, recipe, pairs[:2], num_resamples=0)
    assert caplog.messages == ["2 行中有 1 行与该模型的训练文本不相像：译文可能毫无意义"]
    caplog.clear()
    translate_pairs(translator, recipe, pairs, num_resamples=0, unlike="never")
    assert caplog.messages == []


def test_a_line_in_pieces_is_judged_as_a_whole(translator: Translator) -> None:
    long = " ".join(GERMAN * 20)
    lines = [Line(f"{ENGLISH[0]} {long}", "in.txt", 1)]
    (found,) = translate_lines(translator, lines)
    assert found.too_long == "split" or found.too_long is None
    assert found.warning is not None
    assert found.warning.code == "target_language"
