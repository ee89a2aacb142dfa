"""The memory of earlier segments: the formula, one long sequence, steps, gradients, streams."""

import math

import pytest
import torch
from torch import Tensor

from headwise.attention.choices import attention_kinds
from headwise.errors import SettingsError, UsageError
from headwise.models.choices import DecoderOnlySettings, build_decoder_only
from headwise.models.decoder_only import DecoderOnly
from headwise.models.segment_memory import Past, Remembering
from headwise.positions.choices import position_kinds
from headwise.positions.transformer_xl import distance_waves
from headwise.settings import check_settings

VOCAB, DIM, HEADS, TIME = 23, 12, 3, 29
RELATIVE = {
    "transformer_xl": "fused",
    "alibi": "fused",
    "t5": "fused",
    "relative": "full",
}


def make(generator: torch.Generator, position: str = "transformer_xl", **changes: object):
    memory = {"kind": "segments", **changes.pop("memory", {"length": 5})}  # type: ignore[dict-item]
    data = {"dim": DIM, "layers": 2, "heads": HEADS, "attention": {"kind": RELATIVE[position]}}
    data |= {"position": {"kind": position}, "memory": memory, **changes}
    settings = check_settings(DecoderOnlySettings, data)
    model = build_decoder_only(settings, size=VOCAB, generator=generator).eval().double()
    with torch.no_grad():  # what begins at zero would hide mistakes
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    return model


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randint(0, VOCAB, shape, generator=generator)


def read_in_segments(model: DecoderOnly, tokens: Tensor, *, size: int, keep: int) -> Tensor:
    like = model.embedding.table.weight
    past, parts = Past.nothing(len(model.blocks), len(tokens), like=like), []
    for segment in tokens.split(size, dim=1):
        hidden, read = model.read_on(segment, past)
        past = past.after(read, keep=keep)
        parts.append(hidden)
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("position", RELATIVE)
@torch.no_grad()
def test_segments_of_any_length_are_one_long_sequence(
    position: str, place: str, generator: torch.Generator
) -> None:
    """Two layers that look back seven tokens each, whatever a segment holds; steps as well."""
    model = make(generator, position, memory={"length": 7}, norm={"place": place})
    tokens = draw(generator, 2, TIME)
    whole = model(tokens)
    for size in (1, 4, 7, 11, TIME):
        torch.testing.assert_close(read_in_segments(model, tokens, size=size, keep=7), whole)
    state = model.start(num_rows=2, max_length=TIME)
    steps = [model.step(tokens[:, time], state) for time in range(TIME)]
    torch.testing.assert_close(torch.stack(steps, dim=1), whole)
    assert max(cache.length for cache in state.caches) == 8


@torch.no_grad()
def test_a_memory_of_everything_is_full_attention(generator: torch.Generator) -> None:
    """The law of n layers: with the whole past in memory, the model is the one without memory."""
    model = make(generator, memory={"length": TIME})
    tokens = draw(generator, 2, TIME)
    model.reach = None
    whole = model(tokens)
    model.reach = TIME
    torch.testing.assert_close(read_in_segments(model, tokens, size=6, keep=TIME), whole)
    in_training = read_in_segments(_no_dropout(model).train(), tokens, size=6, keep=TIME)
    torch.testing.assert_close(in_training, whole)
    shorter = read_in_segments(model.eval(), tokens, size=6, keep=6)
    assert not torch.allclose(shorter[:, 12:], whole[:, 12:])


@torch.no_grad()
def test_one_layer_sees_its_window_and_two_layers_see_two(generator: torch.Generator) -> None:
    for layers in (1, 2):
        model = make(generator, memory={"length": 5}, layers=layers)
        tokens = draw(generator, 1, TIME)
        changed = tokens.clone()
        changed[0, 3] = (changed[0, 3] + 1) % VOCAB
        moved = (model(tokens) - model(changed)).abs().amax(-1)[0] > 0
        assert moved.nonzero().flatten().tolist() == list(range(3, 4 + 5 * layers))


@torch.no_grad()
def test_the_formula_pair_by_pair(generator: torch.Generator) -> None:
    """One layer without residual dropout: scores of Dai et al. over memory and segment."""
    model = make(generator, layers=1, memory={"length": 6})
    block = model.blocks[0]
    attention, relation = block.self_attention, block.self_attention.relation
    past, x = (torch.randn(1, time, DIM, generator=generator).double() for time in (4, 3))
    found = attention.attend_after(x, past, model._causal(7, 4))
    both, width = torch.cat([past, x], 1)[0], DIM // HEADS
    k, v = attention.key_value(both).chunk(2, -1)
    q = attention.query(x)[0]
    mixed = torch.zeros(3, DIM).double()
    for head in range(HEADS):
        own = slice(head * width, (head + 1) * width)
        u, w = relation.content_bias[head, 0], relation.distance_bias[head, 0]
        for i in range(3):
            scores = []
            for j in range(4 + i + 1):
                wave = distance_waves(torch.tensor([4.0 + i - j]), DIM).double()
                far = relation.distance(wave)[0, own]
                scores.append((q[i, own] + u) @ k[j, own] + (q[i, own] + w) @ far)
            weights = (torch.stack(scores) / math.sqrt(width)).softmax(0)
            mixed[i, own] = weights @ v[: len(weights), own]
    torch.testing.assert_close(found[0], attention.output(mixed))


def _no_dropout(model: DecoderOnly) -> DecoderOnly:
    model.embedding.dropout_rate = 0.0
    for block in model.blocks:
        block.attention_residual.dropout_rate = block.feed_forward_residual.dropout_rate = 0.0
    return model


