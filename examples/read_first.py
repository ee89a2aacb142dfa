"""Read first, learn labels then: hidden words teach an encoder, which learns from eight labels
while its first layer stays frozen.

python examples/read_first.py DIRECTORY
"""

import random
import sys
from pathlib import Path

import headwise
from headwise.tasks.recipe import recipe_from
from headwise.weights import read_tensors

draw, folder = random.Random(1), Path(sys.argv[1])
words = {"fine": ["warm", "bright", "sunny", "dry"], "foul": ["cold", "dark", "rainy", "wet"]}
lines = [
    (" ".join(["a", *draw.choices(words[label], k=5), "day"]), label) for label in [*words] * 100
]
(folder / "days.txt").write_text("\n".join(text for text, _ in lines), encoding="utf-8")
(folder / "days.tsv").write_text("\n".join("\t".join(line) for line in lines[:8]), encoding="utf-8")
model = {"kind": "encoder", "dim": 16, "layers": 2, "heads": 2}
training = {
    "steps": 60,
    "batch_tokens": 256,
    "schedule": {"kind": "constant", "peak": 0.01},
    "precision": "fp32",
}
recipe = {
    "task": "masked_language",
    "data": {"language": "en"},
    "model": model,
    "training": training,
}
headwise.train(recipe_from(recipe, [f"data.train={folder}/days.txt"]), run=folder / "read")
changes = [
    f"data.train={folder}/days.tsv",
    f"model.start_from={folder}/read",
    "training.freeze=[layers 0]",
]
headwise.train(recipe_from(recipe | {"task": "classification"}, changes), run=folder / "labels")
before, after = (
    read_tensors(folder / run / "model/weights.safetensors") for run in ("read", "labels")
)
print(
    "as it was:",
    *sorted({name[:16] for name in after if name in before and after[name].equal(before[name])}),
)
print(
    *(
        day.labels[0]
        for day in headwise.Labeller.load(folder / "labels")(["a rainy wet day", "a sunny dry day"])
    )
)
