"""Use a trained translator: python examples/translate.py runs/first/model "The dog is old." """

import sys

import headwise

model, *texts = sys.argv[1:]
translator = headwise.Translator.load(model)
beam = translator.settings(["kind=beam", "size=4", "num_best=2"])
for result in translator(texts, beam, alignment=True, attention=True):
    print(f"{result.source}  →  {result.text}   (score {result.score:.2f})")
    print("    second best:", result.n_best[1].text)
    trace = result.attention
    for source, target in result.alignment:
        print(f"    {trace.target_pieces[target]:>12} ← {trace.source_pieces[source]}")
