"""Searches of models that write all words of a sentence at once, or in a few rounds."""
