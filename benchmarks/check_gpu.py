"""Is the fast path on a GPU the plain path? Checks that need a GPU, each a line with its numbers; exits 1 if one fails.

    python benchmarks/check_gpu.py

- capture      the replayed update leaves the same weights, bit for bit, as the same kernels launched one by one (3 plain updates,
               then 5 replays with a new dropout seed each), with one batch, and with two accumulated (without dropout: a replay
               has one seed for both)
- compiled     the compiled loss in bf16 is the plain loss in bf16 to 1e-3, and in fp32 to 1e-5 (dropout off)
- linear_relu  the fused map and its gradients against the two operations in float64
"""

import itertools
import sys
from collections.abc import Callable

import harness  # noqa: F401  (puts the package on the path)
import torch
import torch.nn.functional as F
from bench_training import pack
from sizes import SIZES, build_ours
from synthetic import draw_pairs

from headwise.blocks.linear_relu import linear_relu
from headwise.data.packing import PackedBatch
from headwise.tasks.translation import TranslationTask
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import Compilation
from headwise.training.updates import Updater

SIZE = SIZES["small"]
TOKENS = 4096
GPU = torch.device("cuda")


def train(supply: list[PackedBatch], compilation: Compilation, *, accumulation: int = 1) -> list[torch.Tensor]:
    """The weights after eight updates."""
    settings = TrainingSettings.model_validate({"batch_tokens": TOKENS, "precision": "bf16", "compile": "on"})
    task = TranslationTask(build_ours(SIZE).to(GPU).train(accumulation == 1), 0.1)
    updater = Updater(task, settings, device=GPU, compilation=compilation)
    for step in range(1, 9):
        batches = [supply[(step + i) % len(supply)] for i in range(accumulation)]
        updater.update(batches, step=step, learning_rate=1e-3)
    return [parameter.detach().clone() for parameter in task.module.parameters()]


def count_different(first: list[torch.Tensor], second: list[torch.Tensor]) -> int:
    return sum(not torch.equal(a, b) for a, b in zip(first, second, strict=True))


def check_capture(supply: list[PackedBatch]) -> tuple[bool, str]:
    good, numbers = True, []
    for enabled, accumulation in itertools.product((False, True), (1, 2)):
        first, again, recorded = (
            train(supply, Compilation(enabled, cuda_graphs=graphs), accumulation=accumulation)
            for graphs in (False, False, True)
        )
        control, difference = count_different(first, again), count_different(first, recorded)
        good &= difference == 0 or control > 0
        name = f"{'compiled' if enabled else 'plain'} × {accumulation}"
        numbers.append(f"{name}: {difference} tensors differ from the recorded run, {control} from a second plain one")
    return good, "; ".join(numbers)


def check_compiled(supply: list[PackedBatch]) -> tuple[bool, str]:
    task = TranslationTask(build_ours(SIZE).to(GPU).eval(), 0.1)
    compiled = torch.compile(task.loss, dynamic=False)
    differences = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            plain, fast = task.loss(supply[0]).loss.double(), compiled(supply[0]).loss.double()
        differences[name] = float(((plain - fast) / plain).detach().abs())
    good = differences["bf16"] < 1e-3 and differences["fp32"] < 1e-5
    return good, ", ".join(f"{name} {value:.1e}" for name, value in differences.items())


def check_linear_relu(supply: list[PackedBatch]) -> tuple[bool, str]:
    x, weight, bias = (torch.randn(*shape, device=GPU) for shape in ((5000, 256), (1000, 256), (1000,)))
    slope = torch.randn(5000, 1000, device=GPU)
    tensors = [tensor.bfloat16().requires_grad_() for tensor in (x, weight, bias)]
    exact = [tensor.detach().double().requires_grad_() for tensor in tensors]
    fast, plain = linear_relu(*tensors), F.relu(F.linear(*exact))
    found = [fast, *torch.autograd.grad(fast, tensors, slope.bfloat16())]
    right = [plain, *torch.autograd.grad(plain, exact, slope.bfloat16().double())]
    errors = [float((a.double() - b).norm() / b.norm()) for a, b in zip(found, right, strict=True)]
    return max(errors) < 1e-2, "relative errors " + ", ".join(f"{error:.1e}" for error in errors)


def main() -> int:
    if not torch.cuda.is_available():
        print("no GPU here: nothing was checked", file=sys.stderr)
        return 1
    pairs = draw_pairs(3000, vocab=SIZE.vocab)
    supply = [batch.to(GPU) for batch in itertools.islice(pack(pairs, SIZE, tokens=TOKENS), 5)]
    checks: dict[str, Callable[[list[PackedBatch]], tuple[bool, str]]] = {
        "capture": check_capture,
        "compiled": check_compiled,
        "linear_relu": check_linear_relu,
    }
    failed = 0
    for name, check in checks.items():
        good, numbers = check(supply)
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {name}: {numbers}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
