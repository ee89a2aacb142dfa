"""Is the fast path on a GPU the plain path? Checks that need a GPU, each a line with its numbers;
exits 1 if one fails.

    python benchmarks/check_gpu.py [NAME …]        all of them, or those named

- capture      the replayed update leaves the same weights, bit for bit, as the same kernels
               launched one by one (3 plain updates, then 5 replays with a new dropout seed each),
               with one batch, and with two accumulated (without dropout: a replay has one seed for
               both)
- unrecorded   an update that waits for the device is executed without recording after the attempt,
               with its dropout; an update is recorded although another thread allocates pinned
               memory
- flex         window, Longformer and BigBird over several lengths with one kernel: outputs and
               gradients equal those of the chunked form
- wide         layers of Longformer and BigBird on packed rows under autocast: every gradient,
               launched one by one and compiled, is within 3 % of double precision
- compiled     the compiled loss equals the plain loss to 1e-3 in bf16 and to 1e-5 in fp32
               (dropout off)
- linear_relu  the fused map and its gradients against the two operations in float64
- decoding     the recorded engine finds what the plain one finds (fp32): greedy and beam search,
               through smaller buffers and over several batches; of 1,000 sentences at most 10 may
               differ, where two hypotheses tie within rounding
- samples      samples of the recorded engine while weights change: their log-probabilities are
               those of the model at that moment, within 2e-3
- passes       recorded passes of parallel translators (CTC, graph, known lengths) equal plain ones,
               for one sentence and for several, in turn
- alignments   CTC's loss, gradient and best alignment by the kernels equal those by torch
- scores       log-probabilities of chosen words, their gradients and the best words by the kernels
               equal those by torch, in fp32 and in bf16
"""

import copy
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import harness  # noqa: F401  (puts the package on the path)
import torch
import torch.nn.functional as F
from bench_training import pack
from sizes import SIZES, build_ours
from synthetic import draw_pairs

from headwise.attention.choices import BigBird, Longformer, build_attention
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.masks import Mask, everything, segments
from headwise.blocks.linear_relu import linear_relu
from headwise.data.packing import PackedBatch
from headwise.decoding.choices import BeamSettings, DecodingSettings, GreedySettings, decode
from headwise.decoding.parallel.protocol import PartialTargets
from headwise.decoding.results import Hypothesis
from headwise.decoding.search.samples import draw_samples
from headwise.initialization import initialize
from headwise.models.choices import build_model
from headwise.models.parallel.choices import ParallelSettings
from headwise.models.parallel.inference import ParallelInference
from headwise.models.parallel.recorded_inference import RecordedInference
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.training_stepper import TrainingStepper
from headwise.models.transformer_stepper import TransformerStepper
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from headwise.tasks.translation.objective import TranslationLoss
from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import Compilation
from headwise.training.cuda_graph import CapturedUpdate
from headwise.training.parallel import ctc, token_scores
from headwise.training.updates import Updater

SIZE = SIZES["small"]
TOKENS = 4096
GPU = torch.device("cuda")
LAYERS = {"layers": 2, "heads": 4}
PARALLEL: dict[str, dict[str, Any]] = {
    name: {"encoder": LAYERS, "decoder": LAYERS, **changes}
    for name, changes in {
        "lengths": {},
        "ctc": {"length": {"kind": "upsampled", "factor": 2}, "structure": {"kind": "ctc"}},
        "graph": {"length": {"kind": "upsampled", "factor": 4}, "structure": {"kind": "graph"}},
    }.items()
}


def train(
    supply: list[PackedBatch], compilation: Compilation, *, accumulation: int = 1
) -> list[torch.Tensor]:
    """The weights after eight updates."""
    settings = TrainingSettings.model_validate(
        {"batch_tokens": TOKENS, "precision": "bf16", "compile": "on"}
    )
    task = TranslationLoss(build_ours(SIZE).to(GPU).train(accumulation == 1), 0.1)
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
        numbers.append(
            f"{name}: {difference} tensors differ from the recorded run, {control} from a "
            "second plain one"
        )
    return good, "; ".join(numbers)


