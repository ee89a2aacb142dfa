"""Window, Longformer and BigBird in all their forms against full attention under the same pattern,
pair by pair."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.attention import flex_attention

from headwise.attention.biases import DistanceBias
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.masks import Mask, causal, explicit, padding, segments
from headwise.attention.sparse.sparse_attention import Form, SparseAttention
from headwise.errors import MaskError, UsageError
from headwise.randomness import torch_generator
from tests.attention.patterns import bigbird_table, longformer_table, window_table

BATCH, HEADS, HEAD_DIM = 2, 3, 5
ROWS = (
    ((1, 61), (2, 1), (3, 2), (4, 17), (5, 97), (0, 9)),
    ((1, 5), (2, 180), (0, 2)),
)
"""(number, length) of the sentences of two packed rows of 187 tokens."""
TIME = 187
PADDED = torch.tensor([[13, 151], [0, 182]])
"""Where the sentences of two padded rows begin and end."""


def numbers() -> Tensor:
    return torch.tensor([[number for number, length in row for _ in range(length)] for row in ROWS])


def masks() -> dict[str, Mask]:
    generator = torch_generator("sparse masks")
    own = segments(numbers(), numbers())
    return {
        "all": Mask(),
        "packed": own,
        "padded": padding(
            (torch.arange(TIME) >= PADDED[:, :1]) & (torch.arange(TIME) < PADDED[:, 1:])
        ),
        "explicit": own & explicit(torch.rand(1, HEADS, TIME, TIME, generator=generator) < 0.8),
    }


def sentences_of_rows(name: str) -> list[list[tuple[int, int]]]:
    """The beginnings and lengths of the sentences of every row."""
    if name == "padded":
        return [[(begin, end - begin)] for begin, end in PADDED.tolist()]
    lengths = (
        [[length for _, length in row] for row in ROWS]
        if name in ("packed", "explicit")
        else [[TIME]] * BATCH
    )
    return [[(sum(row[:number]), length) for number, length in enumerate(row)] for row in lengths]


KERNELS = {
    "window": (
        lambda form: WindowAttention(9, 4, block=8, form=form),
        lambda length, **padding: window_table(length, 9, 4, **padding),
    ),
    "longformer": (
        lambda form: LongformerAttention(14, num_global=3, block=8, form=form),
        lambda length, **padding: longformer_table(length, 7, num_global=3, **padding),
    ),
    "longformer without global": (
        lambda form: LongformerAttention(14, num_global=0, form=form),
        lambda length, **padding: longformer_table(length, 7, num_global=0, **padding),
    ),
    "longformer, dilated": (
        lambda form: LongformerAttention(6, num_global=0, dilation=3, block=4, form=form),
        lambda length, **padding: longformer_table(length, 3, num_global=0, dilation=3, **padding),
    ),
    "bigbird": (
        lambda form: BigBirdAttention(4, num_random_blocks=2, form=form),
        lambda length, **padding: bigbird_table(
            length, BigBirdAttention(4, num_random_blocks=2), **padding
        ),
    ),
    "bigbird, other numbers": (
        lambda form: BigBirdAttention(3, 5, 5, 1, form=form),
        lambda length, **padding: bigbird_table(length, BigBirdAttention(3, 5, 5, 1), **padding),
    ),
    "bigbird, one by one": (
        lambda form: BigBirdAttention(1, 1, 0, 4, form=form),
        lambda length, **padding: bigbird_table(length, BigBirdAttention(1, 1, 0, 4), **padding),
    ),
}


def whole_table(kind: str, mask: str) -> Tensor:
    """The pattern of every sentence, put on the diagonal; a padded row is one, with the padding
    around it."""
    table = torch.zeros(BATCH, 1, TIME, TIME, dtype=torch.bool)
    for row, sentences in enumerate(sentences_of_rows(mask)):
        for start, length in sentences:
            before, behind = (start, TIME - start - length) if mask == "padded" else (0, 0)
            part = slice(start - before, start + length + behind)
            table[row, 0, part, part] = KERNELS[kind][1](length, before=before, behind=behind)
    return table


def results(kernel: object, mask: Mask, bias: object) -> tuple[Tensor, ...]:
    generator = torch_generator("sparse")
    shape = (BATCH, HEADS, TIME, HEAD_DIM)
    leaves = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(3)
    ]
    output = kernel(*leaves, mask, bias=bias)  # type: ignore[operator]
    return output, *torch.autograd.grad(output.square().sum(), leaves)


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("kind", KERNELS)
def test_equals_full_attention_under_the_pattern(kind: str, mask: str) -> None:
    kernel = KERNELS[kind][0]("chunked")
    seen = masks()[mask]
    for bias in (
        None,
        DistanceBias(torch.randn(HEADS, 9, generator=torch_generator("bias")).double(), -4),
    ):
        expected = results(FullAttention(), seen & explicit(whole_table(kind, mask)), bias)
        for given, wanted in zip(results(kernel, seen, bias), expected, strict=True):
            assert torch.allclose(given, wanted, atol=1e-10)


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("kind", KERNELS)
def test_the_fused_form_computes_the_same_pairs(
    kind: str, mask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's uncompiled form looks at no tiles, which are checked by themselves below, and has no
    gradients on a CPU."""
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    seen = masks()[mask]
    bias = DistanceBias(torch.randn(HEADS, 9, generator=torch_generator("bias")).double(), -4)
    q, k, v = torch.randn(
        3, BATCH, HEADS, TIME, HEAD_DIM, generator=torch_generator("flex"), dtype=torch.float64
    )
    flex, chunked = (
        KERNELS[kind][0](form)(q, k, v, seen, bias=bias) for form in ("flex", "chunked")
    )
    assert torch.allclose(flex, chunked, atol=1e-10)


