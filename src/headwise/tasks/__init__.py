"""Tasks (translation, language modelling, labelling, pre-training, word vectors): recipes, runs,
bundles, and the objects that use a trained model.

This is the layer where model, data, loss, search and metric are put together. Each task has a
folder; `table.py` lists them, `run.py` trains any of them.
"""
