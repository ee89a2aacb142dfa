"""Errors for memory that ran out while decoding. They name the settings to lower.

Caches and histories grow with sentences × hypotheses × length.
Tested: every form in which memory runs out.
"""

import contextlib
from collections.abc import Iterator

from headwise.decoding.generation_settings import GenerationSettings
from headwise.errors import UsageError, is_out_of_memory


@contextlib.contextmanager
def explaining_memory(
    settings: GenerationSettings, *, num_sentences: int, longest: int
) -> Iterator[None]:
    """Turn "out of memory", however it is raised, into the settings to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        levers = [f"max_length={max(1, longest // 2)}"]
        for name in ("size", "num_samples"):
            width = getattr(settings, name, 1)
            levers += [f"{name}={width // 2}"] if width > 1 else []
        levers += [f"batching.sentences={num_sentences // 2}"] if num_sentences > 1 else []
        raise UsageError(
            f"memory ran out while decoding {num_sentences} sentence{'s' * (num_sentences > 1)} at "
            f"once, up to {longest:,} tokens each; lower a decoding setting: "
            f"{' or '.join(levers)} (headwise translate: --set {levers[0]})",
            f"解码时内存用尽：同时解码 {num_sentences} 句，每句至多 {longest:,} 个词元；"
            f"请调小一项解码设置：{' 或 '.join(levers)}（headwise translate：--set {levers[0]}）",
        ) from error
