"""Translation: its recipe, its training, and `Translator`, which uses the trained model."""
