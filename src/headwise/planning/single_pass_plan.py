"""The prediction for a model that is learnt in a single pass over the text (n-grams, word vectors).

One process goes over the text, on the CPU of this machine. So the plan has the size of the tables,
the time and the memory, and neither devices nor a layout. It is shown as tables in two languages
and as data (`as_dict`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwise.language import say
from headwise.planning.plan import Rows, Table
from headwise.planning.units import clock_of, mebibytes


@dataclass(frozen=True)
class SinglePassPlan:
    """What the pass takes, extrapolated from a part of its text."""

    sizes: Mapping[str, Any]
    """Of the prepared text: lines, tokens, vocabulary."""
    parameters: int
    memory: float
    available: float
    seconds: float | None
    disk: int
    ignored: tuple[str, ...] = ()
    """Options that say something of devices and were given all the same."""

    @property
    def fits(self) -> bool:
        return self.memory <= self.available

    def remarks(self) -> list[str]:
        """What does not apply, and what to change, in sentences."""
        remarks = [
            say(
                "This model is learnt in a single pass by one process on the CPU of this machine: "
                "there are no devices to choose, and several cannot share the work",
                "该模型由一个进程在本机 CPU 上一遍学成：没有设备可选，也不能由多个设备分担",
            )
            + (
                say(
                    f", so {', '.join(self.ignored)} changed nothing",
                    f"，因此 {'、'.join(self.ignored)} 不起作用",
                )
                if self.ignored
                else ""
            )
        ]
        if not self.fits:
            remarks.append(
                say(
                    "It does not fit: give less text, or lower model.order (n-grams) or model.dim "
                    "(word vectors)",
                    "内存不够：请减少文本，或减小 model.order（n 元语法）、model.dim（词向量）",
                )
            )
        return remarks

    def tables(self) -> list[Table]:
        heading = (say("what", "项目"), say("predicted", "预测"))
        run: Rows = [
            *((_name_size(name), _number(value)) for name, value in self.sizes.items()),
            (say("parameters", "参数"), f"{self.parameters:,}"),
            *([] if self.seconds is None else [(say("training", "训练"), clock_of(self.seconds))]),
            (say("disk for the model", "模型所需磁盘"), mebibytes(self.disk)),
        ]
        verdict = say("fits", "放得下") if self.fits else say("does NOT fit", "放不下")
        memory: Rows = [
            (say("during training", "训练时"), mebibytes(max(self.memory, 1 << 20))),
            (say("available", "可用"), f"{mebibytes(self.available)} ({verdict})"),
        ]
        return [(say("The run", "运行"), heading, run), (say("Memory", "内存"), heading, memory)]

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.sizes,
            "parameters": self.parameters,
            "memory": {"total": round(self.memory)},
            "fits": self.fits,
            "duration_seconds": self.seconds,
            "disk": self.disk,
            "devices": [],
            "remarks": self.remarks(),
        }


def _name_size(name: str) -> str:
    names = {
        "lines": say("lines", "行数"),
        "tokens": say("tokens", "词元"),
        "vocabulary": say("vocabulary", "词表"),
        "words": say("different words", "不同的词"),
        "text_words": say("words of text", "文本词数"),
    }
    return names.get(name, name)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