def test_no_gradient_flows_into_the_memory(generator: torch.Generator) -> None:
    model = _no_dropout(make(generator)).train()
    tokens = draw(generator, 2, 8)
    like = model.embedding.table.weight
    first, read = model.read_on(tokens[:, :4], Past.nothing(2, 2, like=like))
    past = Past.nothing(2, 2, like=like).after(read, keep=4)
    assert not any(state.requires_grad for state in past.states)
    hidden, _ = model.read_on(tokens[:, 4:], past)
    asked = torch.autograd.grad(hidden.sum(), first, allow_unused=True, retain_graph=True)
    assert asked == (None,)
    (weight,) = torch.autograd.grad(hidden.sum(), model.blocks[0].self_attention.key_value.weight)
    assert weight.abs().sum() > 0  # keys of the memory are made anew, so their weights learn


def _remembering(model: DecoderOnly, *, length: int, num_rows: int, **own: object) -> Remembering:
    return Remembering(
        model, num_layers=2, dim=DIM, length=length, num_rows=num_rows, **own
    ).double()  # type: ignore[arg-type]


def test_training_reads_on_and_a_fresh_row_remembers_nothing(generator: torch.Generator) -> None:
    model = _no_dropout(make(generator)).train()
    tokens = draw(generator, 3, 12)
    carried = _remembering(model, length=5, num_rows=3)
    begun = torch.ones(3, dtype=torch.bool)
    parts = [carried(tokens[:, :4], begun)]
    parts += [carried(tokens[:, at : at + 4], ~begun) for at in (4, 8)]
    expected = read_in_segments(model, tokens, size=4, keep=5)
    torch.testing.assert_close(torch.cat(parts, 1), expected)
    sum(part.sum() for part in parts).backward()  # type: ignore[union-attr]
    one = torch.tensor([False, True, False])
    again = carried(tokens[:, :4], one)
    torch.testing.assert_close(again[1], parts[0][1])
    assert not torch.allclose(again[0], parts[0][0])
    assert carried.num_remembered.tolist() == [5, 4, 5]


def test_streams_do_not_know_each_other(generator: torch.Generator) -> None:
    model = _no_dropout(make(generator))
    tokens = draw(generator, 2, 8)
    other = tokens.clone()
    other[1] = (other[1] + 1) % VOCAB
    found = []
    for rows in (tokens, other):
        carried = _remembering(model, length=5, num_rows=2)
        carried(rows[:, :4], torch.ones(2, dtype=torch.bool))
        found.append(carried(rows[:, 4:], torch.zeros(2, dtype=torch.bool)))
    assert torch.equal(found[0][0], found[1][0])
    assert not torch.allclose(found[0][1], found[1][1])


def test_processes_keep_their_own_rows(generator: torch.Generator) -> None:
    """The memories of two processes together are the memory of one."""
    model = _no_dropout(make(generator))
    tokens, fresh = draw(generator, 3, 4), torch.ones(3, dtype=torch.bool)
    alone = _remembering(model, length=5, num_rows=3)
    alone(tokens, fresh)
    joined = {"states": 0, "num_remembered": 0}
    for first, last in ((0, 1), (1, 3), (3, 3)):
        part = _remembering(model, length=5, num_rows=3, own=(first, last))
        rows = tokens[first:last] if last > first else tokens[:1]
        part(rows, fresh[: len(rows)])
        assert part.only_own_rows("model.output.weight", model.output.weight) is None
        for name in joined:
            joined[name] = joined[name] + part.only_own_rows(name, getattr(part, name))
    torch.testing.assert_close(joined["states"], alone.states)
    assert torch.equal(joined["num_remembered"], alone.num_remembered)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": {"kind": "sinusoidal"}}, "position.kind=sinusoidal marks places in a row"),
        ({"position": {"kind": "rotary"}}, "position.kind=rotary marks places in a row"),
        ({"attention": {"kind": "window"}}, "attention.kind=window cannot give"),
        ({"norm": {"kind": "power"}}, "norm.kind=power would count them twice"),
        ({"memory": {"kind": "segments", "length": 0}}, "memory.length"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict, message: str) -> None:
    data = {"dim": 8, "layers": 1, "heads": 2, "memory": {"kind": "segments"}}
    data |= {"position": {"kind": "alibi"}} | changes
    with pytest.raises(SettingsError, match=message):
        check_settings(DecoderOnlySettings, data)


def test_every_kind_is_refused_or_works(generator: torch.Generator) -> None:
    """What the messages propose is accepted, and reads on."""
    positions = [kind.word() for kind in position_kinds().values()]
    works = []
    for position in positions:
        for kernel in attention_kinds():
            data = {"dim": 8, "layers": 1, "heads": 2, "memory": {"kind": "segments", "length": 3}}
            data |= {"position": {"kind": position}, "attention": {"kind": kernel}}
            try:
                settings = check_settings(DecoderOnlySettings, data)
                model = build_decoder_only(settings, size=VOCAB, generator=generator).eval()
            except UsageError:
                continue
            works.append((position, kernel))
            tokens = draw(generator, 1, 11)
            with torch.no_grad():
                found = read_in_segments(model, tokens, size=2, keep=3)
                torch.testing.assert_close(found, model(tokens), atol=1e-5, rtol=1e-5)
    assert {position for position, _ in works} == set(RELATIVE)
    assert {kernel for _, kernel in works} == {"full", "fused"}
