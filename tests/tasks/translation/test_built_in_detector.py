"""Sentences on subjects that the pocket corpus does not have."""

import pytest

from headwise.pocket import texts
from headwise.tasks.translation.built_in_detector import built_in_detector

SENTENCES = {
    "en": [
        "The government announced new measures against inflation.",
        "Our customers appreciate fast delivery",
        "Hello world",
        "Please restart the computer before you install the update.",
        "She has never been to Australia.",
    ],
    "de": [
        "Die Regierung kündigte neue Maßnahmen gegen die Inflation an.",
        "Unsere Kunden schätzen schnelle Lieferung",
        "Guten Tag",
        "Bitte starten Sie den Rechner neu, bevor Sie das Update installieren.",
        "Sie ist noch nie in Australien gewesen.",
    ],
    "zh": ["政府宣布了新的措施。", "你好"],
}
STRANGERS = [
    "Bonjour, comment allez-vous aujourd'hui?",
    "¿Dónde está la estación de tren?",
    "Jag vet inte var stationen ligger.",
    "Не знаю, где вокзал.",
]


@pytest.mark.parametrize(
    ("language", "text"), [(code, text) for code, found in SENTENCES.items() for text in found]
)
def test_other_subjects_are_recognised(language: str, text: str) -> None:
    best = built_in_detector().detect(text)[0]
    assert best.language == language
    assert best.confidence > 0.9


@pytest.mark.parametrize("text", STRANGERS)
def test_languages_without_samples_are_not_taken_for_english(text: str) -> None:
    assert built_in_detector().detect(text) == []


def test_sentences_of_the_corpus_that_were_not_samples() -> None:
    for row in texts("test", 100, ("en", "de")):
        for language, text in zip(("en", "de"), row, strict=True):
            assert built_in_detector().detect(text)[0].language == language
