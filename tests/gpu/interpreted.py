"""Every kernel against its torch form, in Triton's interpreter on a CPU: run as a program, with
TRITON_INTERPRET=1.

The interpreter must be chosen before a kernel is defined, so this is a process of its own (see
test_kernels.py). Sizes are odd on purpose: heads of 10, vocabularies that no block divides,
unwritten memory full of NaN.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.attention.cache_slot_attention import attend_plainly, look_plainly
from headwise.blocks.inference import projection
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.decoding.choices import BeamSettings, decode
from headwise.decoding.engines import recorded_beam as beam_rounds
from headwise.decoding.search.candidates import take_best
from headwise.decoding.search.row_draws import FREE, GREEDY, draw_rows
from headwise.gpu import cache_slot_attention as attending
from headwise.gpu import projection as projecting
from headwise.gpu import token_drawing as drawing
from headwise.gpu import token_ranking as ranking
from headwise.models.transformer_stepper import TransformerStepper
from headwise.randomness import torch_generator
from tests.models.test_encoder_decoder import make

GENERATOR = torch_generator("interpreted")
HEADS, HEAD_DIM = 3, 10
DIM = HEADS * HEAD_DIM


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def check_table() -> None:
    rows, room = 7, 37
    for time in (0, 1, 19, 36):
        q, k, v = draw(rows, DIM), draw(rows, DIM), draw(rows, DIM)
        keys, values = draw(room, rows, DIM), draw(room, rows, DIM)
        keys[time:], values[time:] = torch.nan, torch.nan
        table = torch.randint(0, rows, (room, rows), generator=GENERATOR, dtype=torch.int32)
        now, copies = torch.tensor([time]), (keys.clone(), values.clone())
        expected = attend_plainly(q, (k, v), keys, values, table=table, time=now, num_heads=HEADS)
        found = attending.attend(
            q, (k, v), *copies, table=table, length=now.expand(rows), num_heads=HEADS
        )
        close(found, expected)
        assert torch.equal(copies[0][time], k)
        assert torch.equal(copies[1][time], v)


def check_source() -> None:
    kept = draw(5, 53, 2 * DIM)
    sentence, length = torch.tensor([2, 0, 3]), torch.tensor([5, 53, 33])
    for width in (1, 3, 17):
        q = draw(3 * width, DIM)
        keys, values = kept.chunk(2, dim=-1)
        expected = look_plainly(q, keys, values, sentence=sentence, length=length, num_heads=HEADS)
        close(
            attending.attend_shared(
                q, keys, values, sentence=sentence, length=length, num_heads=HEADS
            ),
            expected,
        )


def check_projection() -> None:
    norms: list[LayerNorm | RMSNorm | None] = [None, LayerNorm(DIM), RMSNorm(DIM)]
    for norm in norms:
        numbers = None
        if norm is not None:
            for parameter in norm.parameters():
                parameter.data.copy_(draw(DIM))
            numbers = (norm.gain, getattr(norm, "shift", None), norm.epsilon)
            for y in (None, draw(5, DIM)):
                x = draw(5, DIM)
                for found, expected in zip(
                    projecting.add_and_norm(x, y, numbers),
                    projection.add_and_norm(x, y, norm),
                    strict=True,
                ):
                    close(found, expected)
        for activation, name in ((None, None), (F.relu, "relu"), (F.gelu, "gelu")):
            x, weight, bias, residual = draw(3, DIM), draw(41, DIM), draw(41), draw(3, 41)
            expected = projection.project(
                x, weight, bias, norm=norm, activation=activation, residual=residual
            )
            options = {"activation": name, "norm": numbers}
            close(
                projecting.project(
                    x, weight, bias, residual=residual, norm_residual=False, **options
                ),
                expected,
            )
            x, weight, residual = draw(2, 61), draw(DIM, 61), draw(2, DIM)
            expected = projection.project(
                x, weight, None, activation=activation, residual=residual, residual_norm=norm
            )
            close(
                projecting.project(
                    x, weight, None, residual=residual, norm_residual=True, **options
                ),
                expected,
            )


def check_ranking() -> None:
    for vocab, count in ((1009, 10), (11, 8), (2003, 1)):
        # Many are equal, and equal ones come in the order of their numbers.
        logits = (draw(5, vocab) * 3).round(decimals=1)
        banned = torch.zeros(vocab, dtype=torch.bool)
        banned[:2] = True
        values, tokens = ranking.rank(logits, banned, count=count)
        scores = logits.log_softmax(-1).masked_fill(banned, -torch.inf)
        assert torch.equal(
            tokens, scores.sort(dim=-1, descending=True, stable=True).indices[:, :count]
        )
        close(values, take_best(scores, count)[0])


def check_drawing() -> None:
    almost_one = float(torch.nextafter(torch.tensor(1.0), torch.tensor(0.0)))
    for vocab, temperature, renormalizes in (
        (7, 1.0, True), (1009, 0.7, False), (5003, 1.0, True), (4099, 1e-4, True),
    ):  # fmt: skip
        logits = draw(24, vocab) * 3
        banned = torch.zeros(vocab, dtype=torch.bool)
        banned[:2], banned[-1] = True, True
        uniform, forced = torch.rand(24, generator=GENERATOR), torch.full((24,), FREE)
        uniform[:5], uniform[5:7], forced[7:9] = GREEDY, torch.tensor([0.0, almost_one]), 4
        options = {"temperature": temperature, "renormalizes": renormalizes}
        expected = draw_rows(logits, banned, uniform, forced, **options)
        found = drawing.draw(logits, banned, uniform, forced, **options)
        assert not banned[found[1]].any()
        same = found[1] == expected[1]
        # The threshold near 1, and perhaps another, lies within rounding of a border.
        assert same[[0, 1, 2, 3, 4, 5, 7, 8]].all()
        assert same.sum() >= 22
        close(found[0][same], expected[0][same])


def check_selection() -> None:
    model = make("pre_norm", GENERATOR)
    model.output.weight.data *= 2
    sources = [torch.randint(4, 15, (1 + i,), generator=GENERATOR).tolist() for i in range(3)]
    plain = TransformerStepper(model)
    beam_rounds.runs_kernels = lambda tensor: True
    for settings in (
        BeamSettings(size=3, num_best=3, max_length=7),
        BeamSettings(
            size=2,
            num_best=2,
            stop="proven",
            length_penalty={"kind": "wu", "alpha": 0.7},
            at_limit="end",
            max_length=8,
        ),
        BeamSettings(
            size=3, num_best=3, stop="filled", length_penalty={"kind": "none"}, max_length=6
        ),
    ):
        expected = decode(plain, sources, settings)
        found = decode(TransformerStepper(model, static=True), sources, settings)
        for one, other in zip(found, expected, strict=True):
            assert [h.tokens for h in one.hypotheses] == [h.tokens for h in other.hypotheses]
            close(
                torch.tensor([h.score for h in one.hypotheses]),
                torch.tensor([h.score for h in other.hypotheses]),
            )


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        for check in (
            check_table,
            check_source,
            check_projection,
            check_ranking,
            check_drawing,
            check_selection,
        ):
            check()
            print(check.__name__)
