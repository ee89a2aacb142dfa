"""The recurrent translator as a stepper: one token at a time, for any search.

A Transformer keeps keys and values of each layer for every token written; a recurrent model keeps
one state, however long the text. The encoded source is kept for each sentence and repeated for its
hypotheses.

Tested against: the whole target computed at once by `RecurrentTranslator.forward`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.errors import UsageError
from headwise.models.recurrent.decoders import Memory, WritingState
from headwise.models.recurrent.translator import RecurrentTranslator, embed
from headwise.text.tokenizer import EOS, PAD


@dataclass(frozen=True)
class StepperState:
    """Rows are hypotheses, `width` per sentence, in memory and in the state."""

    memory: Memory
    writing: WritingState
    attention: Float[Tensor, "hypothesis source"] | None = None


def explain_missing_attention() -> UsageError:
    """The error for a coverage penalty with a model that has no attention."""
    return UsageError(
        "coverage_penalty needs attention, and the model has none (model.attention.kind=none); "
        "set coverage_penalty=0, or use a model with attention",
        "coverage_penalty 需要注意力，而该模型没有（model.attention.kind=none）；"
        "请设 coverage_penalty=0，或换用有注意力的模型",
    )


class RecurrentStepper:
    """A stepper around a trained model; with `attending`, the weights of each step are kept."""

    def __init__(self, model: RecurrentTranslator, *, attending: bool = False) -> None:
        if attending and not model.has_attention:
            raise explain_missing_attention()
        self.model = model.eval()
        self.attending = attending
        self.shows_attention = attending

    @property
    def device(self) -> torch.device:
        return self.model.output.weight.device

    @torch.no_grad()
    def start(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> StepperState:
        """Encode the sources; their end of sentence is added here. `max_length` is not needed."""
        lengths = torch.tensor([len(source) + 1 for source in sources], device=self.device)
        longest = max(len(source) for source in sources) + 1
        padded = [[*source, EOS, *([PAD] * (longest - len(source) - 1))] for source in sources]
        memory = self.model.decoder.prepare(
            self.model.encode(torch.tensor(padded, device=self.device), lengths)
        )
        rows = torch.arange(len(sources), device=self.device).repeat_interleave(width)
        memory = _select(memory, rows)
        return StepperState(memory, self.model.decoder.start(memory))

    @torch.no_grad()
    def step(
        self, state: StepperState, tokens: Int[Tensor, " hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], StepperState]:
        x = embed(self.model.target_embedding, tokens[:, None])[:, 0]
        output, writing, weights = self.model.decoder.step(x, state.writing, state.memory)
        logits = self.model.logits(output)
        kept = weights if self.attending else None
        return logits.float().log_softmax(-1), replace(state, writing=writing, attention=kept)

    @torch.no_grad()
    def reorder(self, state: StepperState, index: Int[Tensor, " new_hypothesis"]) -> StepperState:
        # Rows of a group come from one sentence: the source moves only where sentences were
        # dropped.
        same = index.shape[0] == state.memory.states.shape[0]
        memory = state.memory if same else _select(state.memory, index)
        return replace(state, memory=memory, writing=state.writing.select(index))

    def attention(self, state: StepperState) -> Float[Tensor, "hypothesis source"]:
        """The attention of the last step to the source; needs `attending`."""
        assert state.attention is not None, "build the stepper with attending=True"
        return state.attention


def _select(memory: Memory, rows: Tensor) -> Memory:
    last = [tuple(part[rows] for part in state) for state in memory.last]
    real = None if memory.real is None else memory.real[rows]
    keys = None if memory.keys is None else memory.keys[rows]
    return Memory(memory.states[rows], last, real, keys)
