"""A layer that looks up stored tokens: against full attention over the store, the model without it,
one long sequence, steps, gradients, and later tokens."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.attention.masks import Mask
from headwise.attention.nearest_attention import NearestAttention, Recall, Stored
from headwise.attention.taps import tap_attention
from headwise.errors import SettingsError, UsageError
from headwise.models.choices import DecoderOnlySettings, build_decoder_only
from headwise.models.decoder_only import DecoderOnly
from headwise.models.pair_ring import PairRing, RingShape
from headwise.models.segment_memory import Past, Remembering
from headwise.settings import check_settings
from tests.models.test_segment_memory import (
    DIM,
    HEADS,
    RELATIVE,
    TIME,
    VOCAB,
    _no_dropout,
    draw,
    make,
    read_in_segments,
)

MEMORY = {"kind": "nearest", "layer": 1, "length": 4, "size": 9, "neighbours": 3}


def with_lookup(generator: torch.Generator, position: str = "transformer_xl", **memory: object):
    return make(generator, position, memory=MEMORY | memory)


def lookup_of(model: DecoderOnly) -> NearestAttention:
    (layer,) = (part for part in model.modules() if isinstance(part, NearestAttention))
    return layer


@pytest.mark.parametrize("neighbours", [3, 9])
@pytest.mark.parametrize("position", RELATIVE)
@torch.no_grad()
def test_segments_of_any_length_are_one_long_sequence(
    position: str, neighbours: int, generator: torch.Generator
) -> None:
    """A window of four tokens, and nine to look up before it; steps as well, in any order."""
    model = with_lookup(generator, position, neighbours=neighbours)
    tokens = draw(generator, 2, TIME)
    whole = model(tokens)
    for size in (1, 4, 7, 11, TIME):
        torch.testing.assert_close(read_in_segments(model, tokens, size=size, keep=4), whole)
    state = model.start(num_rows=2, max_length=TIME)
    steps = []
    for time in range(TIME):
        steps.append(model.step(tokens[:, time], state))
        for cache in state.caches:
            cache.reorder(torch.tensor([1, 0]))
        tokens = tokens.flip(0)
        whole = whole.flip(0)
        torch.testing.assert_close(steps[-1], whole.flip(0)[:, time])
    assert [cache.length for cache in state.caches] == [4 + 9 + 1, 4 + 1]


@torch.no_grad()
def test_pieces_of_a_search_change_nothing(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = with_lookup(generator)
    tokens = draw(generator, 2, TIME)
    whole = model(tokens)
    monkeypatch.setattr("headwise.attention.nearest_attention.PIECE", 1000)
    torch.testing.assert_close(model(tokens), whole)


def _attend_plainly(layer: NearestAttention, x: Tensor, memory: Tensor, num_past: int) -> Tensor:
    """Softmax over every stored token, head by head and query by query."""
    width, k = DIM // HEADS, layer.key_value(memory).chunk(2, -1)
    without_bias = k[0] - layer.key_value.bias[:DIM]
    q, mixed = layer.query(x), torch.zeros(len(x), DIM).double()
    for head in range(HEADS):
        own = slice(head * width, (head + 1) * width)
        keys, values = F.normalize(without_bias[:, own], dim=-1), k[1][:, own]
        for i in range(len(x)):
            first, last = max(0, num_past + i - 4 - 9), num_past + i - 4
            scores = layer.sharpness[head] * (keys[first:last] @ F.normalize(q[i, own], dim=-1))
            mixed[i, own] = scores.softmax(0) @ values[first:last]
    return layer.output(mixed)


@torch.no_grad()
def test_a_lookup_of_everything_is_full_attention_over_the_store(
    generator: torch.Generator,
) -> None:
    """With an open gate, and as many neighbours as there are tokens."""
    layer = lookup_of(with_lookup(generator, "alibi", neighbours=9))
    layer.gate.fill_(1e9)
    memory = torch.randn(17, DIM, generator=generator).double()
    x = memory[13:]
    k, v = layer._keys_values(memory[None, :13])
    stored = Stored.nothing(k).then(layer._pairs(k, v), begin=13)
    recall = Recall(stored)
    mask = Mask()
    found = layer.attend_and_recall(x[None], memory[None, 9:13], mask, recall)[0]
    torch.testing.assert_close(found, _attend_plainly(layer, x, memory, 13))
    in_training = layer.attend_and_recall(x[None], memory[None, 9:13], mask, Recall(stored, 4))[0]
    # The first query sees the same; the store of the others ends where that of the first does.
    torch.testing.assert_close(in_training[0], found[0])
    assert not torch.allclose(in_training[1], found[1])
    assert recall.read is not None
    torch.testing.assert_close(recall.read.keys.norm(dim=-1), torch.ones(1, HEADS, 4).double())


@torch.no_grad()
def test_a_closed_gate_is_the_model_without_a_store(generator: torch.Generator) -> None:
    model = with_lookup(generator)
    plain = make(torch.Generator().manual_seed(1), memory={"length": 4})
    assert not plain.load_state_dict(model.state_dict(), strict=False).missing_keys
    tokens = draw(generator, 2, TIME)
    expected = plain(tokens)
    assert not torch.allclose(model(tokens), expected)
    torch.testing.assert_close(model(tokens)[:, :5], expected[:, :5])  # nothing is stored yet
    lookup_of(model).gate.fill_(-1e9)
    torch.testing.assert_close(model(tokens), expected)
    torch.testing.assert_close(read_in_segments(model, tokens, size=6, keep=4), expected)


@torch.no_grad()
def test_a_token_sees_none_of_the_later_ones(generator: torch.Generator) -> None:
    """And every token is found, or not, by those that it is within reach of."""
    model = with_lookup(generator, neighbours=9)
    tokens = draw(generator, 1, TIME)
    changed = tokens.clone()
    changed[0, 6] = (changed[0, 6] + 1) % VOCAB
    for size in (1, 5, TIME):
        found, other = (
            read_in_segments(model, one, size=size, keep=4) for one in (tokens, changed)
        )
        moved = ((found - other).abs().amax(-1)[0] > 1e-12).nonzero().flatten().tolist()
        assert moved == list(range(6, 6 + 1 + 13 + 4))  # 4 + 9 in the first layer, 4 in the second


def test_no_gradient_flows_into_the_store(generator: torch.Generator) -> None:
    model = _no_dropout(with_lookup(generator)).train()
    tokens = draw(generator, 2, 18)
    past = Past.nothing(2, 2, like=model.embedding.table.weight)
    earlier = []
    for begin in (0, 6):
        hidden, read = model.read_on(tokens[:, begin : begin + 6], past)
        earlier.append(hidden)
        assert read.pairs is not None
        assert not read.pairs.keys.requires_grad
        assert not read.pairs.values.requires_grad
        past = past.after(read, keep=4)
    hidden, _ = model.read_on(tokens[:, 12:], past)
    assert torch.autograd.grad(hidden.sum(), earlier, allow_unused=True, retain_graph=True) == (
        None,
        None,
    )
    layer = lookup_of(model)
    for weight in (layer.gate, layer.sharpness):
        (gradient,) = torch.autograd.grad(hidden.square().sum(), weight, retain_graph=True)
        assert gradient.abs().min() > 0


def _training_of(model: DecoderOnly, *, num_rows: int, **own: object) -> Remembering:
    ring = PairRing(RingShape(num_rows, HEADS, 4 + 9 + 5, DIM // HEADS))
    return Remembering(
        model, num_layers=2, dim=DIM, length=4, num_rows=num_rows, ring=ring, **own
    ).double()  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbours", [3, 9])
def test_a_ring_is_a_list_that_grows(neighbours: int, generator: torch.Generator) -> None:
    """Training over several rounds of the ring, and a row that begins anew."""
    model = _no_dropout(with_lookup(generator, neighbours=neighbours)).train()
    tokens = draw(generator, 3, 60)
    carried = _training_of(model, num_rows=3)
    fresh = torch.ones(3, dtype=torch.bool)
    parts = []
    for segment in tokens.split(5, dim=1):
        parts.append(carried(segment, fresh))
        fresh = torch.zeros(3, dtype=torch.bool)
    expected = read_in_segments(model, tokens, size=5, keep=4)
    torch.testing.assert_close(torch.cat(parts, 1), expected)
    one = torch.tensor([False, True, False])
    again = torch.cat([carried(tokens[:, :5], one), carried(tokens[:, 5:10], fresh)], 1)
    torch.testing.assert_close(again[1], expected[1, :10])
    assert not torch.allclose(again[0], expected[0, :10])


def test_reading_twice_before_the_backward_pass_finds_the_same(
    generator: torch.Generator,
) -> None:
    """Blocks may be computed again (training.recompute) after the ring was written."""
    from headwise.training.gradient_checkpointing import recomputing_blocks

    tokens, begun = draw(generator, 2, 40), torch.ones(2, dtype=torch.bool)
    model = _no_dropout(with_lookup(generator)).train()
    gradients = []
    for again in (False, True):
        carried = _training_of(model, num_rows=2)
        for at in range(0, 35, 5):
            carried(tokens[:, at : at + 5], begun if at == 0 else ~begun)
        model.zero_grad()
        if again:
            with recomputing_blocks(carried):
                carried(tokens[:, 35:], ~begun).square().sum().backward()
        else:
            carried(tokens[:, 35:], ~begun).square().sum().backward()
        gradients.append([weight.grad for weight in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_processes_keep_their_own_rows(generator: torch.Generator) -> None:
    model = _no_dropout(with_lookup(generator))
    tokens, fresh = draw(generator, 3, 5), torch.ones(3, dtype=torch.bool)
    alone = _training_of(model, num_rows=3)
    alone(tokens, fresh)
    names = ("states", "num_remembered", "ring.keys", "ring.values", "ring.num_read")
    whole = alone.state_dict()
    joined = {name: torch.zeros_like(whole[name]) for name in names}
    for first, last in ((0, 1), (1, 3), (3, 3)):
        part = _training_of(model, num_rows=3, own=(first, last))
        part(tokens[first:last] if last > first else tokens[:1], fresh[: max(1, last - first)])
        for name, tensor in part.state_dict().items():
            own = part.only_own_rows(name, tensor)
            assert (own is None) == (name not in names)
            if own is not None:
                joined[name] += own
    for name in names:
        torch.testing.assert_close(joined[name], whole[name])


@torch.no_grad()
def test_a_tapped_map_gives_the_output(generator: torch.Generator) -> None:
    model = with_lookup(generator)
    layer, tokens = lookup_of(model), draw(generator, 2, TIME)
    seen = {}
    layer.register_forward_hook(lambda _, inputs, output: seen.update(x=inputs[0], y=output))
    with tap_attention({"it": layer}) as maps:
        model(tokens)
    torch.testing.assert_close(maps["it"].sum(-1), torch.ones(2, HEADS, TIME).double())
    assert maps["it"].triu(1).abs().max() == 0
    _, v = layer._keys_values(seen["x"])
    torch.testing.assert_close(layer._merge(maps["it"] @ v), seen["y"])


def test_texts_do_not_share_a_row(generator: torch.Generator) -> None:
    tokens = draw(generator, 1, 6)
    with pytest.raises(UsageError, match="reads one text in a row"):
        with_lookup(generator)(tokens, segment=torch.ones_like(tokens))


@pytest.mark.parametrize(("layers", "expected"), [(12, 9), (6, 5), (3, 3), (2, 2), (1, 1)])
def test_the_default_layer_is_three_quarters_up(layers: int, expected: int) -> None:
    memory = DecoderOnlySettings.model_validate(
        {"position": {"kind": "alibi"}, "layers": layers, "memory": {"kind": "nearest"}}
    ).memory
    assert memory.layer_of(layers) == expected - 1 == math.ceil(3 * layers / 4) - 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("memory", "changes", "message"),
    [
        ({"layer": 2}, {}, r"memory\.layer=2, but the model has 1 layers"),
        ({"size": 8, "neighbours": 9}, {}, r"memory\.neighbours=9 of memory\.size=8"),
        ({}, {"position": {"kind": "rotary"}}, r"memory\.kind=nearest needs positions"),
        ({}, {"attention": {"kind": "window"}}, r"memory\.kind=nearest needs attention to keys"),
        ({}, {"norm": {"kind": "power"}}, r"memory\.kind=nearest reads remembered tokens again"),
        ({"size": 0}, {}, r"memory\.size"),
    ],
)
def test_what_does_not_go_together_is_refused(memory: dict, changes: dict, message: str) -> None:
    data = {"dim": 8, "layers": 1, "heads": 2, "memory": {"kind": "nearest"} | memory}
    with pytest.raises(SettingsError, match=message):
        check_settings(DecoderOnlySettings, data | {"position": {"kind": "alibi"}} | changes)


def test_the_other_weights_are_those_of_a_model_without_a_store() -> None:
    built = [
        build_decoder_only(
            check_settings(
                DecoderOnlySettings,
                {"dim": 8, "layers": 2, "heads": 2, "memory": memory, "position": {"kind": "t5"}},
            ),
            size=VOCAB,
            generator=torch.Generator().manual_seed(3),
        ).state_dict()
        for memory in ({"kind": "segments"}, {"kind": "nearest"})
    ]
    new = built[1].keys() - built[0].keys()
    assert new == {f"blocks.1.self_attention.{name}" for name in ("gate", "sharpness")}
    assert all(torch.equal(tensor, built[1][name]) for name, tensor in built[0].items())