def check_unrecorded(supply: list[PackedBatch]) -> tuple[bool, str]:
    total = torch.zeros((), device=GPU)

    def learn(batches: Sequence[torch.Tensor], *, waits: bool) -> None:
        total.add_(F.dropout(batches[0], 0.5).mean())
        if waits:
            total.item()

    def take_memory() -> None:
        while not done.is_set():
            torch.empty(1 << 20).pin_memory()

    done, batch = threading.Event(), [torch.ones(1000, device=GPU)]
    plain = CapturedUpdate(functools.partial(learn, waits=True), GPU, insist=False)
    for _ in range(7):
        plain(batch)
    beside = threading.Thread(target=take_memory)
    beside.start()
    recorded = CapturedUpdate(functools.partial(learn, waits=False), GPU, insist=True)
    for _ in range(7):
        recorded(batch)
    done.set()
    beside.join()
    mean = total.item() / 14
    return abs(mean - 1) < 0.1, f"mean after dropout {mean:.3f} in 7 plain and 7 recorded updates"


def check_flex(supply: list[PackedBatch]) -> tuple[bool, str]:
    worst, kernels = (
        0.0,
        (
            WindowAttention(16, 8),
            WindowAttention(40, 3),
            LongformerAttention(64),
            BigBirdAttention(16),
        ),
    )
    for kernel, length, packed in itertools.product(kernels, (100, 300, 777, 1024), (False, True)):
        run = (torch.arange(length, device=GPU) // 67 + 1).expand(2, length)
        mask = segments(run, run) if packed else everything()
        views = [torch.randn(2, 3, length, 32, device=GPU, requires_grad=True) for _ in range(3)]
        outputs = [replace(kernel, form=form)(*views, mask) for form in ("flex", "chunked")]
        slope = torch.randn_like(outputs[0])
        found = [(output, *torch.autograd.grad(output, views, slope)) for output in outputs]
        worst = max(
            worst, *(float((a - b).detach().abs().max()) for a, b in zip(*found, strict=True))
        )
    return (
        worst < 1e-2,
        f"largest difference {worst:.1e} of outputs and gradients, four lengths, packed and not",
    )


def check_wide(supply: list[PackedBatch]) -> tuple[bool, str]:
    numbers = supply[0].source_segment
    mask = segments(numbers, numbers).ignoring_blind()
    found: dict[str, float] = {}
    for settings in (Longformer(width=16), BigBird(block=4, num_random_blocks=1)):
        layer = build_attention(settings, dim=128, num_heads=4, dropout_rate=0.0, role="encoder")
        initialize(layer, torch_generator("check"))
        layer.to(GPU)
        x, slope = (torch.randn(*numbers.shape, 128, device=GPU) + 0.5 * mean for mean in (0, 1))
        slope = slope * (numbers != 0)[..., None]
        exact = gradients_of(copy.deepcopy(layer).double(), x.double(), slope.double(), mask)
        for name, way in (("plain", layer), ("compiled", torch.compile(layer, dynamic=False))):
            with torch.autocast(GPU.type, dtype=torch.bfloat16):
                near = gradients_of(way, x, slope, mask)
            for key, value in exact.items():
                found[f"{settings.kind} {name} {key}"] = float(
                    (near[key].double() - value).norm() / value.norm()
                )
    worst = sorted(found, key=found.__getitem__, reverse=True)[:4]
    return found[worst[0]] < 0.03, ", ".join(f"{name} {found[name]:.1e}" for name in worst)


def gradients_of(
    layer: Callable[..., torch.Tensor], x: torch.Tensor, slope: torch.Tensor, mask: Mask
) -> dict[str, torch.Tensor]:
    """Of the input and of every weight but biases of keys, whose gradient is nothing but
    rounding."""
    x = x.clone().requires_grad_()
    module = getattr(layer, "_orig_mod", layer)
    named = {
        name: weight
        for name, weight in module.named_parameters()
        if not name.endswith("key_value.bias")
    }
    output = layer(x, x, mask)
    slopes = torch.autograd.grad(output, [x, *named.values()], slope.to(output.dtype))
    return dict(zip(["input", *named], slopes, strict=True))


def check_compiled(supply: list[PackedBatch]) -> tuple[bool, str]:
    task = TranslationLoss(build_ours(SIZE).to(GPU).eval(), 0.1)
    compiled = torch.compile(task.loss, dynamic=False)
    differences = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            plain, fast = task.loss(supply[0]).loss.double(), compiled(supply[0]).loss.double()
        differences[name] = float(((plain - fast) / plain).detach().abs())
    good = differences["bf16"] < 1e-3 and differences["fp32"] < 1e-5
    return good, ", ".join(f"{name} {value:.1e}" for name, value in differences.items())


def check_linear_relu(supply: list[PackedBatch]) -> tuple[bool, str]:
    x, weight, bias = (
        torch.randn(*shape, device=GPU) for shape in ((5000, 256), (1000, 256), (1000,))
    )
    slope = torch.randn(5000, 1000, device=GPU)
    tensors = [tensor.bfloat16().requires_grad_() for tensor in (x, weight, bias)]
    exact = [tensor.detach().double().requires_grad_() for tensor in tensors]
    fast, plain = linear_relu(*tensors), F.relu(F.linear(*exact))
    found = [fast, *torch.autograd.grad(fast, tensors, slope.bfloat16())]
    right = [plain, *torch.autograd.grad(plain, exact, slope.bfloat16().double())]
    errors = [float((a.double() - b).norm() / b.norm()) for a, b in zip(found, right, strict=True)]
    return max(errors) < 1e-2, "relative errors " + ", ".join(f"{error:.1e}" for error in errors)


def check_decoding(supply: list[PackedBatch]) -> tuple[bool, str]:
    model = build_ours(SIZE).to(GPU).eval()
    model.output.weight.data.mul_(2.0)  # an untrained model has many near-ties; these are fewer
    generator = torch_generator("check decoding")
    lengths = torch.randint(3, 40, (130,), generator=generator).tolist()
    sources = [
        torch.randint(4, SIZE.vocab, (length,), generator=generator).tolist() for length in lengths
    ]
    plain, recorded = (TransformerStepper(model, static=static) for static in (False, True))
    searches: list[DecodingSettings] = [
        GreedySettings(max_length={"factor": 1.0, "extra": 10}),
        GreedySettings(min_length=3, at_limit="end", max_length=17, allow_unknown=False),
        BeamSettings(size=4, num_best=4, max_length={"factor": 1.0, "extra": 10}),
        BeamSettings(size=5, stop="proven", at_limit="end", max_length=23),
    ]
    num_same = num_all = 0
    for settings in searches:
        for batch in (sources, sources[:23], sources[::-1]):
            found, expected = (decode(one, batch, settings) for one in (recorded, plain))
            for one, other in zip(found, expected, strict=True):
                num_all += 1
                num_same += [h.tokens for h in one.hypotheses] == [
                    h.tokens for h in other.hypotheses
                ]
    return num_same >= 0.99 * num_all, f"{num_same:,} of {num_all:,} sentences are the same"


def check_samples(supply: list[PackedBatch]) -> tuple[bool, str]:
    model = build_ours(SIZE).to(GPU)
    stepper, worst = TrainingStepper(model), 0.0
    sources = draw_pairs(40, vocab=SIZE.vocab).sources
    for seed, count in enumerate((40, 7, 40, 3)):
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.01)
        few = sources[:count]
        limits = [len(one) + 8 for one in few]
        with stepper.at_present() as now:
            drawn = draw_samples(now, few, count=3, temperature=1.0, seed=seed, limits=limits)
        plain = TransformerStepper(copy.deepcopy(model), static=False)
        for source, found in zip(few[:3], drawn.hypotheses(), strict=False):
            worst = max(worst, *(_apart_from(plain, source, one) for one in found))
    return worst < 2e-3, f"furthest mean log-probability of a token: {worst:.1e}"


