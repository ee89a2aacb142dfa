"""`Plan`: the prediction of a training's time and memory, as tables in two languages and as data
(`as_dict`).
"""

from dataclasses import asdict, dataclass
from typing import Any

from headwise.errors import UsageError
from headwise.language import say
from headwise.planning.cost_prediction import Execution, MemoryParts, StepSeconds
from headwise.planning.hardware import DEVICES, GIB, Hardware
from headwise.planning.multi_device import DeviceLayout, Scaling
from headwise.planning.smaller_batches import MARGIN_OF_MEMORY, Proposal
from headwise.planning.units import clock_of, mebibytes, span_of

Rows = list[tuple[str, ...]]
Table = tuple[str, tuple[str, ...], Rows]
"""Title, headings, rows."""
MARGIN_OF_SPEED = 0.25
"""How far measurements may be from a prediction (benchmarks/bench_plan.py)."""
HARDLY = 1.05
"""If twice the devices are not faster by this factor, they gain nothing."""


@dataclass(frozen=True)
class PlannedRun:
    """What follows from the recipe alone."""

    parameters: int
    batch_rows: int
    source_row: int | None
    """Tokens of a source row; None where there is one text only."""
    target_row: int
    """Tokens of a target row, or of a row of the only text."""
    tokens_per_step: float
    """Target tokens of one update (or tokens of the only text), without padding."""
    flops_per_token: float
    steps: int
    has_attention: bool
    disk: int
    """Most space for checkpoints, snapshots and model; prepared data add about 4 bytes a token and
    16 a pair."""

    @property
    def token(self) -> tuple[str, str]:
        """What is counted, in English and Chinese."""
        return ("token", "词元") if self.source_row is None else ("target token", "目标词元")

    @property
    def row_text(self) -> str:
        """The length of a row, of both sides where there are two."""
        if self.source_row is None:
            return str(self.target_row)
        return f"({self.source_row} + {self.target_row})"


