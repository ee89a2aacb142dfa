"""One word, two senses: a small ELMo reads sentences about banks, and a straight line through its
vectors tells river from money.

python examples/senses_of_a_word.py DIRECTORY
"""

import random
import sys
from pathlib import Path

from headwise.data.labels.word_senses import Occurrence
from headwise.tasks.pretraining.contextual_vectors import load_word_reader
from headwise.tasks.pretraining.senses import measure_senses
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train

draw, folder = random.Random(1), Path(sys.argv[1])
near = {"river": ["water", "boat", "fish"], "money": ["loan", "coin", "cash"]}
lines = [
    (sense, ("the", draw.choice(near[sense]), "bank", draw.choice(near[sense])))
    for sense in [*near] * 150
]
read = [Occurrence("bank", sense, 2, words) for sense, words in lines]
(folder / "text.txt").write_text(
    "\n".join(" ".join(one.sentence) for one in read), encoding="utf-8"
)
model = {"dim": 16, "hidden": 16, "letter_dim": 4, "filters": [4, 4, 8]}
training = {
    "steps": 30,
    "batch_tokens": 256,
    "schedule": {"kind": "constant", "peak": 0.01},
    "precision": "fp32",
}
recipe = {
    "task": "bidirectional_language",
    "data": {"language": "en", "train": str(folder / "text.txt")},
}
train(recipe_from(recipe | {"model": model, "training": training}), run=folder / "elmo")
report, _ = measure_senses({"ELMo": load_word_reader(folder / "elmo")}, read[:200], read[200:])
for layer, share in enumerate(report.mean_of_pairs("ELMo")):
    print(f"layer {layer}: {100 * share:.0f} % of the senses found")
