"""Texts become sentences, sentences become parts of a worker's batches, and translations become
texts again.

    prepare   split, tokenise, count            in a thread of its own: tokenising blocks the event loop as well as a model does
    answer    one search for all parts of equal settings (`search.py`)
    assemble  sentences back into their places; paragraphs and blank lines stay

A prefix is a wish of each sentence, not of the batch, so requests with different prefixes are
joined too. Tested: = the translator itself, alone and in company.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generation_settings import refuse_contradiction
from headwise.decoding.rules.constraints import SentenceRules, check_sentence_rules
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.rules.phrases import encode_prefix
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.limits import MAX_SENTENCES, MAX_TOKENS
from headwise.serving.work.jobs import Part
from headwise.serving.work.search import Search, Sentence
from headwise.tasks.translation.input_warning import InputWarning
from headwise.tasks.translation.source_sentences import Candidate, join_candidates
from headwise.tasks.translation.translator import Translator
from headwise.text.sentence_splitting import SplitText, split_text

FEWEST_STEPS = 8
"""A search of one word takes some steps, too."""


@dataclass(frozen=True)
class Prepared:
    """A request's texts, split, and their sentences as parts."""

    texts: tuple[SplitText, ...]
    parts: tuple[Part, ...]
    given: tuple[str, ...]
    """The texts themselves."""
    translator: Translator

    def warn(self, number: int) -> InputWarning | None:
        """Whether a text is one that the model was made for.

        It takes longer than tokenising: for those who were accepted.
        """
        first = sum(len(split.sentences) for split in self.texts[:number])
        parts = self.parts[first : first + len(self.texts[number].sentences)]
        return self.translator.check_input(
            self.given[number], [token for part in parts for token in part.argument.ids]
        )

    def warn_all(self) -> list[InputWarning | None]:
        return [self.warn(number) for number in range(len(self.texts))]

    def assemble(self, answers: Sequence[tuple[Candidate, ...]]) -> list[list[Candidate]]:
        """The n best of every text; the i-th of a text is made of the i-th of its sentences."""
        texts, place = [], 0
        for split in self.texts:
            here = answers[place : place + len(split.sentences)]
            place += len(split.sentences)
            texts.append(
                [
                    join_candidates(split, rank, target=self.translator.target_language)
                    for rank in zip(*here, strict=False)
                ]
                or [_empty(split)]
            )
        return texts


def _empty(split: SplitText) -> Candidate:
    """White space comes back as it was."""
    return Candidate("".join(split.gaps), 0.0, 0.0)


def prepare(
    translator: Translator,
    texts: Sequence[str],
    decoding: DecodingSettings,
    *,
    prefix: str = "",
    split: bool = True,
) -> Prepared:
    """Cut and count; what is too long is refused with its length."""
    settings = translator.within_positions(decoding)
    language = translator.source_language
    split_texts = tuple(
        split_text(text, language=language) if split else _whole(text) for text in texts
    )
    num_sentences = sum(len(one.sentences) for one in split_texts)
    if num_sentences > MAX_SENTENCES:
        raise Refusal(
            422,
            "too_many_sentences",
            en=(
                f"the texts have {num_sentences:,} sentences together, at most {MAX_SENTENCES:,} "
                "are translated at once; send fewer"
            ),
            zh=f"文本共有 {num_sentences:,} 句，一次最多翻译 {MAX_SENTENCES:,} 句；请减少",
        )
    refuse_contradiction(prefix, settings.forbidden, name=("prefix", "前缀"))
    begun = encode_prefix(prefix, translator.tokenizers.target)
    search = Search(translator, settings)
    flow = search.flow if search.flows else None
    parts: list[Part] = []
    for one in split_texts:
        for first, sentence in enumerate(one.sentences):
            ids = tuple(translator.tokenizers.source.encode(sentence))
            _check_tokens(len(ids), len(parts) + 1)
            phrases = SentenceRules(begun if first == 0 else (), search.rules)
            check_sentence_rules(phrases, limit=limit_for(settings.max_length, len(ids)))
            parts.append(
                Part(
                    run=search,
                    flow=flow,
                    argument=Sentence(ids, phrases.prefix, len(parts)),
                    key=(id(translator), settings),
                    weight=len(ids) + 1,
                    work=(len(ids) + FEWEST_STEPS) * settings.num_hypotheses,
                    kind=settings.kind,
                )
            )
    return Prepared(split_texts, tuple(parts), tuple(texts), translator)


def _whole(text: str) -> SplitText:
    inner = text.strip()
    if not inner:
        return SplitText((), (text,))
    begin = text.index(inner)
    return SplitText((inner,), (text[:begin], text[begin + len(inner) :]))


def _check_tokens(num_tokens: int, number: int) -> None:
    if num_tokens > MAX_TOKENS:
        raise Refusal(
            422,
            "too_many_tokens",
            en=(
                f"sentence {number} has {num_tokens:,} tokens, at most {MAX_TOKENS:,} are "
                "translated; split it with punctuation"
            ),
            zh=f"第 {number} 句有 {num_tokens:,} 个词元，最多翻译 {MAX_TOKENS:,} 个；请用标点断句",
        )