def cut(table: torch.Tensor) -> torch.Tensor:
    """Into tiles of 8 × 8: [batch, tile_row, place, tile, place]."""
    return torch.nn.functional.pad(table, (0, 5, 0, 5)).unflatten(2, (24, 8)).unflatten(1, (24, 8))


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("mask", ["all", "packed", "padded"])
def test_every_pair_lies_in_a_tile_and_few_tiles_hold_none(
    kind: str, mask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwise.attention.sparse.flex.TILE", 8)
    seen = masks()[mask]
    (part,) = KERNELS[kind][0]("flex").prepare(seen, TIME, TIME, torch.device("cpu")).parts
    tiles, whole = (
        torch.zeros(BATCH, 24, 24, dtype=torch.bool)
        | torch.zeros(count.shape[0], 24, 24, dtype=torch.bool).scatter(
            2, order[:, 0].long(), torch.arange(24) < count[:, 0, :, None]
        )
        for count, order in (
            (part.near.tiles.kv_num_blocks, part.near.tiles.kv_indices),
            (part.near.tiles.full_kv_num_blocks, part.near.tiles.full_kv_indices),
        )
    )
    assert not (tiles & whole).any()
    tiles = tiles | whole
    pairs = whole_table(kind, mask)[:, 0]
    if mask != "all":
        visible = seen.dense(TIME, TIME, pairs.device)
        assert visible is not None
        pairs = pairs & visible[:, 0]
    assert (cut(pairs).all(4).all(2) | ~whole).all(), (
        "a tile that is not asked about holds hidden pairs"
    )
    assert whole.any() or (kind, mask) != ("bigbird", "all")
    if part.plan.wide is not None:
        pairs = pairs & ~part.plan.wide.is_wide[:, :, None]  # these look elsewhere
    needed = cut(pairs).any(4).any(2)
    assert (tiles | ~needed).all()
    assert tiles.sum() <= 2.6 * needed.sum() + 60


@pytest.mark.parametrize("form", ["chunked", "flex"])
@pytest.mark.parametrize("kind", ["window", "longformer", "bigbird"])
def test_the_work_grows_with_the_length(kind: str, form: Form) -> None:
    """Eight times the tokens, eight times the pairs or tiles: nothing is dense behind the name."""
    kernels = {
        "window": WindowAttention(99, 99),
        "longformer": LongformerAttention(200),
        "bigbird": BigBirdAttention(),
    }
    kernel: SparseAttention = replace(kernels[kind], form=form)
    work = []
    for length in (4096, 32768):
        own = segments(*[torch.ones(1, length, dtype=torch.int64)] * 2)
        (part,) = kernel.prepare(own, length, length, torch.device("cpu")).parts
        near, far = part.near, part.far  # type: ignore[attr-defined]
        tiles = (
            0
            if form == "chunked"
            else int((near.tiles.kv_num_blocks + near.tiles.full_kv_num_blocks).sum())
        )
        work.append((tiles * 128**2 or near.numel()) + (0 if far is None else far.numel()))
    assert work[1] <= 9 * work[0]


@pytest.mark.parametrize("kind", KERNELS)
def test_the_map_gives_the_output(kind: str) -> None:
    kernel, mask = KERNELS[kind][0]("auto"), masks()["explicit"]
    q, k, v = torch.randn(
        3, BATCH, HEADS, TIME, HEAD_DIM, generator=torch_generator("map"), dtype=torch.float64
    )
    weights = kernel.weights(q, k, kernel.prepare(mask, TIME, TIME, q.device))
    assert torch.allclose(weights @ v, kernel(q, k, v, mask))
    assert weights[~whole_table(kind, "explicit").expand_as(weights)].eq(0).all()


@pytest.mark.parametrize("kind", ["longformer", "bigbird"])
def test_two_sequences_and_hidden_futures_are_refused(kind: str) -> None:
    kernel = KERNELS[kind][0]("auto")
    q, k = torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 5, 2)
    with pytest.raises(
        UsageError, match=r"3 queries and 5 keys.*use attention\.kind=full, fused, "
    ):
        kernel(q, k, k, Mask())
    with pytest.raises(MaskError, match=r"attention\.kind=full, .*window in a decoder"):
        kernel(q, q, q, causal())


