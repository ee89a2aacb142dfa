"""Text of one language: sources, batches for language models, masked tokens, windows of words."""