def _apart_from(stepper: TransformerStepper, source: Sequence[int], drawn: Hypothesis) -> float:
    tokens = [*drawn.tokens, *([EOS] if drawn.finished else [])]
    state, last, total = stepper.start([source], width=1, max_length=100), BOS, 0.0
    for token in tokens:
        scores, state = stepper.step(state, torch.tensor([last], device=GPU))
        scores[:, :EOS] = -torch.inf
        total, last = total + float(scores.log_softmax(-1)[0, token]), token
    return abs(total - drawn.log_probability) / max(1, len(tokens))


def check_passes(supply: list[PackedBatch]) -> tuple[bool, str]:
    worst, is_plain = 0.0, False
    for name, changes in PARALLEL.items():
        settings = check_settings(ParallelSettings, {"kind": "parallel", "dim": 64, **changes})
        generator = torch_generator("check passes")
        model = build_model(settings, source_size=999, target_size=999, generator=generator).to(GPU)
        assert isinstance(model, ParallelTranslator)
        recorded, plain = RecordedInference(model), ParallelInference(model)
        for count in (1, 5, 1, 2, 5, 1):
            given = [one[:30] for one in draw_pairs(count, vocab=999).sources]
            (found, _), (expected, widths) = (_pass(one, name, given) for one in (recorded, plain))
            for row, width in enumerate(widths.tolist()):
                apart = (found[row, :width] - expected[row, :width]).abs().max()
                worst = max(worst, float(apart))
        is_plain |= recorded.is_plain
    how = "not all recorded" if is_plain else "all recorded"
    return worst < 1e-3 and not is_plain, f"{how}; furthest log-probability {worst:.1e}"


