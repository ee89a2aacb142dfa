"""Learning from whole translations: the model's own samples and what they are worth."""
