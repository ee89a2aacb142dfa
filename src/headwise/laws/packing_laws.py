"""Laws of attention kernels on packed rows: the output of a sentence does not depend on other
sentences or padding in its row. Each law is a function of a case.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.attention.masks import Mask, causal, explicit, padding, segments
from headwise.laws.case import LawCase
from headwise.laws.random_inputs import BATCH, scene_for
from headwise.laws.result_checks import assert_same, honoured, stand_at

DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""Integer types of segment numbers."""


def packed_is_one_by_one(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """Sentences that share a row, told apart by segment numbers, give the same as each alone,
    causal or not."""
    if "segments" in row.refuses:
        return
    lengths, kernel = (2, 3, 5), row.build(0.0)
    scene = scene_for(row, "packed", num_keys=sum(lengths) + 1, square=True, dtype=dtype)
    numbers = torch.tensor(
        [number for number, length in enumerate(lengths, 1) for _ in range(length)] + [0]
    )
    own = segments(numbers.expand(BATCH, -1), numbers.expand(BATCH, -1))
    for extra in (Mask(), causal()) if "causal" not in row.refuses else (Mask(),):
        whole = kernel(scene.q, scene.k, scene.v, extra & own)
        start = 0
        for length in lengths:
            part = slice(start, start + length)
            alone = kernel(scene.q[:, :, part], scene.k[:, :, part], scene.v[:, :, part], extra)
            assert_same(whole[:, :, part], alone)
            start += length
        assert whole[:, :, start:].eq(0).all()


def padded_is_one_by_one(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """A sentence with padding before and after it gives the same as alone, causal or not."""
    if "padding" in row.refuses:
        return
    length, kernel = 5, row.build(0.0)
    for before in (0, 3):
        whole = scene_for(row, "padded", num_keys=length + 2 * 3, square=True, dtype=dtype)
        part = slice(before, before + length)
        real = torch.zeros(BATCH, whole.num_keys, dtype=torch.bool)
        real[:, part] = True
        for extra in (Mask(), causal()) if "causal" not in row.refuses else (Mask(),):
            standing = stand_at(kernel, -before, whole.num_queries)
            given = standing(whole.q, whole.k, whole.v, extra & padding(real))[:, :, part]
            alone = kernel(whole.q[:, :, part], whole.k[:, :, part], whole.v[:, :, part], extra)
            assert_same(given, alone, f"{before} before it", more_terms=row.more_terms)


def numbers_are_names(row: LawCase) -> None:
    """The values and the type of segment numbers do not matter, alone or combined with other
    segments."""
    if "segments" in row.refuses:
        return
    kernel, lengths = row.build(0.0), torch.tensor([2, 3, 5, 1])
    scene = scene_for(row, "names", num_keys=int(lengths.sum()), square=True)

    def ask(*names: int, dtype: torch.dtype = torch.int64, beside: Mask) -> Tensor:
        numbers = (
            torch.tensor([*names, 0], dtype=dtype).repeat_interleave(lengths).expand(BATCH, -1)
        )
        return kernel(scene.q, scene.k, scene.v, segments(numbers, numbers) & beside)

    one = torch.ones(BATCH, scene.num_keys, dtype=torch.long)
    for beside, dtypes in ((Mask(), DTYPES), (segments(one, one), DTYPES[-1:])):
        expected = ask(1, 2, 3, beside=beside)
        for dtype in dtypes:
            most, least = torch.iinfo(dtype).max, torch.iinfo(dtype).min
            half = most // 2 + 1  # multiplied by four or more, it comes round to nothing
            for names in (
                (1, 1 + half, 2 + half),
                (most, least or 5, most - 1),
                (-1 if least else 9, 5, -2 if least else 7),
            ):
                given = ask(*names, dtype=dtype, beside=beside)
                assert_same(given, expected, f"{names} {dtype}", more_terms=row.more_terms)


def one_row_is_for_all(row: LawCase) -> None:
    """A condition of a mask for one row is broadcast to all rows, whatever it is combined with."""
    scene, kernel = scene_for(row, "rows", square=True), row.build(0.0)

    def part(name: str, rows: slice | list[int]) -> Mask:
        number = scene.key_segment[rows]
        match name:
            case "padding":
                return padding(scene.real[rows])
            case "explicit":
                return explicit(scene.table[rows])
        return segments(number, number)

    def compare(short: Mask, long: Mask, note: str) -> None:
        assert_same(
            kernel(scene.q, scene.k, scene.v, short),
            kernel(scene.q, scene.k, scene.v, long),
            note,
            more_terms=row.more_terms,
        )

    first, both, repeated = slice(1), slice(BATCH), [0] * BATCH
    names = honoured(row, "padding", "segments", "explicit")
    for one in names:
        for other in names:
            compare(
                part(one, first) & part(other, both),
                part(one, repeated) & part(other, both),
                f"{one}[1] & {other}",
            )
        compare(part(one, first), part(one, repeated), f"{one}[1]")
    if "segments" not in row.refuses:
        number = scene.key_segment
        compare(segments(number, number[:1]), segments(number, number[repeated]), "keys[1]")
        compare(segments(number[:1], number), segments(number[repeated], number), "queries[1]")


PACKING_LAWS: tuple[Callable[[LawCase], None], ...] = (numbers_are_names, one_row_is_for_all)
"""The laws that do not depend on the floating type; the others are in kernel_laws.py."""
