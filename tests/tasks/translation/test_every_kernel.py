"""Every attention kernel through a whole recipe: it trains, the loss falls, the bundle loads, and
decoding with a memory is decoding without."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from headwise.pocket import sentences
from headwise.tasks.translation.translator import Translator
from tests.reference.sentences import EOS, padded_batch
from tests.tasks.tiny import train_tiny

TEXTS = [sentence.text("en") for sentence in sentences("test", 3)]
STEPS = 8
QUICK = (
    f"training.steps={STEPS}",
    "training.log_every=1",
    "training.checkpoint_every=8",
    "training.schedule={kind: cosine, peak: 1.0e-2, warmup: 1}",
    "data.train={kind: pocket, split: train, count: 150}",
    "data.valid=null",
    "data.test=null",
    "text={kind: words, size: 200, shared: true}",
)
ENCODER = {
    "longformer": "{kind: longformer, width: 4}",
    "bigbird": "{kind: bigbird, block: 2}",
    "linformer": "{kind: linformer, rank: 5}",
}
BOTH = {
    "full": "{kind: full}",
    "additive": "{kind: full, score: {kind: additive, hidden: 8}, weights: {kind: entmax}}",
    "window": "{kind: window, left: 3, right: 2}",
    "linear": "{kind: linear}",
    "performer": "{kind: performer, num_features: 24, redraw_every: 3}",
    "reformer": "{kind: reformer, num_buckets: 4, num_rounds: 2, bucket_size: 4}",
}


def recipe_of(kind: str) -> list[str]:
    if kind in ENCODER:
        changes = [f"model.encoder.attention={ENCODER[kind]}"]
        return (
            [*changes, f"model.decoder.cross_attention={ENCODER[kind]}"]
            if kind == "linformer"
            else changes
        )
    return [f"model.{side}.attention={BOTH[kind]}" for side in ("encoder", "decoder")]


def whole_prefix(
    translator: Translator, sources: list[list[int]], prefixes: list[list[int]]
) -> Tensor:
    """log P(next token), the prefix read afresh."""
    pairs = [([*source, EOS], prefix) for source, prefix in zip(sources, prefixes, strict=True)]
    with torch.no_grad():
        return padded_batch(pairs).logits(translator.model)[:, -1].log_softmax(-1)


@pytest.mark.parametrize("kind", [*ENCODER, *BOTH])
def test_it_trains_loads_and_translates(kind: str, tmp_path: Path) -> None:
    train_tiny(tmp_path / "run", [*QUICK, *recipe_of(kind)])
    lines = map(
        json.loads, (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    )
    losses = [line["loss"] for line in lines if line["kind"] == "train"]
    assert len(losses) == STEPS
    assert all(loss is not None and math.isfinite(loss) for loss in losses)
    assert losses[-1] < 0.97 * losses[0], losses
    translator = Translator.load(tmp_path / "run", device="cpu", precision="fp32")
    stepper, ids = (
        translator.offer.stepper(attending=False),
        [translator.tokenizers.source.encode(text) for text in TEXTS],
    )
    state, prefixes = stepper.start(ids, width=1, max_length=6), [[1] for _ in TEXTS]
    for _ in range(6):
        given, state = stepper.step(state, torch.tensor([prefix[-1] for prefix in prefixes]))
        assert given.isfinite().all()
        torch.testing.assert_close(
            given, whole_prefix(translator, ids, prefixes), atol=1e-4, rtol=1e-4
        )
        for prefix, token in zip(prefixes, given.argmax(-1).tolist(), strict=True):
            prefix.append(token)
    together = [one.text for one in translator(TEXTS)]
    assert together == [translator([text])[0].text for text in TEXTS]
