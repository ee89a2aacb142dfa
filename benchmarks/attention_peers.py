"""Attention as other packages write it: the kernels alone, as peers of ours in bench_sparse.py and
bench_linear.py.

    window      local-attention      blocks of 256, each with both neighbours, cut to the window
    longformer  transformers         LongformerSelfAttention
    bigbird     transformers         BigBirdBlockSparseAttention in evaluation mode, in which it
                                     takes block 0 for each random block and draws none
    linear      performer-pytorch    its linear_attention on elu + 1
    performer   performer-pytorch    FastAttention
    linformer   linformer            LinformerSelfAttention
    reformer    reformer-pytorch     LSHAttention with its defaults (a key found in two rounds
                                     counts twice, keys of other buckets get weights), and "exact":
                                     one softmax over the keys of the query's own bucket

No projections on either side: where a peer projects inside, the projections are replaced by what
hands on the given queries, keys and values. Each is given its inputs in the layout it works in.
Peers know no packed rows. What is not installed, or fails at a length, is left out with the reason.

Tested by tests/benchmarks: those that compute what ours compute give the same numbers.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from harness import Bench, Contender, Line, Run, print_table, ratio_to
from torch import Tensor, nn

from headwise.planning.available_memory import available_memory
from headwise.randomness import torch_generator

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Work:
    """What is asked of a peer: sizes as our kernel has them."""

    length: int
    heads: int
    head_dim: int
    is_causal: bool = False
    window: int = 512
    block: int = 64
    rank: int = 64
    features: int = 256
    bucket: int = 64
    rounds: int = 2

    @property
    def dim(self) -> int:
        return self.heads * self.head_dim


@dataclass(frozen=True)
class Peer:
    kind: str
    """Our kernel that does the same work."""
    package: str
    build: Callable[[Work, torch.device, torch.dtype], Attend]
    layout: Literal["heads", "folded", "time"] = "heads"
    """[1, head, time, head_dim], [head, time, head_dim] or [1, time, dim]."""
    shares_keys: bool = False
    causal_too: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.package}"


class Given(nn.Module):
    """In the place of a projection: what was given, whatever is asked."""

    tensor: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return self.tensor


def _window(work: Work, device: torch.device, dtype: torch.dtype) -> Attend:
    from local_attention import LocalAttention

    return LocalAttention(
        work.window // 2, look_forward=1, exact_windowsize=True, use_rotary_pos_emb=False
    )


def _longformer(work: Work, device: torch.device, dtype: torch.dtype) -> Attend:
    from transformers.models.longformer.modeling_longformer import (
        LongformerConfig,
        LongformerSelfAttention,
    )

    config = LongformerConfig(
        hidden_size=work.dim,
        num_attention_heads=work.heads,
        attention_window=[work.window],
        attention_probs_dropout_prob=0.0,
    )
    peer = LongformerSelfAttention(config, layer_id=0)
    parts = {name: Given() for name in ("query", "key", "value")}
    for name, part in parts.items():
        setattr(peer, name, part)
        setattr(peer, f"{name}_global", part)
    peer.query_global = first = Given()
    is_global = torch.zeros(1, work.length, dtype=torch.bool, device=device)
    is_global[:, 0] = True
    mask, hidden = is_global.to(dtype) * 10000, torch.zeros_like(is_global)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        # Its projections see [time, batch, dim], and it divides the queries they give in place.
        for name, x in (("query", q.clone()), ("key", k), ("value", v)):
            parts[name].tensor = x.transpose(0, 1)
        first.tensor = q.transpose(0, 1)[:1].clone()
        return peer(q, mask, hidden, is_global, True)[0]

    return attend


def _bigbird(work: Work, device: torch.device, dtype: torch.dtype) -> Attend:
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import (
        BigBirdBlockSparseAttention,
        BigBirdModel,
    )

    config = BigBirdConfig(
        hidden_size=work.dim,
        num_attention_heads=work.heads,
        block_size=work.block,
        num_random_blocks=3,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=work.length,
    )
    peer = BigBirdBlockSparseAttention(config, seed=1).eval()
    real = torch.ones(1, work.length, dtype=dtype, device=device)
    blocked, band, rows, columns = BigBirdModel.create_masks_for_block_sparse_attn(real, work.block)
    masks = (band, rows, columns, blocked, blocked)
    sizes = (work.heads, 3, work.head_dim, work.block, work.block, 1, work.length, work.length)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return peer.bigbird_block_sparse_attention(q, k, v, *masks, *sizes, 1, None, None)[0]

    return attend


def _linear(work: Work, device: torch.device, dtype: torch.dtype) -> Attend:
    with warnings.catch_warnings(action="ignore"):  # of distutils
        from performer_pytorch.performer_pytorch import (
            causal_linear_attention_noncuda,
            linear_attention,
        )

    _refuse_causal_table(work, work.head_dim, device, dtype)
    attend = causal_linear_attention_noncuda if work.is_causal else linear_attention
    return lambda q, k, v: attend(F.elu(q) + 1, F.elu(k) + 1, v)


def _performer(work: Work, device: torch.device, dtype: torch.dtype) -> Attend:
    with warnings.catch_warnings(action="ignore"):
        from performer_pytorch import FastAttention

    _refuse_causal_table(work, work.features, device, dtype)
    return FastAttention(work.head_dim, nb_features=work.features, causal=work.is_causal).to(device)


def _refuse_causal_table(
    work: Work, num_features: int, device: torch.device, dtype: torch.dtype
) -> None:
    """Without the CUDA code of fast_transformers its causal form keeps every token's sum of keys
    times values, and what led to it."""
    needed = 3 * work.heads * work.length * num_features * work.head_dim * dtype.itemsize
    there = available_memory(device)
    if work.is_causal and there is not None and needed > there / 4:
        raise RuntimeError(f"its causal form would need {needed / 2**30:.0f} GiB")


def _linformer(work: Work, device: torch.device, dtype: torch.dtype) -> Attend:
    from linformer import LinformerSelfAttention

    class Kernel(LinformerSelfAttention):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.to_q.tensor, self.to_k.tensor, self.to_v.tensor = q, k, v
            return super().forward(q)

    peer = Kernel(work.dim, work.length, k=work.rank, heads=work.heads).to(device, dtype)
    peer.to_q, peer.to_k, peer.to_v, peer.to_out = Given(), Given(), Given(), nn.Identity()
    return peer


def _reformer(work: Work, *, is_exact: bool) -> Attend:
    from reformer_pytorch import LSHAttention

    peer = LSHAttention(
        bucket_size=work.bucket,
        n_hashes=work.rounds,
        causal=work.is_causal,
        allow_duplicate_attention=not is_exact,
        attend_across_buckets=not is_exact,
    ).eval()
    return lambda q, k, v: peer(q, v)[0]


PEERS = (
    Peer("window", "local-attention", _window),
    Peer("longformer", "transformers", _longformer, layout="time"),
    Peer("bigbird", "transformers", _bigbird),
    Peer("linear", "performer-pytorch", _linear, causal_too=True),
    Peer("performer", "performer-pytorch", _performer, causal_too=True),
    Peer("linformer", "linformer", _linformer, layout="time"),
    Peer(
        "reformer",
        "reformer-pytorch",
        lambda work, device, dtype: _reformer(work, is_exact=False),
        layout="folded",
        shares_keys=True,
        causal_too=True,
    ),
    Peer(
        "reformer",
        "reformer-pytorch exact",
        lambda work, device, dtype: _reformer(work, is_exact=True),
        layout="folded",
        shares_keys=True,
        causal_too=True,
    ),
)


def peers_of(kinds: Sequence[str]) -> list[str]:
    """What `--peers` may name."""
    return list(dict.fromkeys(peer.package for peer in PEERS if peer.kind in kinds))


def make_peer_run(
    peer: Peer, work: Work, bench: Bench, dtype: torch.dtype, *, backward: bool
) -> Run:
    attend = peer.build(work, bench.device, dtype)
    shapes = {
        "heads": (1, work.heads, work.length, work.head_dim),
        "folded": (work.heads, work.length, work.head_dim),
        "time": (1, work.length, work.dim),
    }
    generator = torch_generator("attention peers", work.length)
    drawn = [
        torch.randn(shapes[peer.layout], generator=generator).to(bench.device, dtype)
        for _ in range(3)
    ]
    q, k, v = (x.requires_grad_() for x in drawn)
    leaves = [q, v] if peer.shares_keys else [q, k, v]

    def run() -> float:
        if backward:
            output = attend(q, k, v)
            torch.autograd.grad(output, leaves, torch.ones_like(output))
        else:
            with torch.no_grad():
                attend(q, k, v)
        return 1.0

    return run


def peer_contenders(
    bench: Bench, work: Work, floors: Mapping[str, float], dtype: torch.dtype, *, backward: bool
) -> list[Contender]:
    """The peers of the kernels in `floors` that can do this work, each tried once."""
    found = []
    for peer in PEERS:
        if (
            peer.kind not in floors
            or peer.package not in bench.options.peers
            or (work.is_causal and not peer.causal_too)
        ):
            continue
        try:
            run = make_peer_run(peer, work, bench, dtype, backward=backward)
            run()
        except (
            ImportError,
            AssertionError,
            ValueError,
            RuntimeError,
        ) as error:  # too long, no memory, a dtype it does not know
            bench.note(f"left out: {peer.name}, {work.length:,} tokens", str(error).splitlines()[0])
            continue
        found.append(Contender(peer.name, lambda run=run: run, floors[peer.kind]))  # type: ignore[misc]
    return found


def report_peers(
    bench: Bench, title: str, lines: Mapping[str, Line], ours: Mapping[str, str]
) -> None:
    """Speed of our line of a kind over that of each of its peers, round by round."""
    rows = [(f"{title}: times the peer's speed", "ratio", "of its memory")]
    for peer in PEERS:
        if peer.name in lines and peer.kind in ours:
            own, other = lines[ours[peer.kind]], lines[peer.name]
            ratio = ratio_to(other, own)
            memory = (own.memory_mib or 0.0) / max(other.memory_mib or 0.0, 1.0)
            rows.append((f"{ours[peer.kind]} / {peer.package}", f"{ratio:.2f}", f"{memory:.2f}"))
            bench.record[f"peer {title}, {peer.name}"] = {"speed": ratio, "memory": memory}
    if len(rows) > 1:
        print_table(rows)
