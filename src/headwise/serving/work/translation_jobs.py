"""Turns texts into the parts of a job, and the results of the parts into texts again.

    prepare_texts   splits into sentences and tokenises (in a thread: it would block the event loop)
    Search          translates all parts with equal settings (`search.py`)
    assemble        puts the sentences back in place; paragraphs and blank lines stay

A prefix belongs to a sentence, not to the settings, so requests with different prefixes share
batches. Tested: = the translator itself, alone and in a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generation_settings import refuse_contradiction
from headwise.decoding.rules.constraints import SentenceRules, check_sentence_rules
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.rules.phrases import encode_prefix
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.limits import MAX_SENTENCES, MAX_TOKENS
from headwise.serving.work.jobs import JobPart
from headwise.serving.work.search import EncodedSentence, Search, Watch
from headwise.tasks.translation.input_warning import InputWarning
from headwise.tasks.translation.source_sentences import Candidate, join_candidates
from headwise.tasks.translation.translator import Translator
from headwise.text.sentence_splitting import SplitText, split_text

MIN_STEPS = 8
"""Even the search for one word takes some steps."""


@dataclass(frozen=True)
class PreparedTexts:
    """The texts of a request, split, and their sentences as parts of a job."""

    texts: tuple[SplitText, ...]
    parts: tuple[JobPart, ...]
    given: tuple[str, ...]
    """The texts as they were sent."""
    translator: Translator

    def warn(self, number: int) -> InputWarning | None:
        """A warning if a text is unlike the text the model was trained for.

        This takes longer than tokenising, so it is done only for admitted requests.
        """
        first = sum(len(split.sentences) for split in self.texts[:number])
        parts = self.parts[first : first + len(self.texts[number].sentences)]
        return self.translator.check_input(
            self.given[number], [token for part in parts for token in part.argument.ids]
        )

    def warn_all(self) -> list[InputWarning | None]:
        return [self.warn(number) for number in range(len(self.texts))]

    def assemble(self, answers: Sequence[tuple[Candidate, ...]]) -> list[list[Candidate]]:
        """The n best translations of every text; the i-th consists of the i-th of each sentence."""
        texts, start = [], 0
        for split in self.texts:
            here = answers[start : start + len(split.sentences)]
            start += len(split.sentences)
            texts.append(
                [
                    join_candidates(split, rank, target=self.translator.target_language)
                    for rank in zip(*here, strict=False)
                ]
                or [_empty(split)]
            )
        return texts


def _empty(split: SplitText) -> Candidate:
    """White space is returned as it is."""
    return Candidate("".join(split.gaps), 0.0, 0.0)


def prepare_texts(
    translator: Translator,
    texts: Sequence[str],
    decoding: DecodingSettings,
    *,
    prefix: str = "",
    split: bool = True,
) -> PreparedTexts:
    """Split, tokenise and count; texts that are too long are refused with their length."""
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
    run_continuously = search.run_continuously if search.can_run_continuously else None
    # A memory is searched at every step, so its steps are measured by themselves.
    kind = f"{settings.kind}{'' if settings.asked_memory is None else ', remembering'}"
    parts: list[JobPart] = []
    for one in split_texts:
        for first, sentence in enumerate(one.sentences):
            ids = tuple(translator.tokenizers.source.encode(sentence))
            _check_tokens(len(ids), len(parts) + 1)
            phrases = SentenceRules(begun if first == 0 else (), search.rules)
            check_sentence_rules(phrases, limit=limit_for(settings.max_length, len(ids)))
            parts.append(
                JobPart(
                    run=search,
                    run_continuously=run_continuously,
                    argument=EncodedSentence(ids, phrases.prefix, len(parts)),
                    key=(id(translator), settings),
                    num_tokens=len(ids) + 1,
                    cost=(len(ids) + MIN_STEPS) * settings.num_hypotheses,
                    kind=kind,
                )
            )
    return PreparedTexts(split_texts, tuple(parts), tuple(texts), translator)


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


def streamed_part(part: JobPart, watch: Watch) -> JobPart:
    """The part of a stream: computed alone, and `watch` sees its best hypothesis at every step."""
    search: Search = part.run  # type: ignore[assignment]
    kind = f"{search.settings.kind}, streamed"
    return replace(
        part, run=replace(search, watch=watch), run_continuously=None, key=None, kind=kind
    )
