"""Draft and verify: cheap guesses that the model checks several at a time."""
