"""Peers that compute what our kernels compute give the same numbers: nothing was lost where their
projections were taken out."""

import importlib
from pathlib import Path

import pytest
import torch

from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.linformer import LinformerAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.masks import Mask, causal
from headwise.randomness import torch_generator

HEADS, HEAD_DIM, TIME, WINDOW = 3, 5, 28, 14


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    return importlib.import_module("attention_peers")


@pytest.mark.parametrize("kind", ["window", "longformer", "linear", "linear, causal", "linformer"])
def test_peers_do_the_same_work(peers, kind: str) -> None:
    is_causal = kind.endswith("causal")
    peer = next(one for one in peers.PEERS if one.kind == kind.split(",")[0])
    work = peers.Work(TIME, HEADS, HEAD_DIM, is_causal=is_causal, window=WINDOW, rank=7)
    q, k, v = (
        torch.randn(1, HEADS, TIME, HEAD_DIM, generator=torch_generator("peers", name))
        for name in "qkv"
    )
    kernels = {
        "window": WindowAttention(WINDOW // 2, WINDOW // 2),
        "longformer": LongformerAttention(WINDOW, 1),
        "linear": LinearAttention(),
        "linformer": LinformerAttention(7, TIME),
    }
    kernel = kernels[peer.kind]
    attend = peer.build(work, q.device, q.dtype)
    given = [x.transpose(1, 2).flatten(2) if peer.layout == "time" else x for x in (q, k, v)]
    if peer.kind == "linformer":
        kernel.key_summary.data, kernel.value_summary.data = attend.proj_k.data, attend.proj_v.data
    theirs = attend(*given)
    if peer.layout == "time":
        theirs = theirs.unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)
    torch.testing.assert_close(
        kernel(q, k, v, causal() if is_causal else Mask()), theirs, rtol=1e-4, atol=1e-4
    )
