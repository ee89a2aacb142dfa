"""A draft decoder: what it is shown, what it learns, and that it sees nothing else."""

import pytest
import torch

from headwise.data.packing import PackedBatch, build_rows
from headwise.data.shards import as_ragged
from headwise.models.choices import build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.verifying_decoder import VerifyingDecoder
from headwise.tasks.translation.draft_decoder_loss import add_draft_decoder_loss, choose_guessed
from headwise.tasks.translation.objective import TranslationLoss
from headwise.text.tokenizer import EOS
from headwise.training.losses import LossSums
from tests.tasks.tiny import tiny_recipe

VOCAB = 13
PAIRS = [([4, 5, 6], [7, 8, 9, 10]), ([7], [4, 4]), ([8, 9, 10, 4, 5], [6, 6, 5, 10, 8, 9])]


def build(block: int = 3) -> EncoderDecoder:
    recipe = tiny_recipe(f"model.draft_decoder={{layers: 1, block: {block}, weight: 1.0}}")
    generator = torch.Generator().manual_seed(5)
    model = build_model(recipe.model, source_size=VOCAB, target_size=VOCAB, generator=generator)
    assert isinstance(model, EncoderDecoder)
    with torch.no_grad():
        assert model.draft_decoder is not None
        model.draft_decoder.unknown.normal_(generator=generator)
    return model.double()


def batch_of(pairs: list[tuple[list[int], list[int]]], *, width: int = 24) -> PackedBatch:
    source, target = (as_ragged([pair[side] for pair in pairs]) for side in (0, 1))
    return build_rows(source, target, source_row=width, target_row=width).batch()


def test_what_is_known_guessed_and_seen_by_hand() -> None:
    """Two sentences in a row: five tokens with their end, three with theirs."""
    batch = batch_of([([4], [5, 6, 7, 8]), ([4], [9, 10])], width=9)
    share = torch.tensor([[0.0, 0.5, 0.0, *[0.0] * 7]])
    assert batch.target_segment.tolist() == [[1, 1, 1, 1, 1, 2, 2, 2, 0]]
    found = choose_guessed(batch, share, block=2)
    assert found.is_known[0, :8].tolist() == [True, True, True, False, False, True, False, False]
    assert found.targets.tolist() == [[0, 0, 7, 8, 0, 9, 10, 0, 0]]
    assert found.segment.tolist() == [[1, 1, 1, 1, 0, 2, 2, 0, 0]]
    last = choose_guessed(batch, torch.full((1, 10), 0.99), block=2)
    assert last.targets.tolist() == [[0, 0, 0, 0, EOS, 0, 0, EOS, 0]]


def test_packed_rows_equal_sentences_one_by_one() -> None:
    model = build()
    model.eval()
    loss = TranslationLoss(model, 0.0)
    plain = [TranslationLoss(_without(model), 0.0).loss(batch_of([pair])) for pair in PAIRS]
    parts = [loss.loss(batch_of([pair])) for pair in PAIRS]
    # In a batch the mean over guessed tokens is taken over all sentences.
    guessed = [
        (choose_count(pair), one, alone)
        for pair, one, alone in zip(PAIRS, parts, plain, strict=True)
    ]
    total = sum(
        count * ((one.loss - alone.loss) / alone.num_tokens).item() for count, one, alone in guessed
    ) / sum(count for count, _, _ in guessed)
    packed = loss.loss(batch_of(PAIRS))
    own = sum(alone.loss.item() for alone in plain)
    assert float(packed.negative_log_likelihood) == pytest.approx(own, rel=1e-6)
    assert packed.loss.item() == pytest.approx(own + total * int(packed.num_tokens), rel=1e-6)


def choose_count(pair: tuple[list[int], list[int]]) -> int:
    """Tokens guessed from the middle of a target."""
    length = len(pair[1]) + 1
    return min(3, length - length // 2)


def _without(model: EncoderDecoder) -> EncoderDecoder:
    recipe = tiny_recipe()
    other = build_model(recipe.model, source_size=VOCAB, target_size=VOCAB, generator=None)
    own = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not name.startswith("draft_decoder")
    }
    other.double().load_state_dict(own)
    return other.eval()


def test_a_guess_depends_on_nothing_that_comes_later() -> None:
    """What training computes from a prefix is what the verifier asks for in a search."""
    model = build()
    model.eval()
    assert model.draft_decoder is not None
    source, target = [4, 5, 6], [7, 8, 9, 10, 11]
    batch = batch_of([(source, target)], width=8)
    memory = model.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    for known in range(len(target)):
        share = torch.full((1, 9), (known + 0.01) / (len(target) + 1))
        chosen = choose_guessed(batch, share, block=3)
        hidden = model.draft_decoder(
            batch.target_input,
            chosen.is_known,
            memory,
            embedding=model.target_embedding,
            target_segment=chosen.segment,
            source_segment=batch.source_segment,
            target_position=batch.target_position,
        )
        count = min(3, len(target) + 1 - known)
        expected = model.logits(hidden[0, known : known + count]).argmax(-1).tolist()
        verifier = VerifyingDecoder(model, memory, batch.source_segment > 0, max_length=20, block=4)
        found = verifier.guess_block([target[:known]], count)[0].tolist()
        assert found == expected
        other = verifier.guess_block([target[:known]], 3)
        assert other.shape == (1, 3)


def test_rows_of_other_lengths_change_nothing() -> None:
    model = build()
    model.eval()
    batch = batch_of([([4, 5, 6], [7])], width=5)
    memory = model.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    real = batch.source_segment > 0
    written = [[], [7, 8, 9, 4], [5]]
    together = VerifyingDecoder(
        model, memory.repeat(3, 1, 1), real.repeat(3, 1), max_length=20, block=4
    )
    alone = VerifyingDecoder(model, memory, real, max_length=20, block=4)
    found = together.guess_block(written, 3).tolist()
    assert found == [alone.guess_block([row], 3)[0].tolist() for row in written]
    together.keep([1])
    assert together.guess_block(written[1:2], 3).tolist() == found[1:2]


def test_it_learns_to_count() -> None:
    """Targets count up from a number that the source names; all but the draft decoder is frozen."""
    model = build()
    model.train()
    drafter = model.draft_decoder
    assert drafter is not None
    pairs = [([start], [start + step for step in range(5)]) for start in range(4, 9)]
    batch = batch_of(pairs, width=32)
    optimizer = torch.optim.Adam(drafter.parameters(), lr=0.01)
    zero = torch.zeros((), dtype=torch.double)
    sums = LossSums(zero, zero, torch.tensor(1))
    torch.manual_seed(3)
    losses = []
    with torch.no_grad():
        memory = model.encode(
            batch.source, segment=batch.source_segment, position=batch.source_position
        )
    for _ in range(150):
        found = add_draft_decoder_loss(
            sums, model, drafter, memory, batch, smoothing=0.0, chunk_size=None
        )
        optimizer.zero_grad()
        found.loss.backward()
        optimizer.step()
        losses.append(found.loss.item())
    model.eval()
    one = batch_of([([6], [6])], width=3)
    read = model.encode(one.source, segment=one.source_segment, position=one.source_position)
    verifier = VerifyingDecoder(model, read, one.source_segment > 0, max_length=20, block=4)
    assert losses[-1] < losses[0] / 5
    assert verifier.guess_block([[]], 3).tolist() == [[6, 7, 8]]
    assert verifier.guess_block([[6, 7, 8]], 3).tolist() == [[9, 10, EOS]]
