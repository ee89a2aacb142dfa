"""CTC: our loss beside torch's on the same hidden states, and what its searches cost a sentence.

    python benchmarks/bench_ctc.py [--device cuda] [--pairs 64] [--vocab 8000]

Measured: pairs a second from hidden states to the gradients of hidden states and output layer. Ours
scores the tokens of each sentence chunk by chunk and runs the recursion by hand; torch's
`F.ctc_loss` needs the log-probabilities of all words at all positions. Both process the same padded
positions, in fp32 on a CPU and under bf16 autocast on a GPU (torch's loss then reads fp32); the
peak memory shows the table. A second table has the recursion alone, given the scores; a third the
sentences a second of the searches, from log-probabilities of all words at 30 positions to tokens.

The floor of a loss is its products: forward, and twice that backward, at the speed of products
measured in the same run. Ours computes the logits once more in the backward pass, so that its
greatest possible share is 3/4. `difference of the losses` is relative to torch's.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from harness import Bench, Contender, Run, make_parser, product_speed
from torch import Tensor

from headwise.decoding.parallel.ctc import Fusion, best_paths, prefix_beam_search, prune_tokens
from headwise.randomness import torch_generator
from headwise.training.parallel.ctc import ctc_loss
from headwise.training.parallel.token_scores import score_tokens

FACTOR = 2
"""Positions for each source token."""


class Work(NamedTuple):
    """A padded batch of pairs, and the output layer."""

    hidden: Tensor
    weight: Tensor
    labels: Tensor
    position_count: Tensor
    label_count: Tensor

    @property
    def num_products(self) -> int:
        """Operations of one product with the output layer, for a pair."""
        return 2 * self.hidden.shape[1] * self.weight.numel()


def draw_work(num_pairs: int, vocab: int, dim: int, device: torch.device) -> Work:
    """Sources of 15 to 30 tokens, and targets of three quarters to one and a quarter of that."""
    generator = torch_generator("bench_ctc")
    sources = torch.randint(15, 31, (num_pairs,), generator=generator)
    share = 0.75 + 0.5 * torch.rand(num_pairs, generator=generator)
    label_count = (sources * share).long()
    positions = FACTOR * sources
    hidden = torch.randn(num_pairs, int(positions.max()), dim, generator=generator)
    weight = torch.randn(vocab, dim, generator=generator) * dim**-0.5
    labels = torch.randint(4, vocab, (num_pairs, int(label_count.max())), generator=generator)
    placed = [one.to(device) for one in (hidden, weight, labels, positions, label_count)]
    placed[0].requires_grad_()
    placed[1].requires_grad_()
    return Work(*placed)


Loss = Callable[[Work], Tensor]


def sum_ours(work: Work) -> Tensor:
    num_positions = work.hidden.shape[1]
    candidates = F.pad(work.labels, (1, 0)).repeat_interleave(num_positions, dim=0)
    scores = score_tokens(work.hidden.flatten(0, 1), work.weight, candidates=candidates)
    return ctc_loss(
        scores.view(len(work.labels), num_positions, -1),
        work.labels,
        position_count=work.position_count,
        label_count=work.label_count,
    ).sum()


def sum_torch(work: Work) -> Tensor:
    scores = F.linear(work.hidden, work.weight).log_softmax(-1, dtype=torch.float32)
    return F.ctc_loss(
        scores.transpose(0, 1),
        work.labels,
        work.position_count,
        work.label_count,
        reduction="sum",
        zero_infinity=True,
    )


def build_loss(loss: Loss, work: Work) -> Run:
    def run() -> float:
        work.hidden.grad = work.weight.grad = None
        half = work.hidden.is_cuda
        with torch.autocast(work.hidden.device.type, dtype=torch.bfloat16, enabled=half):
            total = loss(work)
        total.backward()
        return float(len(work.labels))

    return run


def measure_losses(bench: Bench, work: Work, speed: float) -> None:
    contenders = [
        Contender(name, partial(build_loss, loss, work), 3 * work.num_products / speed)
        for name, loss in (("torch", sum_torch), ("headwise", sum_ours))
    ]
    bench.compare("hidden states to gradients", contenders, unit="pair", baseline="torch")
    with torch.no_grad():
        ours, theirs = sum_ours(work), sum_torch(work)
    bench.note("difference of the losses", float((ours - theirs).abs() / theirs))


def build_recursion(work: Work, *, whole_table: bool) -> Run:
    """Only the loss over scores that are given: of all words, or of those of the sentence."""
    with torch.no_grad():
        table = F.linear(work.hidden, work.weight).log_softmax(-1)
        tokens = F.pad(work.labels, (1, 0))[:, None].expand(-1, table.shape[1], -1)
        scores = (table.transpose(0, 1) if whole_table else table.gather(2, tokens)).contiguous()
    scores.requires_grad_()
    counts = (work.position_count, work.label_count)

    def run() -> float:
        scores.grad = None
        if whole_table:
            total = F.ctc_loss(scores, work.labels, *counts, reduction="sum")
        else:
            total = ctc_loss(
                scores, work.labels, position_count=counts[0], label_count=counts[1]
            ).sum()
        total.backward()
        return float(len(work.labels))

    return run


class Unigrams:
    """A language model that costs little, so that the search itself is measured."""

    def __init__(self, scores: list[float]) -> None:
        self._scores = scores

    def score_next(
        self, prefixes: Sequence[tuple[int, ...]], tokens: Sequence[int]
    ) -> list[list[float]]:
        row = [self._scores[token] for token in tokens]
        return [row] * len(prefixes)


def build_search(table: Tensor, *, size: int, fusion: Fusion | None = None) -> Run:
    """`size` 1: the best path."""
    counts = torch.full((len(table),), table.shape[1], device=table.device)

    def run() -> float:
        if size == 1:
            values, tokens = table.max(-1)
            best_paths(tokens, values, position_count=counts)
        else:
            for top in prune_tokens(table, position_count=counts, count=2 * size):
                prefix_beam_search(top, size=size, fusion=fusion)
        return float(len(table))

    return run


def measure_searches(bench: Bench, num_sentences: int, vocab: int) -> None:
    generator = torch_generator("bench_ctc", vocab)
    logits = 2 * torch.randn(num_sentences, 30, vocab, generator=generator)
    logits[..., 0] += 5
    table = logits.log_softmax(-1).to(bench.device)
    unigrams = torch.randn(vocab, generator=generator).log_softmax(-1).tolist()
    fusion = Fusion(Unigrams(unigrams), weight=0.3, token_bonus=1.0)
    contenders = [
        Contender("best path", partial(build_search, table, size=1)),
        Contender("beam of 5", partial(build_search, table, size=5)),
        Contender("beam of 5, model", partial(build_search, table, size=5, fusion=fusion)),
        Contender("beam of 20", partial(build_search, table, size=20)),
    ]
    bench.compare("search, 30 positions", contenders, unit="sentence", baseline="beam of 5")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--dim", type=int, default=256)
    options = parser.parse_args(arguments)
    if options.quick:
        options.pairs, options.vocab, options.dim, options.rounds = 3, 211, 16, 1
    bench = Bench("ctc", options)
    dtype = torch.bfloat16 if bench.device.type == "cuda" else torch.float32
    speed = bench.measure_ceiling(
        "FLOP/s", lambda: product_speed(bench.device, dtype, quick=options.quick)
    )
    work = draw_work(options.pairs, options.vocab, options.dim, bench.device)
    measure_losses(bench, work, speed)
    contenders = [
        Contender("torch", partial(build_recursion, work, whole_table=True)),
        Contender("headwise", partial(build_recursion, work, whole_table=False)),
    ]
    bench.compare("scores to gradients", contenders, unit="pair", baseline="torch")
    measure_searches(bench, 3 if options.quick else 40, options.vocab)
    bench.save()


if __name__ == "__main__":
    main()