@pytest.mark.parametrize(
    "kernel",
    [
        BigBirdAttention(10**9),
        BigBirdAttention(10**9, 1, 10**9, 10**9),
        BigBirdAttention(7, num_random_blocks=10**6),
        BigBirdAttention(7, num_global_blocks=10**6),
        LongformerAttention(4, num_global=10**9),
        LongformerAttention(10**9, num_global=0),
    ],
    ids=str,
)
def test_a_pattern_larger_than_the_row_is_full_attention_and_costs_no_more(
    kernel: SparseAttention,
) -> None:
    """Blocks and tokens that are not there are not laid out: a billion of them would be a billion
    columns."""
    q, k, v = (
        torch.randn(BATCH, HEADS, TIME, HEAD_DIM, generator=torch_generator(name)) for name in "qkv"
    )
    for name in ("all", "packed"):
        mask = masks()[name]
        torch.testing.assert_close(kernel(q, k, v, mask), FullAttention()(q, k, v, mask))


def test_dilation_beyond_the_row_leaves_everyone_to_himself() -> None:
    q, k, v = (
        torch.randn(BATCH, HEADS, TIME, HEAD_DIM, generator=torch_generator(name)) for name in "qkv"
    )
    kernel = LongformerAttention(8, num_global=0, dilation=10**9)
    torch.testing.assert_close(kernel(q, k, v, Mask()), v)


def test_gradients_of_the_fused_form_on_a_cpu_are_refused_with_the_form_that_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    q = torch.randn(1, 1, 7, 16, generator=torch_generator("slope"), requires_grad=True)
    with pytest.raises(
        UsageError, match=r'form="flex" was asked for gradients on a CPU.*use form="chunked"'
    ):
        WindowAttention(3, 2, form="flex")(q, q, q, Mask())
    with torch.no_grad():
        flex, chunked = (
            WindowAttention(3, 2, form=form)(q, q, q, Mask()) for form in ("flex", "chunked")
        )
    torch.testing.assert_close(flex, chunked)
