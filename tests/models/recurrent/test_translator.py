"""The recurrent translator against torch's own layers and the papers' formulas; packing and padding
change nothing."""

import pytest
import torch
from torch import Tensor, nn

from headwise.models.recurrent.translator import RecurrentTranslator
from tests.models.recurrent.examples import ATTENTIONS, DIM, VOCAB, make
from tests.reference.sentences import draw_pairs, packed_row, padded_batch

LENGTHS = [(5, 3), (1, 7), (4, 1), (6, 2)]
TORCH = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


def reference_encoding(
    model: RecurrentTranslator, cell: str, tokens: Tensor
) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """One sentence through torch's two-directional layers with the same weights."""
    layers = TORCH[cell](DIM, DIM // 2, num_layers=2, bidirectional=True, batch_first=True).double()
    with torch.no_grad():
        for number in range(2):
            for suffix, ours in (
                ("", model.encoder.forwards),
                ("_reverse", model.encoder.backwards),
            ):
                for name, weight in ours[number].weights.named_parameters():
                    getattr(layers, name.replace("_l0", f"_l{number}") + suffix).copy_(weight)
    states, last = layers(model.source_embedding.table(tokens)[None] * DIM**0.5)
    parts = last if cell == "lstm" else (last,)
    return states[0], [
        tuple(torch.cat([p[2 * n, 0], p[2 * n + 1, 0]]) for p in parts) for n in range(2)
    ]


@pytest.mark.parametrize("cell", TORCH)
def test_the_encoder_is_torchs_in_both_directions(cell: str, generator: torch.Generator) -> None:
    model = make(generator, cell=cell).double()
    sentences = [torch.tensor(source) for source, _ in draw_pairs(LENGTHS, VOCAB, generator)]
    padded = nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    memory = model.encode(padded, torch.tensor([len(one) for one in sentences]))
    for row, tokens in enumerate(sentences):
        states, last = reference_encoding(model, cell, tokens)
        torch.testing.assert_close(memory.states[row, : len(tokens)], states)
        for ours, theirs in zip(memory.last, last, strict=True):
            for part, other in zip(ours, theirs, strict=True):
                torch.testing.assert_close(part[row], other)


def reference_cell(model: RecurrentTranslator, cell: str) -> list[nn.Module]:
    cells = []
    for layer in model.decoder.layers.layers:
        kind = {"rnn": nn.RNNCell, "lstm": nn.LSTMCell, "gru": nn.GRUCell}[cell]
        one = kind(layer.weights.input_size, DIM).double()
        one.load_state_dict(
            {name.removesuffix("_l0"): value for name, value in layer.weights.state_dict().items()}
        )
        cells.append(one)
    return cells


def advance(
    cells: list[nn.Module], x: Tensor, states: list[tuple[Tensor, ...]]
) -> tuple[Tensor, list[tuple]]:
    """torch's cells on one word; the state of an LSTM cell is two tensors, of the others one."""
    after = []
    for one, state in zip(cells, states, strict=True):
        found = one(x[None], tuple(p[None] for p in state) if len(state) == 2 else state[0][None])
        after.append(tuple(p[0] for p in found) if len(state) == 2 else (found[0],))
        x = after[-1][0]
    return x, after


def weighted_mean(scores: list[Tensor], values: Tensor) -> Tensor:
    total = sum(score.exp() for score in scores)
    return sum(score.exp() / total * value for score, value in zip(scores, values, strict=True))


@pytest.mark.parametrize("cell", TORCH)
@pytest.mark.parametrize("attention", ["none", "bahdanau", "luong"])
def test_the_papers_formulas_word_by_word(
    cell: str, attention: str, generator: torch.Generator
) -> None:
    model = make(generator, attention, cell=cell).double()
    (source, target), *_ = draw_pairs([(6, 5)], VOCAB, generator)
    hidden = padded_batch([(source, target)]).hidden(model)[0]
    memory, states = reference_encoding(model, cell, torch.tensor(source))
    cells = reference_cell(model, cell)
    weights = dict(model.decoder.named_parameters())
    fed = torch.zeros(DIM, dtype=torch.float64)
    for time, word in enumerate(model.target_embedding.table(torch.tensor(target)) * DIM**0.5):
        if attention == "none":
            out, states = advance(cells, word, states)
        elif attention == "bahdanau":
            before = states[-1][0]
            w, u, v = (
                weights[f"attention.kernel.score.{n}"] for n in ("query_map", "key_map", "vote")
            )
            context = weighted_mean([v[0] @ torch.tanh(w @ before + u @ h) for h in memory], memory)
            top, states = advance(cells, torch.cat([word, context]), states)
            out = torch.tanh(
                weights["widen.weight"] @ torch.cat([top, context, word]) + weights["widen.bias"]
            )
        else:
            top, states = advance(cells, torch.cat([word, fed]), states)
            context = weighted_mean(
                [top @ weights["attention.kernel.score.between"] @ h for h in memory], memory
            )
            out = fed = torch.tanh(
                weights["widen.weight"] @ torch.cat([context, top]) + weights["widen.bias"]
            )
        torch.testing.assert_close(hidden[time], out)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_packing_and_padding_change_nothing(attention: str, generator: torch.Generator) -> None:
    model = make(generator, attention)
    pairs = draw_pairs(LENGTHS, VOCAB, generator)
    padded = padded_batch(pairs, extra=3).hidden(model)
    packed = packed_row(pairs, extra=2).hidden(model)[0]
    begin = 0
    for row, pair in enumerate(pairs):
        end = begin + len(pair[1])
        alone = padded_batch([pair]).hidden(model)[0]
        torch.testing.assert_close(padded[row, : len(pair[1])], alone, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(packed[begin:end], alone, atol=1e-5, rtol=1e-5)
        begin = end
    assert packed[begin:].eq(0).all()


def test_a_batch_of_filling_gives_zeros(generator: torch.Generator) -> None:
    nothing = packed_row([], extra=5)
    assert nothing.hidden(make(generator)).eq(0).all()


def test_full_rows_need_not_be_asked(generator: torch.Generator) -> None:
    model = make(generator)
    batch = padded_batch(draw_pairs([(4, 6), (4, 6)], VOCAB, generator))
    expected = batch.hidden(model)
    model.assumes_full_rows = True
    torch.testing.assert_close(batch.hidden(model), expected)


@pytest.mark.parametrize(
    "score", ["dot", "scaled_dot", "additive", "concat", "general", "cosine", "gaussian"]
)
def test_a_wide_flat_window_is_no_window(score: str, generator: torch.Generator) -> None:
    luong = {"kind": "luong", "score": {"kind": score}}
    plain = make(generator, luong)
    local = make(
        generator, {**luong, "window": {"kind": "local_p", "half_width": 100, "deviation": 1e6}}
    )
    missing = local.load_state_dict(plain.state_dict(), strict=False).missing_keys
    assert all("place_" in name for name in missing)
    batch = padded_batch(draw_pairs(LENGTHS, VOCAB, generator))
    torch.testing.assert_close(batch.hidden(local), batch.hidden(plain))


def test_every_part_learns(generator: torch.Generator) -> None:
    for attention in ATTENTIONS:
        model = make(generator, attention).train()
        padded_batch(draw_pairs(LENGTHS, VOCAB, generator)).logits(model).square().sum().backward()
        idle = [
            name
            for name, weight in model.named_parameters()
            if weight.grad is None or not weight.grad.any()
        ]
        assert idle == [], attention


def test_maps_are_what_the_contexts_were_made_of(generator: torch.Generator) -> None:
    (source, target), *_ = draw_pairs([(5, 4)], VOCAB, generator)
    x, y = torch.tensor([source]), torch.tensor([target])
    for attention in ("bahdanau", "luong"):
        maps = make(generator, attention).attention_maps(x, y)
        assert list(maps) == ["decoder.0.cross"]
        assert maps["decoder.0.cross"].shape == (1, 1, len(target), len(source))
        torch.testing.assert_close(maps["decoder.0.cross"].sum(-1), torch.ones(1, 1, len(target)))
    assert make(generator, "none").attention_maps(x, y) == {}


def test_keys_worked_out_once_are_the_same_keys(generator: torch.Generator) -> None:
    model = make(generator, "bahdanau")
    memory = model.encode(torch.tensor([[4, 5, 6]]), None)
    query = torch.randn(1, 1, DIM, generator=generator)
    assert model.decoder.attention is not None
    expected = model.decoder.attention(query, memory)
    found = model.decoder.attention(query, model.decoder.prepare(memory))
    torch.testing.assert_close(found, expected)
    assert memory.keys is None
