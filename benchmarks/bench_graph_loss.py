"""The loss of a graph of vertices, forward and backward: the recursion in log space, its form in
products of matrices, and the Triton kernels.

    python benchmarks/bench_graph_loss.py [--device cuda] [--json FILE] [--tokens 16384]
        [--factor 8]

Measured: target tokens per second of the loss and the gradients for emissions and links, and of
the best path, on the same random pairs (source and target lengths from a log-normal distribution
with a mean of 13, at most 45; `factor` vertices per source token), padded to the longest. `plain`
is the definition: a logsumexp over all pairs of vertices for each label, gradient by autograd.
`products` works in probability space with exp(links) computed once; `products, grouped` first sorts
the pairs into groups of similar size. `kernels` are those of gpu/graph_recursion.py, on a GPU only;
`kernels, grouped` sorts, too. Before they are timed, loss and gradients of each form are compared
with those of `plain`, and the greatest differences are printed: relative ones of the losses,
absolute ones of the gradients, which are probabilities.

The floor: the links of a pair's own vertices read and their gradient written once, at the bytes per
second measured in the same run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from unittest import mock

import torch
from harness import Bench, Contender, Run, make_parser, read_speed
from torch import Tensor

from headwise.gpu import runs_kernels
from headwise.randomness import torch_generator
from headwise.training.parallel import graph_alignment
from headwise.training.parallel import graph_loss as losses
from headwise.training.parallel.length_groups import length_groups

Counts = tuple[Tensor, Tensor]
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Work:
    """A batch of random pairs."""

    emissions: Tensor
    links: Tensor
    counts: Counts

    @property
    def num_tokens(self) -> int:
        return int(self.counts[1].sum())

    @property
    def own_bytes(self) -> int:
        return 2 * 4 * int((self.counts[0].long() ** 2).sum())


def draw_work(num_tokens: int, *, factor: int, device: torch.device) -> Work:
    """Pairs until their target tokens are enough; a target never has more tokens than vertices."""
    generator = torch_generator("graph loss")
    # A log-normal distribution with mean 13: exp(mean of logs + variance / 2).
    spread = 0.5
    draws = torch.randn(2, num_tokens, generator=generator) * spread + torch.tensor(13.0).log()
    lengths = (draws - spread**2 / 2).exp().round().long().clamp(3, 45)
    num_pairs = int((lengths[1].cumsum(0) < num_tokens).sum()) + 1
    source, target = lengths[:, :num_pairs]
    vertices, width = factor * source, int(factor * source.max())
    target = torch.minimum(target, vertices)
    later = torch.ones(width, width, dtype=torch.bool, device=device).triu(1)
    own = torch.arange(width, device=device) < vertices[:, None].to(device)
    logits = torch.randn(num_pairs, width, width, generator=generator).to(device)
    allowed = later & own[:, None, :]
    links = logits.masked_fill_(~allowed, -1e30).log_softmax(-1).masked_fill_(~allowed, -torch.inf)
    # Labels are improbable at most vertices: between e^-12 and e^0.
    emissions = -12 * torch.rand(num_pairs, width, int(target.max()), generator=generator)
    return Work(emissions.to(device), links, (vertices.to(device), target.to(device)))


def in_groups(function: Loss) -> Loss:
    """The same computed group by group; the groups are found anew each time."""

    def grouped(emissions: Tensor, links: Tensor, vertices: Tensor, labels: Tensor) -> Tensor:
        found, order = [], []
        for group in length_groups(vertices):
            width, length = torch.stack([vertices[group].max(), labels[group].max()]).tolist()
            part = emissions[group, :width, :length], links[group, :width, :width]
            found.append(function(*part, vertices[group], labels[group]))
            order.append(group)
        return torch.cat(found)[torch.cat(order).argsort()]

    return grouped


def with_kernels(function: Loss, *, kernels: bool) -> Loss:
    """The function with or without the kernels, whatever the device would choose."""

    def chosen(*given: Tensor) -> Tensor:
        with (
            mock.patch.object(losses, "runs_kernels", return_value=kernels),
            mock.patch.object(graph_alignment, "runs_kernels", return_value=kernels),
        ):
            return function(*given)

    return chosen


def gradients_of(loss: Loss, work: Work) -> tuple[Tensor, Tensor, Tensor]:
    emissions, links = work.emissions.requires_grad_(), work.links.requires_grad_()
    found = loss(emissions, links, *work.counts)
    return (found.detach(), *torch.autograd.grad(found.sum(), (emissions, links)))


def build_loss(loss: Loss, work: Work) -> Run:
    def run() -> float:
        gradients_of(loss, work)
        return float(work.num_tokens)

    return run


def build_path(search: Loss, work: Work) -> Run:
    def run() -> float:
        search(work.emissions, work.links, *work.counts)
        return float(work.num_tokens)

    return run


def compare_results(bench: Bench, forms: dict[str, Loss], work: Work) -> None:
    """Print how far each form is from the definition."""
    expected = gradients_of(forms["plain"], work)
    for name, form in forms.items():
        if name != "plain":
            loss, *found = gradients_of(form, work)
            relative = ((loss - expected[0]).abs() / expected[0]).max().item()
            bench.note(f"greatest relative difference of losses: {name}", relative)
            for one, other, what in zip(found, expected[1:], ("emissions", "links"), strict=True):
                distance = (one - other).abs().max().item()
                bench.note(f"greatest difference of gradients: {name}, {what}", distance)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--tokens", type=int, help="target tokens (default: 16384, CPU: 256)")
    parser.add_argument("--factor", type=int, default=8, help="vertices per source token")
    options = parser.parse_args(arguments)
    bench = Bench("graph_loss", options)
    num_tokens = options.tokens or (16384 if bench.device.type == "cuda" else 256)
    if options.quick:
        num_tokens, options.factor = 48, 2
    work = draw_work(num_tokens, factor=options.factor, device=bench.device)
    bench.note("pairs", len(work.counts[0]))
    bench.note("vertices of the longest pair", work.links.shape[1])
    ceiling = bench.measure_ceiling(
        "bytes read per second", lambda: read_speed(bench.device, quick=options.quick)
    )
    floor = work.own_bytes / ceiling / work.num_tokens
    products = with_kernels(losses.graph_loss, kernels=False)
    forms = {
        "plain": losses.plain_graph_loss,
        "products": products,
        "products, grouped": in_groups(products),
    }
    paths = {"torch": with_kernels(graph_alignment.best_path, kernels=False)}
    if runs_kernels(work.links):
        kernels = with_kernels(losses.graph_loss, kernels=True)
        forms |= {"kernels": kernels, "kernels, grouped": in_groups(kernels)}
        paths["kernels"] = with_kernels(graph_alignment.best_path, kernels=True)
    compare_results(bench, forms, work)
    contenders = [
        Contender(name, partial(build_loss, form, work), floor) for name, form in forms.items()
    ]
    bench.compare("loss and gradients", contenders, unit="token", baseline="plain")
    searches = [Contender(name, partial(build_path, one, work)) for name, one in paths.items()]
    bench.compare("best path", searches, unit="token", baseline="torch")
    bench.save()


if __name__ == "__main__":
    main()
