"""BigBird against transformers' with its own random blocks, and what its random blocks promise."""

import contextlib
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BigBirdConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdModel

from headwise.attention.choices import BigBird, build_attention
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.masks import explicit
from headwise.errors import SettingsError
from headwise.randomness import torch_generator

BATCH, HEADS, HEAD_DIM, BLOCK, BLOCKS, RANDOM = 2, 3, 5, 4, 13, 2
TIME = BLOCK * BLOCKS


@dataclass(frozen=True)
class GivenBlocks(BigBirdAttention):
    """The kernel with random blocks from elsewhere."""

    chosen: tuple[tuple[int, ...], ...] = ()

    def random_block(self, block: Tensor, count: Tensor, number: int) -> Tensor:
        return torch.tensor(self.chosen)[block.clamp(max=len(self.chosen) - 1), number]


@contextlib.contextmanager
def own_state_of_numpy():
    """transformers seeds numpy's global generator."""
    state = np.random.get_state()
    try:
        yield
    finally:
        np.random.set_state(state)


def test_equals_transformers_given_its_random_blocks() -> None:
    """In training mode: outside it, transformers takes block 0 for every random block, and counts
    it twice."""
    config = BigBirdConfig(
        hidden_size=HEADS * HEAD_DIM,
        num_attention_heads=HEADS,
        block_size=BLOCK,
        num_random_blocks=RANDOM,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=TIME,
    )
    peer = BigBirdBlockSparseAttention(config, seed=7).double().train()
    found: list[list[np.ndarray]] = []
    draw = peer._bigbird_block_rand_mask_with_head
    peer._bigbird_block_rand_mask_with_head = lambda **given: (
        found.append(draw(**given)) or found[-1]
    )
    for number, parameter in enumerate(peer.parameters()):
        parameter.data.normal_(0, 0.3, generator=torch_generator("bigbird", number))
    x = torch.randn(
        BATCH, TIME, HEADS * HEAD_DIM, generator=torch_generator("x"), dtype=torch.float64
    )
    real = torch.arange(TIME) < torch.tensor([[TIME], [TIME - 7]])
    blocked, band, rows, columns = BigBirdModel.create_masks_for_block_sparse_attn(
        real.double(), BLOCK
    )
    with own_state_of_numpy():
        expected = peer(x, band, rows, columns, blocked, blocked)[0]
    q, k, v = (
        layer(x).unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)
        for layer in (peer.query, peer.key, peer.value)
    )
    for head, middle in enumerate(found[0]):
        nothing = (-1,) * RANDOM  # the first and the last block look everywhere anyway
        chosen = (nothing, *(tuple(row.tolist()) for row in middle), nothing)
        kernel = GivenBlocks(BLOCK, 3, 2, RANDOM, chosen=chosen)
        one = slice(head, head + 1)
        # It counts blocks to the end of the row, padding included: a table hides as much as padding
        # and says nothing of sentences.
        given = kernel(q[:, one], k[:, one], v[:, one], explicit(real[:, None, None]))
        wanted = expected.unflatten(-1, (HEADS, HEAD_DIM))[:, :, head]
        assert torch.allclose(given[:, 0][real], wanted[real], atol=2e-6)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 8, 9, 11, 31, 127])
def test_random_blocks_are_new_ones_and_as_many_as_there_are(count: int) -> None:
    kernel = BigBirdAttention(num_random_blocks=3)
    block = torch.arange(count)
    for number, row in enumerate(
        kernel.random_blocks(block, torch.full_like(block, count)).tolist()
    ):
        chosen = [one for one in row if one >= 0]
        others = {one for one in range(1, count - 1) if abs(one - number) > 1}
        assert set(chosen) <= others
        assert len(set(chosen)) == len(chosen) == min(3, len(others))


def test_random_blocks_are_spread_evenly_and_always_the_same() -> None:
    kernel, count = BigBirdAttention(num_random_blocks=3), 1023
    block = torch.arange(count)
    chosen = kernel.random_blocks(block, torch.full_like(block, count))
    assert chosen.equal(
        BigBirdAttention(num_random_blocks=3).random_blocks(block, torch.full_like(block, count))
    )
    thirds = torch.histc(chosen.float(), bins=10, min=0, max=count) / chosen.numel()
    assert (thirds - 0.1).abs().max() < 0.03
    hits = torch.bincount(chosen.flatten(), minlength=count)
    assert 0.03 < (hits == 0).float().mean() < 0.08  # Poisson with mean 3: exp(−3) = 0.05


@pytest.mark.parametrize("role", ["decoder", "cross"])
def test_only_an_encoder_has_it(role: str) -> None:
    with pytest.raises(SettingsError, match=r"kind=bigbird.*kind=full, fused, .* there"):
        build_attention(BigBird(), dim=6, num_heads=2, dropout_rate=0.0, role=role)  # type: ignore[arg-type]
    assert (
        build_attention(BigBird(), dim=6, num_heads=2, dropout_rate=0.0, role="encoder").kernel
        == BigBirdAttention()
    )


def test_random_blocks_are_the_same_in_the_whole_numbers_of_a_gpu() -> None:
    """FlexAttention counts in 32 bits: nothing may overflow there, or tiles and pairs would
    disagree."""
    kernel, block = BigBirdAttention(num_random_blocks=3), torch.arange(16384)
    for number in range(3):
        wide = kernel.random_block(block, torch.full_like(block, 16384), number)
        narrow = kernel.random_block(block.int(), torch.full_like(block, 16384).int(), number)
        assert narrow.long().equal(wide)
