"""Laws of attention kernels on unusual inputs: very small and very large numbers, biases with
vectors, empty tensors.

tests/laws/test_input_mutants.py checks that each law finds a kernel with a known fault.
"""

from collections.abc import Callable

import torch

from headwise.attention.biases import VectorBias
from headwise.attention.choices import BUILT_IN
from headwise.attention.masks import Mask, causal, padding, segments
from headwise.errors import UsageError
from headwise.laws.case import HEAD_DIM, LawCase
from headwise.laws.random_inputs import scene_for
from headwise.laws.result_checks import assert_same, refused


def low_stays_alive(row: LawCase) -> None:
    """Equal queries and keys give the mean of the values, even if all numbers are far below 0."""
    scene = scene_for(row, "low", square=True).to(torch.float32)
    q = torch.full_like(scene.q, -60.0)
    if row.exact is None or not row.sums_to_one:
        return  # a mixture of tokens has no equal weights
    kernel = row.exact(scene.num_keys)
    output, expected = (
        kernel(q, q, scene.v, Mask()),
        scene.v.mean(2, keepdim=True).expand_as(scene.v),
    )
    if row.shared:  # oneself does not count
        num_keys = scene.num_keys
        expected = (expected * num_keys - scene.v) / (num_keys - 1)
    assert_same(output, expected)


def half_stays_alive(row: LawCase) -> None:
    """In float16, vectors of zeros give the result of double precision, and vectors whose squares
    overflow give finite numbers."""
    scene, kernel = scene_for(row, "half", square=True).to(torch.float16), row.build(0.0)
    zeros, long = torch.zeros_like(scene.q), (scene.q / scene.q.abs().max() * 3e4)
    precise = kernel(zeros.double(), zeros.double(), scene.v.double(), Mask())
    assert_same(kernel(zeros, zeros, scene.v, Mask()), precise, "zeros")
    assert_same(kernel.weights(zeros, zeros, Mask()) @ scene.v, precise, "the map of zeros")
    for x in (kernel(long, long, scene.v, Mask()), kernel.weights(long, long, Mask())):
        assert x.isfinite().all(), "long vectors"


def vectors_are_added_or_refused(row: LawCase) -> None:
    """A bias with vectors for the values is computed in full or refused; its vectors are never
    ignored."""
    scene, kernel = scene_for(row, "vectors", value_dim=HEAD_DIM), row.build(0.0)
    bias = VectorBias(scene.bias, torch.ones(3, HEAD_DIM, dtype=torch.float64), first=-1)
    if not row.takes_vectors:
        able = [kind.word() for kind in BUILT_IN if "weights" in kind.model_validate({}).takes]
        with refused(UsageError, able):
            kernel(scene.q, scene.k, scene.v, Mask(), bias=bias)
        return
    output = kernel(scene.q, scene.k, scene.v, Mask(), bias=bias)
    total = kernel.weights(scene.q, scene.k, Mask(), bias=scene.bias).sum(-1, keepdim=True)
    assert_same(output, kernel(scene.q, scene.k, scene.v, Mask(), bias=scene.bias) + total)


def nothing_gives_nothing(row: LawCase) -> None:
    """Without a batch, queries or keys the output has the right shape, is zero where queries have
    no key, and has a zero gradient."""
    kernel = row.build(0.0)
    for batch, queries, keys in ((0, 5, 5), (2, 0, 5), (2, 5, 0), (2, 0, 0)):
        if row.square_only and queries != keys:
            continue
        q = torch.ones(batch, 3, queries, HEAD_DIM, dtype=torch.float64, requires_grad=True)
        k = (
            q
            if row.shared
            else torch.ones(batch, 3, keys, HEAD_DIM, dtype=torch.float64, requires_grad=True)
        )
        v = torch.ones(batch, 3, keys, 13, dtype=torch.float64, requires_grad=True)
        sentence = [torch.ones(batch, length, dtype=torch.long) for length in (queries, keys)]
        masks = {
            "everything": Mask(),
            "padding": padding(sentence[1].bool()),
            "segments": segments(*sentence),
        }
        masks |= {} if "causal" in row.refuses else {"causal": causal()}
        for name, mask in masks.items():
            for ready in (mask, kernel.prepare(mask, queries, keys, q.device)):
                output, table = kernel(q, k, v, ready), kernel.weights(q, k, ready)
                assert output.shape == (batch, 3, queries, 13), name
                assert table.shape == (batch, 3, queries, keys), name
                assert output.eq(0).all(), name
                assert all(x.eq(0).all() for x in torch.autograd.grad(output.sum(), (q, k, v))), (
                    name
                )


INPUT_LAWS: tuple[Callable[[LawCase], None], ...] = (
    low_stays_alive,
    half_stays_alive,
    vectors_are_added_or_refused,
    nothing_gives_nothing,
)
