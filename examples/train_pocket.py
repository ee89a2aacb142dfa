"""Train a translator from Python: python examples/train_pocket.py runs/first [key.path=value
...]"""

import sys

import headwise

run, *changes = sys.argv[1:] or ["runs/first"]
recipe = headwise.load_recipe("pocket", ["data.source=en", "data.target=zh", *changes])
summary = headwise.train(recipe, run=run)
print(f"BLEU on the test set: {summary.results['test']['bleu']['value']:.1f}")
print(f"the model: {summary.model}")