def _pass(
    model: ParallelInference, name: str, sources: Sequence[Sequence[int]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of one pass, and how many positions of each sentence count."""
    memory = model.read_sources(sources)
    if name == "ctc":
        return model.predict_upsampled(memory)
    if name == "graph":
        scores, _, count = model.predict_graph(memory)
        return scores, count
    length = torch.tensor([len(one) + 2 for one in sources], device=GPU)
    known = torch.full((len(sources), int(length.max())), PAD, device=GPU)
    rows = PartialTargets(torch.arange(len(sources), device=GPU), length, known)
    return model.predict(memory, rows), length


def check_alignments(supply: list[PackedBatch]) -> tuple[bool, str]:
    generator = torch_generator("check alignments", device=GPU)
    scores = torch.randn(64, 120, 51, device=GPU, generator=generator).log_softmax(-1)
    labels = torch.randint(4, 40, (64, 50), device=GPU, generator=generator)
    counts = {
        "position_count": torch.randint(60, 121, (64,), device=GPU, generator=generator),
        "label_count": torch.randint(1, 30, (64,), device=GPU, generator=generator),
    }

    def align() -> list[torch.Tensor]:
        given = scores.clone().requires_grad_()
        loss = ctc.ctc_loss(given, labels, **counts)
        (gradient,) = torch.autograd.grad(loss.sum(), given)
        return [loss.detach(), gradient, ctc.best_alignment(scores, labels, **counts).column]

    apart = _compare(align, ctc)
    return apart[0] < 1e-2 and apart[1] < 1e-3 and apart[2] == 0, _tell(apart)


def check_scores(supply: list[PackedBatch]) -> tuple[bool, str]:
    good, told = True, []
    for dtype, bound in ((torch.float32, 1e-4), (torch.bfloat16, 2e-2)):
        hidden = torch.randn(5000, 128, device=GPU, dtype=dtype, requires_grad=True)
        weight = (0.1 * torch.randn(8000, 128, device=GPU, dtype=dtype)).requires_grad_()
        chosen = torch.randint(0, 8000, (5000, 61), device=GPU)
        slopes = torch.randn(5000, 61, device=GPU)

        def score(hidden=hidden, weight=weight, chosen=chosen, slopes=slopes):  # type: ignore[no-untyped-def]
            found = token_scores.score_tokens(hidden, weight, candidates=chosen)
            gradients = torch.autograd.grad(found, (hidden, weight), slopes)
            best = token_scores.best_tokens(hidden, weight).token
            return [found.detach(), *(one / one.abs().max() for one in gradients), best]

        apart = _compare(score, token_scores)
        good &= max(apart[:3]) < bound
        told.append(f"{dtype}: {_tell(apart)}")
    return good, "; ".join(told)


def _compare(run: Callable[[], list[torch.Tensor]], module: object) -> list[float]:
    """The greatest differences between the kernels' results and those of torch."""
    found = run()
    with mock.patch.object(module, "runs_kernels", return_value=False):
        expected = run()
    return [float((a - b).abs().max()) for a, b in zip(found, expected, strict=True)]


def _tell(apart: list[float]) -> str:
    return "furthest " + ", ".join(f"{one:.1e}" for one in apart)


def main() -> int:
    if not torch.cuda.is_available():
        print("no GPU here: nothing was checked", file=sys.stderr)
        return 1
    pairs = draw_pairs(3000, vocab=SIZE.vocab)
    supply = [batch.to(GPU) for batch in itertools.islice(pack(pairs, SIZE, tokens=TOKENS), 5)]
    checks: dict[str, Callable[[list[PackedBatch]], tuple[bool, str]]] = {
        "capture": check_capture,
        "unrecorded": check_unrecorded,
        "flex": check_flex,
        "wide": check_wide,
        "compiled": check_compiled,
        "linear_relu": check_linear_relu,
        "decoding": check_decoding,
        "samples": check_samples,
        "passes": check_passes,
        "alignments": check_alignments,
        "scores": check_scores,
    }
    if unknown := set(sys.argv[1:]) - set(checks):
        print(
            f"no such check: {', '.join(sorted(unknown))}; there are {', '.join(checks)}",
            file=sys.stderr,
        )
        return 2
    failed = 0
    for name in sys.argv[1:] or checks:
        good, numbers = checks[name](supply)
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {name}: {numbers}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
