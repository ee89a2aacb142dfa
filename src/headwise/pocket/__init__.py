"""The pocket corpus: a grammar that generates sentences in English, Chinese and German.

It can express millions of meanings, is small enough to train on in minutes, and is hard enough that
a model needs attention to learn it.

Each sentence comes with its exact translations, its word alignment and its part-of-speech tags,
because all three languages are generated from one meaning. What the grammar contains, and why:

* **Reordering.** *The teacher bought a book in the supermarket yesterday* puts time and place last,
  German in the middle, Chinese before the verb (老师昨天在超市里买了一本书). A model must
  attend to other positions than the present one.
* **Verb-final clauses.** *… dass der Bäcker das Fahrrad schob*: the second English word may be the
  last German one. Separable verbs split in two (*Der Zug fährt um acht Uhr ab*).
* **Modifiers before nouns.** The Chinese relative clause precedes its noun: 老师买的那本书.
* **Measure words, gender, case and agreement.** 一本书, 一只狗, 一辆汽车; *ein roter Apfel, einen
  roten Apfel*: the form of one word is decided by another.
* **Dates and numbers.** *on May 3* is *am 3. Mai* and 5月3日; *half past three* is *halb vier*.
* **Negation and questions**, with *nicht* and *kein*, 没有 and 不, 吗 and *do*.
* **Ambiguous words.** A bank holds money or a river; the other words decide.
* **Pronouns whose translation depends on a far word.** *The animal didn't cross the street because
  it was too tired / too wide*: *weil es zu müde war* / *weil sie zu breit war*. About one sentence
  in five has one.

The same meaning always has the same wording, so that translation is a function in all six
directions; `texts(…, second_wording=0.5)` gives part of the sentences a second right translation
(second_wording.py). Conventions make that natural: *the* is 那 with a measure word for things
(那本书) and a bare noun for people by their role and for places (老师, 公园); *this* is 这; the
German past is the Präteritum in statements and the Perfekt in questions and with *schon* and *noch
nie*; *you* is *du*.

>>> from headwise.pocket import sentence
>>> one = sentence("train", 0)
>>> one.text("en"), one.text("zh"), one.text("de")  # doctest: +SKIP
"""

from headwise.pocket.corpus import (
    SPLITS,
    SplitError,
    held_out,
    right_texts,
    sentence,
    sentences,
    texts,
)
from headwise.pocket.corpus_size import lemmas, sentence_count_lower_bound
from headwise.pocket.crossing_example import NOTES_EXAMPLES
from headwise.pocket.pattern import Pattern
from headwise.pocket.pronoun_scoring import pronoun_words, pronouns_correct, pronouns_word_for_word
from headwise.pocket.second_wording import mixes
from headwise.pocket.sentence import LANGUAGES, LanguageError, Sentence
from headwise.pocket.sentence_patterns.table import patterns

__all__ = [
    "LANGUAGES",
    "NOTES_EXAMPLES",
    "SPLITS",
    "LanguageError",
    "Pattern",
    "Sentence",
    "SplitError",
    "held_out",
    "lemmas",
    "mixes",
    "patterns",
    "pronoun_words",
    "pronouns_correct",
    "pronouns_word_for_word",
    "right_texts",
    "sentence",
    "sentence_count_lower_bound",
    "sentences",
    "texts",
]
