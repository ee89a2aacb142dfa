"""Reformer's outputs, computed twice more: by the paper's equations, position by position, and by
reformer-pytorch.

The peer cuts the sorted tokens into chunks, which ours does not (see
attention/kernels/reformer.py). Both meet the same keys where no cut falls inside a bucket: causally
with two chunks, each looking back at the other, and both ways when every vector has its opposite in
the row, which falls into the bucket half the buckets on, so that the cut in the middle of the order
lies between two buckets.
"""

import math
from collections.abc import Sequence

import pytest
import torch
from reformer_pytorch import LSHAttention
from torch import Tensor

from headwise.attention.kernels.reformer import ReformerAttention
from headwise.attention.masks import Mask, causal, segments
from headwise.randomness import torch_generator


def _draw(*shape: int, name: str) -> Tensor:
    """In float64: beside the −10⁵ of oneself, float32 has no room for the logarithm of a number of
    rounds."""
    return torch.randn(shape, generator=torch_generator("hashed oracle", name), dtype=torch.float64)


def _bucket(vector: Sequence[float], rotation: Sequence[Sequence[float]]) -> int:
    turned = [
        sum(x * row[column] for x, row in zip(vector, rotation, strict=True))
        for column in range(len(rotation[0]))
    ]
    both = turned + [-number for number in turned]
    return both.index(max(both))


def _attend_by_loops(
    q: Sequence[Sequence[float]],
    v: Sequence[Sequence[float]],
    sentence: Sequence[int],
    rotations: Sequence[Sequence[Sequence[float]]],
    *,
    window: int,
    is_causal: bool,
) -> list[list[float]]:
    """Kitaev et al. 2020, equations 2 to 7: P is the set met in a round, N in how many a key is
    met, z the logarithm of a round's sum."""
    everyone, root = range(len(q)), math.sqrt(len(q[0]))
    rounds: list[list[list[int]]] = []
    for rotation in rotations:
        bucket = [_bucket(vector, rotation) for vector in q]
        rounds.append([])
        for i in everyone:
            likes = [
                j for j in everyone if sentence[j] == sentence[i] != 0 and bucket[j] == bucket[i]
            ]
            near = (
                likes[max(0, likes.index(i) - window) : likes.index(i) + window + 1]
                if likes
                else []
            )
            rounds[-1].append([j for j in near if j <= i or not is_causal])
    outputs = []
    for i in everyone:
        if sentence[i] == 0:
            outputs.append([0.0] * len(v[0]))
            continue
        sums: list[float] = []
        mixtures: list[list[float]] = []
        for met in (one[i] for one in rounds):
            power = {}
            for j in met:
                length = math.sqrt(sum(x * x for x in q[j]))
                score = (
                    -1e5
                    if j == i
                    else sum(a * b for a, b in zip(q[i], q[j], strict=True)) / length / root
                )
                power[j] = score - math.log(sum(j in other[i] for other in rounds))
            most = max(power.values())
            sums.append(most + math.log(sum(math.exp(one - most) for one in power.values())))
            shares = {j: math.exp(one - sums[-1]) for j, one in power.items()}
            mixtures.append(
                [
                    sum(share * v[j][column] for j, share in shares.items())
                    for column in range(len(v[0]))
                ]
            )
        whole = max(sums) + math.log(sum(math.exp(one - max(sums)) for one in sums))
        parts = [math.exp(one - whole) for one in sums]
        outputs.append(
            [
                sum(p * mixture[column] for p, mixture in zip(parts, mixtures, strict=True))
                for column in range(len(v[0]))
            ]
        )
    return outputs


ONE, PACKED = [1] * 31, [1] * 11 + [2] + [3] * 15 + [0] * 4


