"""Search knows nothing of Transformers: anything that can step is searched. This stepper spells its
source backwards."""

import torch

from headwise.decoding.choices import BeamSettings, decode


class Backwards:
    device = torch.device("cpu")

    def start(self, sources, *, width, max_length):
        return [(list(source), 0) for source in sources for _ in range(width)]

    def step(self, state, tokens):
        # 2 ends the sentence.
        wanted = [source[-1 - step] if step < len(source) else 2 for source, step in state]
        scores = torch.nn.functional.one_hot(torch.tensor(wanted), 128) * 5.0
        return scores.log_softmax(-1), [(source, step + 1) for source, step in state]

    def reorder(self, state, index):
        return [state[i] for i in index.tolist()]


for result in decode(Backwards(), [b"headwise", b"attention"], BeamSettings(size=3)):
    print(bytes(result.best.tokens).decode(), f"{result.best.score:.3f}")
