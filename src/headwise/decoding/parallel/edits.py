"""Search by edits: rounds that delete, insert and fill until nothing changes any more.

A sentence starts empty or as a draft, and every round (edit_round.py) decides about all of its
positions at once. It is done, and leaves the batch, when

    unchanged   a round leaves it as it was
    loop        it is as it was before some earlier round: from here the rounds would repeat
    rounds      the last round is over

Easy sentences are done after two rounds, the second of which only confirms the first. A penalty on
inserting nothing gives longer sentences (section 3.3 of the paper, after Stern et al. 2019). The
score of a sentence is the mean log-probability of its words, each at the time when it was filled
in; words of a draft count as certain.

Paper: Gu, Wang & Zhao 2019, "Levenshtein Transformer" (arXiv 1905.11006). Tested against: policies
that follow the expert (one round turns any draft into the target), that insert one word per gap (a
word is spelled), that undo their own edits; hand-worked rounds; a sentence alone = in any batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.parallel.edit_round import (
    EditedRows,
    EditPolicies,
    RoundTensors,
    run_round,
)
from headwise.decoding.parallel.excluded_tokens import excluded_tokens
from headwise.decoding.request_option import RequestOption
from headwise.decoding.results import Hypothesis, WrittenPass
from headwise.text.tokenizer import BOS, EOS, PAD

MAX_ROUNDS = 1024

Reason = Literal["unchanged", "loop", "rounds"]
"""Why a sentence was done."""


class EditSettings(GenerationSettings):
    """Rounds that delete words, insert placeholders and fill them."""

    output_forms: ClassVar[tuple[str, ...]] = ("revisions",)
    records_passes: ClassVar[bool] = True
    summary: ClassVar[str] = "Words are deleted and inserted in rounds until nothing changes."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "rounds": RequestOption(10, low=1, high=50),
        "insertion_penalty": RequestOption(
            0.0, low=0, high=3, description="above 0 gives longer sentences"
        ),
    }
    kind: Literal["edits"] = "edits"
    rounds: int = Field(default=10, ge=1, le=MAX_ROUNDS)
    """Most rounds; each deletes, inserts and fills once."""
    insertion_penalty: float = Field(default=0.0, ge=0, le=3)
    """Subtracted from the log-probability of inserting nothing in a gap."""


@dataclass(frozen=True)
class EditResult:
    """The sentence, why it was done, and its rounds if they were asked for."""

    hypothesis: Hypothesis
    """Finished, unless the length limit kept words out in the last round."""
    reason: Reason
    num_rounds: int
    rounds: tuple[WrittenPass, ...] = ()


class _EditedSentence:
    """What is remembered of one sentence while it is edited."""

    def __init__(self, draft: tuple[int, ...]) -> None:
        self.states = [draft]
        self.rounds: list[WrittenPass] = []
        self.result: EditResult | None = None

    def advance(self, words: tuple[int, ...], *, is_last: bool) -> Reason | None:
        """Remember the words after a round; returns why the sentence is done, if it is."""
        before, self.states = self.states, [*self.states, words]
        if words == before[-1]:
            return "unchanged"
        if words in before:
            return "loop"
        return "rounds" if is_last else None

    def finish(self, scores: Sequence[float], reason: Reason, *, is_cut: bool) -> None:
        """The result: the words of the last round."""
        words, total = self.states[-1], sum(scores)
        values = tuple(scores) if is_cut else (*scores, 0.0)
        self.result = EditResult(
            Hypothesis(words, total, total / max(len(words), 1), values, not is_cut),
            reason,
            len(self.states) - 1,
            tuple(self.rounds),
        )


def search_edits(
    policies: EditPolicies,
    limits: Sequence[int],
    settings: EditSettings,
    *,
    drafts: Sequence[Sequence[int]] | None = None,
    traced: bool = False,
    before_round: Callable[[], None] | None = None,
) -> list[EditResult]:
    """Search for all sentences of a batch.

    `limits` are the most tokens of each sentence, </s> counted (`rules/length_limit.py`). `drafts`
    are the words to start from, without <s> and </s>, cut at the limit; by default there are none.
    """
    given = [()] * len(limits) if drafts is None else drafts
    cut = [tuple(draft[: limit - 1]) for draft, limit in zip(given, limits, strict=True)]
    sentences, alive = [_EditedSentence(draft) for draft in cut], list(range(len(limits)))
    rows, excluded = begin(cut, limits, device=policies.device), excluded_tokens(settings)
    for number in range(1, settings.rounds + 1):
        if not alive:
            break
        if before_round is not None:
            before_round()
        done = run_round(
            policies, rows, insertion_penalty=settings.insertion_penalty, excluded=excluded
        )
        if traced:
            for index, one in zip(alive, read_rounds(done), strict=True):
                sentences[index].rounds.append(one)
        kept = _finish_done(done, [sentences[i] for i in alive], is_last=number == settings.rounds)
        alive = [alive[row] for row in kept]
        if alive:
            rows = done.after.select(torch.tensor(kept, device=policies.device))
    results = [sentence.result for sentence in sentences]
    return [result for result in results if result is not None]


def begin(
    drafts: Sequence[tuple[int, ...]], limits: Sequence[int], *, device: torch.device
) -> EditedRows:
    """<s> draft </s>, padded at the right; the words of a draft count as certain."""
    width = max((len(draft) for draft in drafts), default=0) + 2
    rows = [(BOS, *draft, EOS) + (PAD,) * (width - len(draft) - 2) for draft in drafts]
    tokens = torch.tensor(rows, device=device).view(-1, width)
    scores = torch.zeros(tokens.shape, device=device)
    sentences = torch.arange(len(rows), device=device)
    return EditedRows(tokens, scores, sentences, torch.tensor(limits, device=device) - 1)


def _finish_done(
    done: RoundTensors, sentences: Sequence[_EditedSentence], *, is_last: bool
) -> list[int]:
    """Finish the sentences that are done; returns the rows of the others."""
    kept = []
    after, are_cut = read_words(done.after), done.is_cut.tolist()
    for row, (sentence, (words, scores)) in enumerate(zip(sentences, after, strict=True)):
        reason = sentence.advance(words, is_last=is_last)
        if reason is None:
            kept.append(row)
        else:
            sentence.finish(scores, reason, is_cut=are_cut[row])
    return kept


def read_words(rows: EditedRows) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """The words of each row and their log-probabilities."""
    read = []
    for tokens, scores in zip(rows.tokens.tolist(), rows.scores.tolist(), strict=True):
        end = tokens.index(EOS)
        read.append((tuple(tokens[1:end]), tuple(scores[1:end])))
    return read


def read_rounds(done: RoundTensors) -> list[WrittenPass]:
    """What a round did to each row."""
    tables: list[Tensor] = [done.deleted, done.deletion_probability, ~done.known]
    columns = zip(
        read_words(done.before),
        read_words(done.after),
        *(table.tolist() for table in tables),
        strict=True,
    )
    rounds = []
    for (before, _), (after, scores), deleted, going, is_new in columns:
        words, words_after = slice(1, len(before) + 1), slice(1, len(after) + 1)
        rounds.append(
            WrittenPass(
                before,
                tuple(deleted[words]),
                after,
                tuple(is_new[words_after]),
                scores,
                tuple(going[words]),
            )
        )
    return rounds