@pytest.mark.parametrize("sentence", [ONE, PACKED], ids=["one", "packed"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    ("num_buckets", "num_rounds", "window"), [(2, 1, 3), (4, 5, 2), (6, 3, 40), (64, 2, 1)]
)
def test_outputs_are_those_of_the_equations(
    num_buckets: int, num_rounds: int, window: int, is_causal: bool, sentence: list[int]
) -> None:
    q, v = (_draw(1, 2, 31, 5, name=name) for name in "qv")
    kernel = ReformerAttention(5, num_buckets=num_buckets, num_rounds=num_rounds, window=window)
    numbers = torch.tensor([sentence])
    mask = (causal() if is_causal else Mask()) & (
        segments(numbers, numbers) if sentence is PACKED else Mask()
    )
    output = kernel(q, q, v, mask)
    for head in range(2):
        expected = _attend_by_loops(
            q[0, head].tolist(),
            v[0, head].tolist(),
            sentence,
            kernel.rotations.tolist(),
            window=window,
            is_causal=is_causal,
        )
        assert torch.allclose(
            output[0, head], torch.tensor(expected, dtype=torch.float64), atol=1e-5
        )


def _ask_peer(
    qk: Tensor, v: Tensor, *, num_buckets: int, num_rounds: int, is_causal: bool
) -> tuple[Tensor, Tensor]:
    """One sentence's output for each head, and the directions that were drawn: two chunks, however
    many buckets."""
    peer = LSHAttention(
        bucket_size=qk.shape[1] // 2,
        n_hashes=num_rounds,
        causal=is_causal,
        allow_duplicate_attention=False,
        attend_across_buckets=False,
    )
    hash_into_two = peer.hash_vectors
    peer.hash_vectors = lambda _, vectors, **options: hash_into_two(num_buckets, vectors, **options)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        rotations = torch.randn(1, qk.shape[2], num_rounds, num_buckets // 2, dtype=qk.dtype)[
            0
        ].transpose(0, 1)
        torch.manual_seed(5)
        output = peer(qk, v)[0]
    return output, rotations


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("num_buckets", "num_rounds"), [(2, 1), (2, 4), (6, 3), (10, 8)])
def test_outputs_and_gradients_are_those_of_reformer_pytorch(
    num_buckets: int, num_rounds: int, is_causal: bool
) -> None:
    """Two sentences and padding in one row, of which the peer is given each by itself."""
    kernel = ReformerAttention(
        7, num_buckets=num_buckets, num_rounds=num_rounds, window=44
    ).double()
    half, v = _draw(3, 22, 7, name="half"), _draw(3, 49, 7, name="v").requires_grad_()
    order = (
        torch.randperm(26, generator=torch_generator("first")),
        torch.randperm(18, generator=torch_generator("second")),
    )
    sentences = [
        torch.cat([part, -part], dim=1)[:, one]
        for part, one in zip((half[:, :13], half[:, 13:]), order, strict=True)
    ]
    q = torch.cat([*sentences, _draw(3, 5, 7, name="padding")], dim=1).requires_grad_()
    numbers = torch.tensor([[1] * 26 + [2] * 18 + [0] * 5])
    theirs = []
    for start, end in ((0, 26), (26, 44)):
        output, rotations = _ask_peer(
            q[:, start:end],
            v[:, start:end],
            num_buckets=num_buckets,
            num_rounds=num_rounds,
            is_causal=is_causal,
        )
        kernel.rotations.copy_(rotations)
        theirs.append(output)
    expected = torch.cat(theirs, dim=1)
    mask = segments(numbers, numbers) & (causal() if is_causal else Mask())
    ours = kernel(q[None], q[None], v[None], mask)[0]
    assert torch.allclose(ours[:, :44], expected, atol=1e-5)
    assert not ours[:, 44:].any()
    direction = _draw(3, 44, 7, name="direction")
    for mine, other in zip(
        torch.autograd.grad((ours[:, :44] * direction).sum(), (q, v)),
        torch.autograd.grad((expected * direction).sum(), (q, v)),
        strict=True,
    ):
        assert torch.allclose(mine, other, atol=1e-5)