@dataclass(frozen=True)
class Plan:
    """The prediction for one device and for all together."""

    hardware: Hardware
    execution: Execution
    run: PlannedRun
    memory: MemoryParts
    seconds: StepSeconds
    layout: DeviceLayout
    fitting: DeviceLayout | None
    smaller: Proposal
    """A batch that fits, if this one does not."""
    refusal: UsageError | None
    """Why the batch of the recipe cannot be shared by all devices."""
    together: Scaling | None
    """The batch of the recipe shared by all devices; None if impossible."""
    each: Scaling
    alone: Scaling
    """One device with the same recipe."""
    half: Scaling | None
    """Half as many devices, if there are several."""
    vocabulary: int | None = None
    """`text.size` of the recipe, the largest vocabulary that its data could give."""

    @property
    def update(self) -> Scaling:
        """What training would do; if it would refuse, a batch on each device."""
        return self.together or self.each

    @property
    def tokens_per_second(self) -> float | None:
        return None if self.together is None else self.speed(self.together)

    @property
    def duration(self) -> float | None:
        """Seconds of all updates, without preparation, compilation, validation and saving."""
        return None if self.together is None else self.run.steps * self.together.step_seconds

    def speed(self, scaling: Scaling) -> float:
        """Target tokens a second; with `each`, every device has a batch of the recipe of its
        own.
        """
        batches = scaling.devices if scaling is self.each else 1
        return batches * self.run.tokens_per_step / scaling.step_seconds

    def efficiency(self, scaling: Scaling) -> float:
        """Speed relative to as many independent devices."""
        return self.speed(scaling) / (scaling.devices * self.speed(self.alone))

    @property
    def fits(self) -> bool:
        return self.memory.total <= self.hardware.memory

    @property
    def assumption(self) -> str | None:
        """What a plan for several devices had to assume."""
        if self.each.devices == 1 or self.hardware.kind != "cpu":
            return None
        return say(
            f"{self.each.devices} machines with a CPU like this one's, because PyTorch sees no "
            f"GPU here or the CPU was asked for, each sending {self.hardware.link / 1e9:g} GB/s; "
            "--device h200 (or another) plans GPUs",
            f"{self.each.devices} 台 CPU 与本机相同的机器（PyTorch 在本机找不到 GPU，或要求使用 "
            f"CPU），各以 {self.hardware.link / 1e9:g} GB/s 发送；要为 GPU 做计划，请用 --device "
            "h200（或其他）",
        )

    def remarks(self) -> list[str]:
        """What to change, in sentences."""
        remarks = []
        if not self.fits:
            remarks.append(say(*self.smaller.describe()))
        if self.hardware.kind == "cpu" and self.each.devices == 1:
            names = ", ".join(DEVICES)
            remarks.append(
                say(
                    "This is the plan of this machine's CPU. --device plans a GPU on paper, as "
                    f"--device h200 does: {names}",
                    "这是本机 CPU 的计划。用 --device 可以在纸面上为 GPU 做计划，例如 --device "
                    f"h200；可选：{names}",
                )
            )
        if self.together is not None and (few := self._fewer_as_fast(self.together)) is not None:
            remarks.append(self._say_no_faster(self.together, few))
        return remarks

    def _vocabulary_rows(self) -> Rows:
        if self.vocabulary is None:
            return []
        name = say("assumed vocabulary (text.size)", "假定的词表大小（text.size）")
        most = say("at most; less text gives fewer", "为上限，文本较少时更小")
        return [(name, f"{self.vocabulary:,} ({most})")]

    def _fewer_as_fast(self, together: Scaling) -> Scaling | None:
        """One device, or half as many, if all together are hardly faster."""
        for few in (self.alone, self.half):
            if (
                few is not None
                and together.devices > 1
                and self.speed(together) < HARDLY * self.speed(few)
            ):
                return few
        return None

    def _say_no_faster(self, together: Scaling, few: Scaling) -> str:
        mine, theirs = self.speed(together), self.speed(few)
        how = say("no faster", "并不") if mine <= theirs else say("hardly faster", "几乎不")
        num_rows = -(-self.run.batch_rows // self.each.devices)
        batch_tokens = self.run.batch_rows * self.run.target_row * self.each.devices
        return say(
            f"{self.each.devices} devices are {how} than {few.devices} ({mine:,.0f} against "
            f"{theirs:,.0f} {self.run.token[0]}s/s): they share {self.run.batch_rows} rows a "
            f"batch, {num_rows} at most for each; raise training.batch_tokens ({batch_tokens} is "
            "the recipe's batch on each; then take fewer updates and a higher learning rate), or "
            "use fewer devices",
            f"{self.each.devices} 个设备{how}比 {few.devices} 个更快（每秒 {mine:,.0f} 对 "
            f"{theirs:,.0f} {self.run.token[1]}）：它们分担每批 {self.run.batch_rows} 行，各自最多 "
            f"{num_rows} 行；请增大 training.batch_tokens（{batch_tokens} 即每个设备各一批；"
            "这时应减少更新次数并提高学习率），或减少设备",
        )

    def tables(self) -> list[Table]:
        tables = [self._run_table(), self._memory_table(), self._time_table()]
        return [*tables, self._scaling_table()] if self.each.devices > 1 else tables

    def _run_table(self) -> Table:
        run = self.run
        how = " ".join(
            [
                "bf16" if self.execution.bf16 else "fp32",
                *(
                    [say("compiled", "编译")]
                    if self.execution.compiled
                    else [say("not compiled", "不编译")]
                ),
                *([say("CUDA graph", "CUDA 图")] if self.execution.cuda_graphs else []),
            ]
        )
        rows: Rows = [
            (say("device", "设备"), self.hardware.name),
            *([(say("assumed", "假定"), self.assumption)] if self.assumption else []),
            (say("execution", "执行方式"), how),
            (say("parameters", "参数"), f"{run.parameters:,}"),
            *self._vocabulary_rows(),
            (say("batch", "一批"), f"{run.batch_rows} × {run.row_text}"),
            (
                say(f"operations per {run.token[0]}", f"每{run.token[1]}运算"),
                _megaflops(run.flops_per_token),
            ),
            *self._speed_rows(),
            (
                say("disk for checkpoints and model", "检查点与模型所需磁盘"),
                f"{run.disk / GIB:.2f} GiB",
            ),
            (say("layout", "布局"), self._layout_text(self.layout)),
        ]
        if self.fitting is not None and self.fitting != self.layout:
            rows.append(
                (
                    say("cheapest layout that fits", "放得下的最省布局"),
                    self._layout_text(self.fitting),
                )
            )
        return say("The run", "运行"), (say("what", "项目"), say("predicted", "预测")), rows

    def _speed_rows(self) -> Rows:
        if self.refusal is not None:
            return [(say("not possible", "无法进行"), str(self.refusal))]
        return [
            (
                say(f"{self.run.token[0]}s per second", f"每秒{self.run.token[1]}"),
                f"{self.speed(self.update):,.0f}",
            ),
            (say("one update", "一次更新"), span_of(self.update.step_seconds)),
            (
                say(f"{self.run.steps:,} updates", f"{self.run.steps:,} 次更新"),
                clock_of(self.run.steps * self.update.step_seconds),
            ),
        ]

    def _memory_table(self) -> Table:
        titles = {
            "weights": say("weights", "权重"),
            "gradients": say("gradients at the peak", "峰值时的梯度"),
            "optimizer": say("Adam's moments", "Adam 动量"),
            "averaging": say("moving average", "滑动平均"),
            "activations": say("activations kept for backward", "为反向保留的激活"),
            "workspace": say("loss and work space", "损失与工作区"),
        }
        rows: Rows = [
            (title, mebibytes(getattr(self.memory, name))) for name, title in titles.items()
        ]
        verdict = say("fits", "放得下") if self.fits else say("does NOT fit", "放不下")
        rows.append((say("all", "合计"), mebibytes(self.memory.total)))
        rows.append((say("available", "可用"), f"{mebibytes(self.hardware.memory)} ({verdict})"))
        return (
            say("Memory of one device", "每个设备的内存"),
            (say("part", "部分"), say("predicted", "预测")),
            rows,
        )

    def _time_table(self) -> Table:
        # Without a kernel of its own, as with dropout on a CPU, attention is products and what lies
        # between them.
        written_out = self.run.has_attention and self.seconds.attention == 0
        titles = {
            "products": say("matrix products, with attention's", "矩阵乘（含注意力的）")
            if written_out
            else say("matrix products", "矩阵乘"),
            **({"attention": say("attention", "注意力")} if self.seconds.attention > 0 else {}),
            "other": say("element-wise operations, softmax too", "逐元素运算（含 softmax）")
            if written_out
            else say("element-wise operations", "逐元素运算"),
            "optimizer": say("optimiser", "优化器"),
            "launches": say("calling operations", "调用各运算")
            if self.hardware.kind == "cpu"
            else say("launching GPU kernels", "启动 GPU 内核"),
        }
        rows: Rows = [
            (
                title,
                span_of(getattr(self.seconds, name)),
                f"{getattr(self.seconds, name) / self.seconds.total:.0%}",
            )
            for name, title in titles.items()
        ]
        return (
            say("Time of one batch and update", "一批与一次更新的时间"),
            (say("part", "部分"), say("time", "时间"), say("share", "占比")),
            rows,
        )

    def _scaling_table(self) -> Table:
        shared = say("the recipe's batch shared by all", "全体分担配方的一批")
        rows: Rows = [
            (shared, *["–"] * 7)
            if self.together is None
            else self._scaling_row(shared, self.together),
            self._scaling_row(say("the recipe's batch on each", "每个设备各一批"), self.each),
        ]
        head = (
            say("an update", "一次更新"),
            say("computing", "计算"),
            say("sent by each", "各自发送"),
            say("sending", "发送耗时"),
            say("not hidden", "未被掩盖"),
            say("efficiency", "效率"),
            say("tokens/s", "词元/秒"),
            say(f"{self.run.steps:,} updates", f"{self.run.steps:,} 次更新"),
        )
        title = say(
            f"{self.each.devices} devices, {self.hardware.link / 1e9:g} GB/s each",
            f"{self.each.devices} 个设备，各 {self.hardware.link / 1e9:g} GB/s",
        )
        return title, head, rows

    def _scaling_row(self, title: str, scaling: Scaling) -> tuple[str, ...]:
        return (
            title,
            span_of(scaling.compute_seconds),
            f"{scaling.traffic / 1e6:,.0f} MB",
            span_of(scaling.traffic / self.hardware.link),
            span_of(scaling.exposed_seconds),
            f"{self.efficiency(scaling):.0%}",
            f"{self.speed(scaling):,.0f}",
            clock_of(self.run.steps * scaling.step_seconds),
        )

    def _layout_text(self, layout: DeviceLayout) -> str:
        words = [
            say("weights sharded over the devices", "权重分片存放在各设备上")
            if layout.parallel == "sharded"
            else say("all weights on every device", "每个设备存放全部权重")
        ]
        if layout.accumulation > 1:
            words.append(
                say(f"batches in {layout.accumulation} parts", f"每批分 {layout.accumulation} 份")
            )
        if layout.recompute:
            words.append("training.recompute=blocks")
        return ", ".join(words)

    def as_dict(self) -> dict[str, Any]:
        return {
            "device": asdict(self.hardware),
            "assumption": self.assumption,
            "execution": asdict(self.execution),
            **asdict(self.run),
            "memory": {**asdict(self.memory), "total": self.memory.total},
            "fits": self.fits,
            "seconds": {**asdict(self.seconds), "total": self.seconds.total},
            "layout": asdict(self.layout),
            "fitting_layout": None if self.fitting is None else asdict(self.fitting),
            "tokens_per_second": self.tokens_per_second,
            "duration_seconds": self.duration,
            "tokens_per_second_alone": self.speed(self.alone),
            "devices": [self._as_entry(scaling) for scaling in self._alternatives()],
            "refusal": None if self.refusal is None else str(self.refusal),
            "remarks": self.remarks(),
            "margins": {"memory": MARGIN_OF_MEMORY, "speed": MARGIN_OF_SPEED},
        }

    def _alternatives(self) -> list[Scaling]:
        several = [self.each] if self.each.devices > 1 else []
        return [*([] if self.together is None else [self.together]), *several]

    def _as_entry(self, scaling: Scaling) -> dict[str, Any]:
        return {
            **asdict(scaling),
            "step_seconds": scaling.step_seconds,
            "tokens_per_second": self.speed(scaling),
            "efficiency": self.efficiency(scaling),
        }


def _megaflops(flops: float) -> str:
    """Two digits of what is small, else whole numbers."""
    number = flops / 1e6
    return f"{number:,.0f} MFLOP" if number >= 10 else f"{number:.2g} MFLOP"
